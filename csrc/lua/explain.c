#include "lua/explain.h"

#include "lua/broadcaster.h"
#include "lua/reference.h"
#include "lua/snapshot.h"
#include "lua/suppressed.h"
#include "lua/table.h"

static void push_sink(lua_State *L, const struct snapshot_sink *sink)
{
	size_t i;

	lua_createtable(L, 0, 3);
	table_set_word(L, "name", sink->stats.name);
	table_set_count(L, "number", sink->stats.number);
	lua_newtable(L);
	for (i = 0; i < sink->suppressed_len; i++) {
		suppressed_push_explained(L, &sink->suppressed[i]);
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_setfield(L, -2, "suppressed");
}

static const evrec_reference *check_object(lua_State *L)
{
	const struct reference *box;

	if (lua_isnoneornil(L, 2)) {
		return NULL;
	}
	box = box_check(L, 2, &reference_type);
	if (box->ref == NULL) {
		luaL_error(L, "evrec.reference: was collected");
	}
	return evrec_prepared_ref_fields(box->ref);
}

int broadcaster_explain(lua_State *L)
{
	struct broadcaster *b = broadcaster_check(L);
	const struct snapshot *snapshot;
	size_t i;

	if (b == NULL) {
		return 3;
	}
	snapshot = snapshot_push(L, b, check_object(L), NULL);
	if (snapshot == NULL) {
		return broadcaster_closed(L);
	}
	lua_newtable(L);
	for (i = 0; i < snapshot->stats.sinks; i++) {
		push_sink(L, &snapshot->sinks[i]);
		lua_rawseti(L, -2, (int)i + 1);
	}
	return 1;
}
