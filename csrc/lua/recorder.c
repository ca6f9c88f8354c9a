#include "lua/recorder.h"

#include <stdio.h>

#include "lua/message.h"
#include "lua/options.h"
#include "lua/prepared.h"
#include "lua/recording.h"
#include "lua/suggest.h"

enum recorder_upvalue {
	UP_EMIT_FIELDS = UP_RECORDING_LAST + 1, /* a table of the fields of emit: numbers by name, names by number */
	UP_LAST = UP_EMIT_FIELDS
};

HOT static int recorder_event(lua_State *L)
{
	struct recording r;

	if (!recording_begin(L, &r, 5, 0)) {
		return 3;
	}
	if (!recording_object(&r, 2) || !recording_string(&r, 3, "type", &r.emit.type) ||
	    !recording_string(&r, 4, "reason", &r.emit.reason) || !recording_string(&r, 5, "message", &r.emit.note)) {
		return recording_refuse(&r);
	}
	return recording_make(&r);
}

static int recorder_eventf(lua_State *L)
{
	struct recording r;

	if (!recording_begin(L, &r, 5, RECORDING_SLOTS)) {
		return 3;
	}
	if (!recording_format(&r, 5) || !recording_object(&r, 2) || !recording_string(&r, 3, "type", &r.emit.type) ||
	    !recording_string(&r, 4, "reason", &r.emit.reason)) {
		return recording_refuse(&r);
	}
	return recording_make(&r);
}

/*
 * The argument that is most easily forgotten is checked first, so that the message names it: if it is missing, each
 * later argument is in the place of the one before.
 */
static int recorder_annotated_eventf(lua_State *L)
{
	struct recording r;

	if (!recording_begin(L, &r, 6, RECORDING_SLOTS)) {
		return 3;
	}
	if (!recording_map_type(&r, 3, "annotations") || !recording_format(&r, 6) || !recording_object(&r, 2) ||
	    !recording_map(&r, 3, "annotations", &r.emit.annotations) ||
	    !recording_string(&r, 4, "type", &r.emit.type) || !recording_string(&r, 5, "reason", &r.emit.reason)) {
		return recording_refuse(&r);
	}
	return recording_make(&r);
}

static int recorder_past_eventf(lua_State *L)
{
	struct recording r;

	if (!recording_begin(L, &r, 6, RECORDING_SLOTS)) {
		return 3;
	}
	if (!recording_time(&r, 3) || !recording_format(&r, 6) || !recording_object(&r, 2) ||
	    !recording_string(&r, 4, "type", &r.emit.type) || !recording_string(&r, 5, "reason", &r.emit.reason)) {
		return recording_refuse(&r);
	}
	return recording_make(&r);
}

static int recorder_action_eventf(lua_State *L)
{
	struct recording r;

	if (!recording_begin(L, &r, 7, RECORDING_SLOTS)) {
		return 3;
	}
	if (!recording_related_type(&r, 3) || !recording_format(&r, 7) || !recording_object(&r, 2) ||
	    !recording_related(&r, 3) || !recording_string(&r, 4, "type", &r.emit.type) ||
	    !recording_string(&r, 5, "reason", &r.emit.reason) ||
	    !recording_optional(&r, 6, "action", &r.emit.action)) {
		return recording_refuse(&r);
	}
	return recording_make(&r);
}

/* The fields of emit. The last two are other names of fields before them. */
enum emit_field {
	REGARDING = 1,
	RELATED,
	TYPE,
	REASON,
	ACTION,
	NOTE,
	ANNOTATIONS,
	LABELS,
	TIMESTAMP,
	OBJECT,
	MESSAGE,
	FIELDS_END
};
static const char *const emit_names[FIELDS_END] = {
	[REGARDING] = "regarding", [RELATED] = "related", [TYPE] = "type",       [REASON] = "reason",
	[ACTION] = "action",       [NOTE] = "note",       [LABELS] = "labels",   [ANNOTATIONS] = "annotations",
	[TIMESTAMP] = "timestamp", [OBJECT] = "object",   [MESSAGE] = "message",
};

/* The field that a name stands for. */
static int field_of(int name)
{
	return name == OBJECT ? REGARDING : name == MESSAGE ? NOTE : name;
}

static bool refuse_name(struct recording *r)
{
	lua_State *L = r->L;
	struct suggestion s;
	char word[65];
	int i;

	r->err.code = EVREC_EINVALID;
	if (lua_type(L, -2) != LUA_TSTRING) {
		(void)snprintf(r->err.message, sizeof(r->err.message), "unknown field: a %s", luaL_typename(L, -2));
		return false;
	}
	s = suggest_begin(lua_tostring(L, -2));
	for (i = 1; i < FIELDS_END; i++) {
		suggest_consider(&s, emit_names[i]);
	}
	message_format(word, sizeof(word), "%s", s.word);
	(void)snprintf(r->err.message, sizeof(r->err.message), "unknown field '%s'%s%s%s", word,
	               s.best == NULL ? "" : ": did you mean '", s.best == NULL ? "" : s.best,
	               s.best == NULL ? "" : "'?");
	return false;
}

/* Copies each field of the table at stack index 2 to the stack index `base` plus the number of its name. */
static bool spread(struct recording *r, int base)
{
	lua_State *L = r->L;

	lua_settop(L, base + FIELDS_END - 1);
	lua_pushnil(L);
	while (lua_next(L, 2) != 0) {
		int place;

		lua_pushvalue(L, -2);
		lua_rawget(L, lua_upvalueindex(UP_EMIT_FIELDS));
		place = (int)lua_tointeger(L, -1);
		lua_pop(L, 1);
		if (place == 0) {
			return refuse_name(r);
		}
		lua_replace(L, base + place);
	}
	return true;
}

/* Asks the metatable of the table at stack index 2 for the fields that the table lacks. */
static bool ask_metatable(struct recording *r, int base)
{
	lua_State *L = r->L;
	int i, status;

	for (i = 1; i < FIELDS_END; i++) {
		if (lua_isnil(L, base + field_of(i))) {
			lua_pushvalue(L, lua_upvalueindex(UP_GET));
			lua_pushvalue(L, 2);
			lua_rawgeti(L, lua_upvalueindex(UP_EMIT_FIELDS), i);
			status = lua_pcall(L, 2, 1, 0);
			if (status != 0) {
				return recording_raised(r, status, emit_names[i]);
			}
			lua_replace(L, base + i);
		}
	}
	return true;
}

/* Moves a field that was given by another name to its own place. */
static bool join_names(struct recording *r, int base)
{
	lua_State *L = r->L;
	int i;

	for (i = OBJECT; i < FIELDS_END; i++) {
		const int field = base + field_of(i);

		if (is_unset(L, base + i)) {
			continue;
		}
		if (!is_unset(L, field)) {
			r->err.code = EVREC_EINVALID;
			(void)snprintf(r->err.message, sizeof(r->err.message),
			               "'%s' and '%s' are the same field: give one of them", emit_names[field_of(i)],
			               emit_names[i]);
			return false;
		}
		lua_pushvalue(L, base + i);
		lua_replace(L, field);
		lua_pushnil(L);
		lua_replace(L, base + i);
	}
	return true;
}

static bool read_emit(struct recording *r)
{
	lua_State *L = r->L;
	const int base = 2;

	lua_settop(L, 2);
	if (!lua_istable(L, 2)) {
		return refuse_type(L, 2, "emit", "", "a table", &r->err);
	}
	if (!spread(r, base) || !join_names(r, base)) {
		return false;
	}
	if (lua_getmetatable(L, 2)) {
		lua_pop(L, 1);
		if (!ask_metatable(r, base) || !join_names(r, base)) {
			return false;
		}
	}
	return recording_object(r, base + REGARDING) && recording_related(r, base + RELATED) &&
	       recording_string(r, base + TYPE, "type", &r->emit.type) &&
	       recording_string(r, base + REASON, "reason", &r->emit.reason) &&
	       recording_optional(r, base + ACTION, "action", &r->emit.action) &&
	       recording_string(r, base + NOTE, "note", &r->emit.note) &&
	       recording_map(r, base + ANNOTATIONS, "annotations", &r->emit.annotations) &&
	       recording_map(r, base + LABELS, "labels", &r->emit.labels) &&
	       (is_unset(L, base + TIMESTAMP) || recording_time(r, base + TIMESTAMP));
}

static int recorder_emit(lua_State *L)
{
	struct recording r;

	if (!recording_begin(L, &r, 2, RECORDING_SLOTS)) {
		return 3;
	}
	return read_emit(&r) ? recording_make(&r) : recording_refuse(&r);
}

/* Lua: recorder:prepare { ... } -> prepared event; nil, message, name; raises on misuse */
static int recorder_prepare(lua_State *L)
{
	struct recorder *recorder = box_check(L, 1, &recorder_type);
	struct recording r;

	luaL_checktype(L, 2, LUA_TTABLE);
	luaL_checkstack(L, RECORDING_SLOTS, PREPARE_NAME);
	if (!recording_begin(L, &r, 2, 0)) {
		return 3;
	}
	if (!read_emit(&r)) {
		return luaL_error(L, PREPARE_NAME ": %s", r.err.message);
	}
	if (r.emit.timestamp != EVREC_UNSET) {
		return luaL_error(L, PREPARE_NAME ": timestamp: each event happens when it is recorded");
	}
	return prepared_new(L, recorder, &r.emit);
}

/* ---- the userdata ---- */

#define AT(member) offsetof(evrec_recorder_options, member)

static const struct option rows[] = {
	{ "component", OPTION_STRING, AT(component), 0, 0, NULL, false },
	{ "host", OPTION_STRING, AT(host), 0, 0, NULL, false },
	{ "instance", OPTION_STRING, AT(instance), 0, 0, NULL, false },
	{ "labels", OPTION_MAP, AT(labels), 0, 0, NULL, false },
	{ "annotations", OPTION_MAP, AT(annotations), 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int recorder_new(lua_State *L)
{
	const char *function = "broadcaster:new_recorder";
	evrec_recorder_options options;
	struct broadcaster *b = broadcaster_check(L);
	struct recorder *recorder;
	evrec_error err;

	if (b == NULL) {
		return 3;
	}
	lua_settop(L, 2);
	evrec_recorder_options_init(&options);
	options_read(L, 2, function, rows, &options, 0);
	recorder = box_new(L, &recorder_type, sizeof(*recorder));
	recorder->type = &recorder_type;
	broadcaster_hold(L);
	recorder->b = b;
	if (!broadcaster_is_open(b)) {
		return broadcaster_closed(L);
	}
	recorder->recorder = evrec_recorder_new(b->host.b, &options, &err);
	return recorder->recorder != NULL ? 1 : broadcaster_failure(L, function, &err);
}

static int recorder_gc(lua_State *L)
{
	struct recorder *recorder = lua_touserdata(L, 1);

	evrec_recorder_free(recorder->recorder);
	recorder->recorder = NULL;
	return 0;
}

static const luaL_Reg methods[] = {
	{ "event", recorder_event },
	{ "eventf", recorder_eventf },
	{ "annotated_eventf", recorder_annotated_eventf },
	{ "past_eventf", recorder_past_eventf },
	{ "action_eventf", recorder_action_eventf },
	{ "emit", recorder_emit },
	{ "prepare", recorder_prepare },
	{ NULL, NULL },
};
static const luaL_Reg metamethods[] = { { "__gc", recorder_gc }, { NULL, NULL } };

const struct box_type recorder_type = { "evrec.recorder", NULL, metamethods };

static void push_emit_fields(lua_State *L)
{
	int i;

	lua_newtable(L);
	for (i = 1; i < FIELDS_END; i++) {
		lua_pushinteger(L, i);
		lua_setfield(L, -2, emit_names[i]);
		lua_pushstring(L, emit_names[i]);
		lua_rawseti(L, -2, i);
	}
}

void recorder_define(lua_State *L)
{
	luaL_checkstack(L, UP_LAST + LUA_MINSTACK, "evrec");
	box_define(L, &recorder_type);
	box_push_methods(L, &recorder_type);
	recording_push_upvalues(L);
	push_emit_fields(L);
	luaL_setfuncs(L, methods, UP_LAST);
	lua_pop(L, 1);
}
