#include "lua/reference.h"

#include "lua/colon.h"
#include "lua/message.h"
#include "lua/reference_cache.h"
#include "lua/suggest.h"

#include <stdio.h>
#include <string.h>

static int get(lua_State *L)
{
	lua_gettable(L, 1);
	return 1;
}

void reference_push_upvalues(lua_State *L)
{
	lua_pushcfunction(L, get);
	lua_pushliteral(L, "kind");
	lua_pushliteral(L, "apiVersion");
	lua_pushliteral(L, "name");
	lua_pushliteral(L, "namespace");
	lua_pushliteral(L, "uid");
	lua_pushliteral(L, "resourceVersion");
	lua_pushliteral(L, "fieldPath");
	lua_pushliteral(L, "metadata");
}

bool refuse_type(lua_State *L, int index, const char *argument, const char *name, const char *expected,
                 evrec_error *err)
{
	err->code = EVREC_EINVALID;
	(void)snprintf(err->message, sizeof(err->message), "%s%s: expected %s, got %s", argument, name, expected,
	               luaL_typename(L, index));
	return false;
}

/*
 * Replaces the nil at the top of the stack by the value that the metatable has for that key. Returns the type of the
 * value, or FAILED, with *err set.
 */
#define FAILED (-2)
static int ask_metatable(lua_State *L, int table, int key, const char *argument, evrec_error *err)
{
	int status;

	lua_pop(L, 1);
	lua_pushvalue(L, lua_upvalueindex(UP_GET));
	lua_pushvalue(L, table);
	lua_pushvalue(L, lua_upvalueindex(key));
	status = lua_pcall(L, 2, 1, 0);
	if (status == 0) {
		return lua_type(L, -1);
	}
	err->code = status == LUA_ERRMEM ? EVREC_EDROPPED : EVREC_EINVALID;
	message_format(err->message, sizeof(err->message), "%s: %s", argument,
	               lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "its metatable raised an error");
	return FAILED;
}

/* A table, and whether it has a metatable, which is checked once for all fields. */
struct id_table {
	int index;
	bool asks;
};

static inline struct id_table table_at(lua_State *L, int index)
{
	struct id_table table = { index, lua_getmetatable(L, index) != 0 };

	if (table.asks) {
		lua_pop(L, 1);
	}
	return table;
}

/*
 * Pushes the field whose name is the upvalue `key`, and returns its type. If the table lacks the field, asks the
 * metatable in a protected call. Returns FAILED, with *err set, if that raises.
 */
static inline int push_field(lua_State *L, struct id_table table, int key, const char *argument, evrec_error *err)
{
	int type;

	lua_pushvalue(L, lua_upvalueindex(key));
	type = compat_rawget(L, table.index);
	return type == LUA_TNIL && table.asks ? ask_metatable(L, table.index, key, argument, err) : type;
}

/* Checks a field that is neither a string nor nil. Null stands for unset; false, with *err set, for anything else. */
static bool accept_other(lua_State *L, int type, int key, const char *argument, evrec_error *err)
{
	static const char *const names[] = {
		[UP_KIND] = ".kind",
		[UP_API_VERSION] = ".apiVersion",
		[UP_NAME] = ".name",
		[UP_NAMESPACE] = ".namespace",
		[UP_UID] = ".uid",
		[UP_RESOURCE_VERSION] = ".resourceVersion",
		[UP_FIELD_PATH] = ".fieldPath",
	};

	return type != FAILED && (is_unset(L, -1) || refuse_type(L, -1, argument, names[key], "a string", err));
}

static inline bool read_string(lua_State *L, struct id_table table, int key, const char *argument, evrec_str *out,
                               evrec_error *err)
{
	const int type = push_field(L, table, key, argument, err);

	if (type == LUA_TSTRING) {
		out->data = lua_tolstring(L, -1, &out->len);
		return true;
	}
	*out = (evrec_str){ NULL, 0 };
	return type == LUA_TNIL || accept_other(L, type, key, argument, err);
}

HOT bool reference_read(lua_State *L, int index, const char *argument, const evrec_prepared_ref **ref,
                        evrec_reference *r, evrec_error *err)
{
	const struct reference *box = lua_touserdata(L, index);
	struct id_table object, metadata;
	int type;

	/* The length of a light userdata is 0, so the pointer is not dereferenced. */
	if (box != NULL && lua_rawlen(L, index) == sizeof(*box) && box->type == &reference_type) {
		*ref = box->ref;
	} else {
		*ref = NULL;
	}
	if (*ref != NULL) {
		return true;
	}
	/* A reference without one was collected, and a finalizer at the end of the Lua state still uses it. */
	if (!lua_istable(L, index)) {
		return refuse_type(L, index, argument, "", "an object or a reference", err);
	}
	object = metadata = table_at(L, index);
	type = push_field(L, object, UP_METADATA, argument, err);
	if (type == FAILED) {
		return false;
	}
	if (type == LUA_TTABLE) {
		if (lua_rawequal(L, -1, index)) {
			return refuse_type(L, -1, argument, ".metadata", "a table other than the object", err);
		}
		metadata = table_at(L, lua_gettop(L));
		r->field_path = (evrec_str){ NULL, 0 };
	} else if (type != LUA_TNIL && !is_unset(L, -1)) {
		return refuse_type(L, -1, argument, ".metadata", "a table", err);
	}
	return read_string(L, object, UP_KIND, argument, &r->kind, err) &&
	       read_string(L, object, UP_API_VERSION, argument, &r->api_version, err) &&
	       read_string(L, metadata, UP_NAME, argument, &r->name, err) &&
	       read_string(L, metadata, UP_NAMESPACE, argument, &r->ns, err) &&
	       read_string(L, metadata, UP_UID, argument, &r->uid, err) &&
	       read_string(L, metadata, UP_RESOURCE_VERSION, argument, &r->resource_version, err) &&
	       (metadata.index != index || read_string(L, object, UP_FIELD_PATH, argument, &r->field_path, err));
}

/* The fields of a reference that is no whole object, and the unused ones of an owner's reference. */
static const char *const reference_names[] = { "kind",       "apiVersion",         "name",      "namespace",
	                                       "uid",        "resourceVersion",    "fieldPath", "metadata",
	                                       "controller", "blockOwnerDeletion", NULL };

static bool is_known(lua_State *L, int index)
{
	size_t len, i;
	const char *name = lua_tolstring(L, index, &len);

	for (i = 0; reference_names[i] != NULL && (strcmp(reference_names[i], name) != 0 || strlen(name) != len); i++) {
	}
	return reference_names[i] != NULL;
}

/* Raises for the key at the top of the stack. */
static void refuse_key(lua_State *L)
{
	struct suggestion s;
	size_t i;

	colon_refuse(L, 1, REFERENCE_NAME);
	if (lua_type(L, -1) != LUA_TSTRING) {
		luaL_error(L, REFERENCE_NAME ": object: unknown field: a %s", luaL_typename(L, -1));
	}
	s = suggest_begin(lua_tostring(L, -1));
	for (i = 0; reference_names[i] != NULL; i++) {
		suggest_consider(&s, reference_names[i]);
	}
	suggest_push(L, &s, "");
	luaL_error(L, REFERENCE_NAME ": object: unknown field '%s'%s", s.word, lua_tostring(L, -1));
}

/* Raises if the table at stack index 1 is no whole object, and has a field that no reference has. */
static void check_names(lua_State *L)
{
	lua_getfield(L, 1, "metadata");
	if (!lua_istable(L, -1)) {
		for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
			if (lua_type(L, -2) != LUA_TSTRING || !is_known(L, -2)) {
				lua_pop(L, 1);
				refuse_key(L);
			}
		}
	}
	lua_pop(L, 1);
}

/* The upvalues behind those of reference_read. */
enum { UP_CACHE = UP_REFERENCE_LAST + 1, UP_KEPT };

static int reference_new(lua_State *L)
{
	void *cache = lua_touserdata(L, lua_upvalueindex(UP_CACHE));
	const evrec_prepared_ref *other = NULL;
	struct reference_place place;
	evrec_reference reference;
	evrec_error err;
	struct reference *box;

	lua_settop(L, 1);
	luaL_checkstack(L, REFERENCE_SLOTS + LUA_MINSTACK, "reference");
	if (!reference_read(L, 1, "object", &other, &reference, &err)) {
		return luaL_error(L, REFERENCE_NAME ": %s", err.message);
	}
	if (other != NULL) {
		lua_pushvalue(L, 1);
		return 1;
	}
	check_names(L);
	place = reference_cache_find(L, cache, lua_upvalueindex(UP_KEPT), &reference);
	if (place.found) {
		return 1;
	}
	box = box_new(L, &reference_type, sizeof(*box));
	box->type = &reference_type;
	box->ref = evrec_prepared_ref_new(&reference, &err);
	if (box->ref == NULL) {
		return luaL_error(L, REFERENCE_NAME ": %s", err.message);
	}
	reference_cache_keep(L, cache, lua_upvalueindex(UP_KEPT), place);
	return 1;
}

void reference_push_function(lua_State *L)
{
	reference_push_upvalues(L);
	reference_cache_push(L);
	lua_pushcclosure(L, reference_new, UP_KEPT);
}

/* Returns the field of that name, or nothing. */
static int reference_index(lua_State *L)
{
	const struct reference *box = box_check(L, 1, &reference_type);
	const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
	const evrec_field *field;

	for (field = evrec_reference_schema; box->ref != NULL && field->name[EVREC_CORE_V1] != NULL; field++) {
		if (strcmp(field->name[EVREC_CORE_V1], key) == 0) {
			const char *at = (const char *)evrec_prepared_ref_fields(box->ref) + field->offset;
			const evrec_str *value = (const evrec_str *)(const void *)at;

			if (value->len != 0) {
				lua_pushlstring(L, value->data, value->len);
				return 1;
			}
		}
	}
	return 0;
}

static int reference_newindex(lua_State *L)
{
	return luaL_error(L, REFERENCE_NAME ": read-only");
}

static int reference_tostring(lua_State *L)
{
	const struct reference *box = box_check(L, 1, &reference_type);
	const evrec_reference *r;

	if (box->ref == NULL) {
		lua_pushliteral(L, "evrec.reference");
		return 1;
	}
	r = evrec_prepared_ref_fields(box->ref);
	lua_pushfstring(L, "evrec.reference: %s %s%s%s", r->kind.data, r->ns.data, r->ns.len != 0 ? "/" : "",
	                r->name.data);
	return 1;
}

static int reference_gc(lua_State *L)
{
	struct reference *box = lua_touserdata(L, 1);

	evrec_prepared_ref_release(box->ref);
	box->ref = NULL;
	return 0;
}

static const luaL_Reg metamethods[] = {
	{ "__index", reference_index },
	{ "__newindex", reference_newindex },
	{ "__tostring", reference_tostring },
	{ "__gc", reference_gc },
	{ NULL, NULL },
};

const struct box_type reference_type = { REFERENCE_NAME, NULL, metamethods };
