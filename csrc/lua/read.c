#include "lua/read.h"

#include "evrec_read.h"
#include "lua/event.h"
#include "lua/options.h"
#include "lua/seconds.h"
#include "lua/sink.h"

/* ---- sources ---- */

static int source_gc(lua_State *L)
{
	evrec_source **box = lua_touserdata(L, 1);

	evrec_source_release(*box);
	*box = NULL;
	return 0;
}

static const luaL_Reg source_metamethods[] = { { "__gc", source_gc }, { NULL, NULL } };

const struct box_type source_type = { "evrec.source", NULL, source_metamethods };

static evrec_source *check_source(lua_State *L, int index)
{
	evrec_source **box = box_check(L, index, &source_type);

	if (*box == NULL) {
		luaL_error(L, "evrec.source: was collected");
	}
	return *box;
}

struct path_settings {
	evrec_str path;
};

static const struct option path_rows[] = {
	{ "path", OPTION_STRING, offsetof(struct path_settings, path), 1, 0, NULL, true },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

typedef evrec_source *source_of_path(evrec_str path, evrec_error *err);

static int new_of_path(lua_State *L, const char *function, source_of_path *make)
{
	struct path_settings settings = { { NULL, 0 } };
	evrec_source **box;
	evrec_error err;

	lua_settop(L, 1);
	options_read(L, 1, function, path_rows, &settings, 0);
	box = box_new(L, &source_type, sizeof(evrec_source *));
	*box = make(settings.path, &err);
	return *box != NULL ? 1 : options_refused(L, function, &err);
}

int source_new_lines(lua_State *L)
{
	return new_of_path(L, "evrec.lines", evrec_source_lines);
}

int source_new_store(lua_State *L)
{
	return new_of_path(L, "evrec.store", evrec_source_store);
}

int source_new_cluster(lua_State *L)
{
	evrec_source **box;
	evrec_error err;
	evrec_sink *sink;

	(void)box_check(L, 1, &sink_type);
	box = box_new(L, &source_type, sizeof(evrec_source *));
	sink = sink_core(L, 1);
	if (sink == NULL) {
		return luaL_error(L, "evrec.cluster: the sink was collected");
	}
	*box = evrec_source_cluster(sink, &err);
	return *box != NULL ? 1 : luaL_error(L, "evrec.cluster: %s", err.message);
}

int source_get(lua_State *L)
{
	evrec_source *source = check_source(L, 1);
	const int64_t timeout = seconds_check(L, 3, "evrec.cluster", "timeout", 10 * EVREC_SECOND);
	char **text = box_push_owner(L);
	evrec_error err;
	evrec_str path;

	path.data = luaL_checklstring(L, 2, &path.len);
	*text = evrec_cluster_get(source, path, timeout, &err);
	if (*text == NULL) {
		return push_failure(L, &err);
	}
	lua_pushstring(L, *text);
	evrec_free(*text);
	*text = NULL;
	return 1;
}

int read_parse_time(lua_State *L)
{
	evrec_str text;
	int64_t ns;

	text.data = luaL_checklstring(L, 1, &text.len);
	if (!evrec_rfc3339_parse(text, &ns)) {
		lua_pushnil(L);
		return 1;
	}
	seconds_push(L, ns);
	/* A double rounds the last times before 2^63 ns up to that. */
	if (!evrec_seconds_to_ns((double)lua_tonumber(L, -1), &ns)) {
		lua_pushnil(L);
	}
	return 1;
}

/* ---- queries ---- */

struct query_settings {
	evrec_query query;
	struct option_strings types;
};

#define TEXT(name, member)                                                                                             \
	{                                                                                                              \
		name, OPTION_STRING, member, 0, 0, NULL, false                                                         \
	}
#define OBJECT(member) offsetof(evrec_object_filter, member)
#define QUERY(member) offsetof(struct query_settings, query.member)

static const struct option object_rows[] = {
	TEXT("kind", OBJECT(kind)),    TEXT("api_version", OBJECT(api_version)),
	TEXT("namespace", OBJECT(ns)), TEXT("name", OBJECT(name)),
	TEXT("uid", OBJECT(uid)),      { NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

static const struct option order_words[] = {
	{ "newest", OPTION_VALUE, EVREC_NEWEST, 0, 0, NULL, false },
	{ "oldest", OPTION_VALUE, EVREC_OLDEST, 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

#define YEAR_2262 9223372036.0

/* lua/evrec/reading.lua makes tables of the strings for objects: the core takes no other. */
static const struct option query_rows[] = {
	TEXT("namespace", QUERY(ns)),
	{ "for_object", OPTION_STRING_OR_TABLE, QUERY(regarding), 0, 0, object_rows, false },
	{ "mentions", OPTION_STRING_OR_TABLE, QUERY(mentions), 0, 0, object_rows, false },
	TEXT("controller", QUERY(controller)),
	TEXT("instance", QUERY(instance)),
	{ "types", OPTION_STRINGS, offsetof(struct query_settings, types), 0, 0, NULL, false },
	TEXT("reason", QUERY(reason)),
	TEXT("action", QUERY(action)),
	{ "since", OPTION_BOUND, QUERY(since), 0, YEAR_2262, NULL, false },
	{ "before", OPTION_BOUND, QUERY(before), 0, YEAR_2262, NULL, false },
	TEXT("field_selector", QUERY(field_selector)),
	{ "order", OPTION_WORD, QUERY(order), 0, 0, order_words, false },
	{ "limit", OPTION_SIZE, QUERY(limit), 1, 1e9, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

static void read_query(lua_State *L, const char *function, const struct option *rows, struct query_settings *settings)
{
	evrec_query_init(&settings->query);
	options_read(L, 2, function, rows, settings, 0);
	settings->query.types = settings->types.items;
	settings->query.types_len = settings->types.len;
}

/* Pushes the reader in the box on top, or nil, message, name. */
static int push_reader(lua_State *L, const char *function, evrec_reader *const *box, const evrec_error *err)
{
	if (*box != NULL) {
		return 1;
	}
	return err->code == EVREC_EINVALID ? options_refused(L, function, err) : push_failure(L, err);
}

int source_open(lua_State *L)
{
	evrec_source *source = check_source(L, 1);
	const bool watch = lua_toboolean(L, 3) != 0;
	const char *function = luaL_checkstring(L, 4);
	struct query_settings settings = { .types = { NULL, 0 } };
	evrec_reader **box;
	evrec_error err;

	lua_settop(L, 4);
	read_query(L, function, query_rows, &settings);
	box = box_new(L, &reader_type, sizeof(evrec_reader *));
	*box = watch ? evrec_source_watch(source, &settings.query, &err)
	             : evrec_source_query(source, &settings.query, &err);
	return push_reader(L, function, box, &err);
}

static const struct option suppression_rows[] = {
	{ "for_object", OPTION_STRING_OR_TABLE, QUERY(regarding), 0, 0, object_rows, false },
	{ "since", OPTION_BOUND, QUERY(since), 0, YEAR_2262, NULL, false },
	{ "before", OPTION_BOUND, QUERY(before), 0, YEAR_2262, NULL, false },
	{ "limit", OPTION_SIZE, QUERY(limit), 1, 1e9, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int source_open_suppressions(lua_State *L)
{
	evrec_source *source = check_source(L, 1);
	const char *function = luaL_checkstring(L, 3);
	struct query_settings settings = { .types = { NULL, 0 } };
	evrec_reader **box;
	evrec_error err;

	lua_settop(L, 3);
	read_query(L, function, suppression_rows, &settings);
	box = box_new(L, &reader_type, sizeof(evrec_reader *));
	*box = evrec_source_suppressions(source, &settings.query, &err);
	return push_reader(L, function, box, &err);
}

struct event_settings {
	evrec_str ns, name;
};

static const struct option event_rows[] = {
	{ "namespace", OPTION_STRING, offsetof(struct event_settings, ns), 1, 0, NULL, true },
	{ "name", OPTION_STRING, offsetof(struct event_settings, name), 1, 0, NULL, true },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int source_open_occurrences(lua_State *L)
{
	evrec_source *source = check_source(L, 1);
	const char *function = luaL_checkstring(L, 3);
	struct event_settings settings;
	evrec_reader **box;
	evrec_error err;

	lua_settop(L, 3);
	options_read(L, 2, function, event_rows, &settings, 0);
	box = box_new(L, &reader_type, sizeof(evrec_reader *));
	*box = evrec_source_occurrences(source, settings.ns, settings.name, &err);
	return push_reader(L, function, box, &err);
}

/* ---- readers ---- */

static int reader_close(lua_State *L)
{
	evrec_reader **box = box_check(L, 1, &reader_type);

	evrec_reader_free(*box);
	*box = NULL;
	return 0;
}

/* Lua: reader:begin(timeout) -> true, or false: it has not begun yet; or nil, message, name */
static int reader_begin(lua_State *L)
{
	evrec_reader **box = box_check(L, 1, &reader_type);
	const int64_t timeout = seconds_check(L, 2, "reader:begin", "timeout", EVREC_UNSET);
	evrec_error err;
	int code = *box == NULL ? 0 : evrec_reader_begin(*box, timeout, &err);

	if (code != 0 && code != EVREC_ETIMEOUT) {
		return push_failure(L, &err);
	}
	lua_pushboolean(L, code == 0);
	return 1;
}

/*
 * Lua: reader:next(timeout) -> event, json, deleted; or json alone, if that is no event; or false: nothing came; or nil
 * at the end; or nil, message, name
 */
static int reader_next(lua_State *L)
{
	evrec_reader **box = box_check(L, 1, &reader_type);
	const int64_t timeout = seconds_check(L, 2, "reader:next", "timeout", EVREC_UNSET);
	evrec_event **owner = event_push_owner(L);
	char **json = box_push_owner(L);
	evrec_found found;
	evrec_error err;
	/* A finalizer may have closed the reader while the userdata were made. */
	int result = *box == NULL ? EVREC_READ_END : evrec_reader_next(*box, timeout, &found, &err);

	if (result < 0) {
		return push_failure(L, &err);
	}
	if (result == EVREC_READ_EVENT) {
		/* A finalizer may close the reader in lua_pushlstring, too: LuaJIT's copies after it has run the collector. */
		*json = evrec_reader_take_json(*box);
		*owner = found.event == NULL ? NULL : evrec_event_retain(found.event);
		lua_pushlstring(L, *json, found.json.len);
		evrec_free(*json);
		*json = NULL;
		if (*owner == NULL) {
			return 1;
		}
		lua_replace(L, -2);
		event_push_owned(L, owner);
		lua_insert(L, -2);
		lua_pushboolean(L, found.deleted);
		return 3;
	}
	if (result == EVREC_READ_WAIT) {
		lua_pushboolean(L, 0);
	} else {
		lua_pushnil(L);
	}
	return 1;
}

static const luaL_Reg reader_methods[] = {
	{ "begin", reader_begin },
	{ "next", reader_next },
	{ "close", reader_close },
	{ NULL, NULL },
};
static const luaL_Reg reader_metamethods[] = {
	{ "__gc", reader_close },
	{ "__close", reader_close },
	{ NULL, NULL },
};

const struct box_type reader_type = { "evrec.reader", reader_methods, reader_metamethods };
