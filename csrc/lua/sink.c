#include "lua/sink.h"

#include <stdio.h>
#include <string.h>

#include "lua/drive.h"
#include "lua/event.h"
#include "lua/exec.h"
#include "lua/message.h"
#include "lua/options.h"
#include "lua/seconds.h"
#include "lua/sink_options.h"

struct sink {
	evrec_sink *sink;           /* NULL: of a sink in Lua, or collected */
	bool in_lua;                /* its user value is a table of its functions, and of the strings of `options` */
	evrec_sink_options options; /* of a sink in Lua; the core copied those of others */
};

/* ---- the functions of a sink in Lua, called by the core ---- */

struct write {
	const evrec_event *event;
	const evrec_str *patch; /* NULL: the function gets the event alone */
	evrec_answer *answer;
};

/* Copies a string field of the table at the top of the stack to `to`. Leaves `to` alone if C cannot have the string there. */
static void copy_field(lua_State *L, const char *name, char *to, size_t size)
{
	size_t len;
	const char *text;

	lua_getfield(L, -1, name);
	if (lua_type(L, -1) == LUA_TSTRING) {
		text = lua_tolstring(L, -1, &len);
		if (len < size && memchr(text, '\0', len) == NULL) {
			memcpy(to, text, len);
			to[len] = '\0';
		}
	}
	lua_pop(L, 1);
}

static void stored(lua_State *L, int index, evrec_answer *answer)
{
	answer->status = 200;
	if (!lua_istable(L, index)) {
		return;
	}
	lua_getfield(L, index, "metadata");
	if (lua_istable(L, -1)) {
		copy_field(L, "name", answer->name, sizeof(answer->name));
		copy_field(L, "resourceVersion", answer->resource_version, sizeof(answer->resource_version));
	}
	lua_pop(L, 1);
}

/* The core caps the time that a sink asks to wait, which may be math.huge. */
static int64_t read_retry_after(lua_State *L, int index)
{
	int64_t ns = 0;

	if (seconds_read(L, index, &ns) != NULL) {
		return lua_type(L, index) == LUA_TNUMBER && lua_tonumber(L, index) > 0 ? INT64_MAX : 0;
	}
	return ns;
}

/*
 * Reads a failure: nil, status, retry_after, of which the status is at stack index `status`. If it is not the number of
 * an HTTP failure, the server did not answer.
 */
static void failed(lua_State *L, int status, evrec_answer *answer)
{
	double number = lua_type(L, status) == LUA_TNUMBER ? (double)lua_tonumber(L, status) : 0;

	answer->status = number >= 300 && number < 600 ? (int)number : 0;
	if (lua_type(L, status) == LUA_TSTRING) {
		message_format(answer->message, sizeof(answer->message), "%s", lua_tostring(L, status));
	} else if (answer->status == 0) {
		(void)snprintf(answer->message, sizeof(answer->message), "the sink did not answer");
	}
	answer->retry_after = read_retry_after(L, status + 1);
}

static void call_sink(lua_State *L, void *arg)
{
	const struct write *write = arg;
	const int function = lua_gettop(L);
	int results;

	callback_push_event(L, write->event);
	if (write->patch != NULL) {
		lua_pushlstring(L, write->patch->data, write->patch->len);
	}
	lua_call(L, write->patch != NULL ? 2 : 1, LUA_MULTRET);
	results = lua_gettop(L) - function + 1;
	lua_settop(L, function + 2);
	if (results <= 0 || lua_toboolean(L, function)) {
		stored(L, function, write->answer);
	} else {
		failed(L, function + 1, write->answer);
	}
}

static void run(struct hooks *hooks, enum callback which, const struct write *write)
{
	char message[CALLBACK_MESSAGE];
	evrec_answer *answer = write->answer;

	if (!callback_run(hooks->host, hooks, which, call_sink, (void *)write, message)) {
		*answer = (evrec_answer){ .status = 500 };
		(void)snprintf(answer->message, sizeof(answer->message), "%s", message);
	}
}

static void lua_create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct write write = { event, NULL, answer };

	run(ctx, CALLBACK_CREATE, &write);
}

static void lua_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	struct hooks *hooks = ctx;
	struct write write = { event, hooks->patch ? &patch : NULL, answer };

	run(hooks, hooks->patch ? CALLBACK_PATCH : hooks->update ? CALLBACK_UPDATE : CALLBACK_CREATE, &write);
}

static const evrec_sink_ops lua_ops = { .name = "lua", .create = lua_create, .patch = lua_patch };

/* ---- hooks: one for each start of a sink in a broadcaster ---- */

static int hooks_gc(lua_State *L)
{
	struct hooks *hooks = lua_touserdata(L, 1);

	evrec_sink_release(hooks->sink);
	hooks->sink = NULL;
	return 0;
}

static const luaL_Reg hooks_metamethods[] = { { "__gc", hooks_gc }, { NULL, NULL } };

const struct box_type hooks_type = { "evrec.hooks", NULL, hooks_metamethods };

struct hooks *hooks_push(lua_State *L, struct host *host)
{
	struct hooks *hooks = box_new(L, &hooks_type, sizeof(*hooks));

	hooks->host = host;
	hooks->number = SIZE_MAX;
	anchor_set(L);
	lua_pushvalue(L, 4);
	compat_setuservalue(L, -2);
	return hooks;
}

evrec_sink *sink_open(lua_State *L, int index, struct hooks *hooks, int functions, evrec_error *err)
{
	const struct sink *sink = lua_touserdata(L, index);
	int options;

	if (sink->sink != NULL) {
		return sink->sink;
	}
	if (!sink->in_lua) {
		*err = (evrec_error){ EVREC_EINVALID, "the sink was collected" };
		return NULL;
	}
	compat_getuservalue(L, index);
	options = lua_gettop(L);
	(void)functions_number(L, options, functions, CALLBACK_CREATE);
	hooks->patch = functions_number(L, options, functions, CALLBACK_PATCH);
	hooks->update = functions_number(L, options, functions, CALLBACK_UPDATE);
	lua_pop(L, 1);
	hooks->sink = evrec_sink_new(&lua_ops, hooks, &sink->options, err);
	return hooks->sink;
}

evrec_sink *sink_core(lua_State *L, int index)
{
	return ((const struct sink *)lua_touserdata(L, index))->sink;
}

/* ---- constructors ---- */

static struct sink *push_sink(lua_State *L)
{
	return box_new(L, &sink_type, sizeof(struct sink));
}

evrec_sink **sink_push(lua_State *L)
{
	return &push_sink(L)->sink;
}

static const struct option lua_rows[] = {
	{ "create", OPTION_FUNCTION, 0, 0, 0, NULL, true }, { "update", OPTION_FUNCTION, 0, 0, 0, NULL, false },
	{ "patch", OPTION_FUNCTION, 0, 0, 0, NULL, false }, { "common", OPTION_ROWS, 0, 0, 0, sink_common_rows, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

/* Lets the core check the options, so that the constructor raises. sink_open makes the sinks that are used. */
static void check_lua_options(lua_State *L, const char *function, const evrec_sink_options *options)
{
	evrec_error err;
	evrec_sink *trial = evrec_sink_new(&lua_ops, NULL, options, &err);

	if (trial == NULL) {
		options_refused(L, function, &err);
	}
	evrec_sink_release(trial);
}

int sink_new_lua(lua_State *L)
{
	const char *function = "evrec.sink.lua";
	evrec_sink_options options;
	struct sink *sink;

	lua_settop(L, 1);
	lua_newtable(L);
	evrec_sink_options_init(&options);
	drive_refuse_thread(L, function, "sinks have none; use the option 'drive' of evrec.broadcaster");
	options_read(L, 1, function, lua_rows, &options, 2);
	sink_check_series(L, function, &options);
	check_lua_options(L, function, &options);
	/* The strings that `options` borrow, or the table with one, live as long as the sink's user value. */
	lua_getfield(L, 1, "spool");
	lua_setfield(L, 2, "spool");
	lua_getfield(L, 1, "state_file");
	lua_setfield(L, 2, "state_file");
	lua_getfield(L, 1, "name");
	lua_setfield(L, 2, "name");
	sink = push_sink(L);
	sink->in_lua = true;
	sink->options = options;
	lua_pushvalue(L, 2);
	compat_setuservalue(L, -2);
	return 1;
}

struct file_settings {
	evrec_str path;
	evrec_sink_options common;
};

static const struct option file_rows[] = {
	{ "path", OPTION_STRING, offsetof(struct file_settings, path), 0, 0, NULL, true },
	{ "common", OPTION_ROWS, offsetof(struct file_settings, common), 0, 0, sink_common_rows, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int sink_new_file(lua_State *L)
{
	const char *function = "evrec.sink.file";
	struct file_settings settings = { .path = { NULL, 0 } };
	struct sink *sink;
	evrec_error err;

	lua_settop(L, 1);
	evrec_sink_options_init(&settings.common);
	drive_refuse_thread(L, function, "sinks have none; use the option 'drive' of evrec.broadcaster");
	options_read(L, 1, function, file_rows, &settings, 0);
	sink_check_series(L, function, &settings.common);
	sink = push_sink(L);
	sink->sink = evrec_sink_file(settings.path, &settings.common, &err);
	return sink->sink != NULL ? 1 : options_refused(L, function, &err);
}

struct store_settings {
	evrec_store_options options;
	evrec_sink_options common;
};

#define STORE(member) offsetof(struct store_settings, options.member)

static const struct option store_rows[] = {
	{ "path", OPTION_STRING, STORE(path), 1, 0, NULL, true },
	{ "keep", OPTION_DURATION, STORE(keep), 1, 9e9, NULL, false },
	{ "keep_bytes", OPTION_SIZE, STORE(keep_bytes), 1 << 20, (double)(SIZE_MAX / 2), NULL, false },
	{ "occurrences", OPTION_BOOLEAN, STORE(occurrences), 0, 0, NULL, false },
	{ "suppressions", OPTION_BOOLEAN, STORE(suppressions), 0, 0, NULL, false },
	{ "common", OPTION_ROWS, offsetof(struct store_settings, common), 0, 0, sink_common_rows, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int sink_new_store(lua_State *L)
{
	const char *function = "evrec.sink.store";
	struct store_settings settings;
	struct sink *sink;
	evrec_error err;

	lua_settop(L, 1);
	evrec_store_options_init(&settings.options);
	evrec_sink_options_init(&settings.common);
	drive_refuse_thread(L, function, "sinks have none; use the option 'drive' of evrec.broadcaster");
	options_read(L, 1, function, store_rows, &settings, 0);
	sink_check_series(L, function, &settings.common);
	sink = push_sink(L);
	sink->sink = evrec_sink_store(&settings.options, &settings.common, &err);
	return sink->sink != NULL ? 1 : options_refused(L, function, &err);
}

struct kubernetes_settings {
	evrec_kubernetes_options options;
	struct option_strings resume_instances;
};

#define AT(member) offsetof(struct kubernetes_settings, options.member)

static const struct option kubernetes_rows[] = {
	{ "server", OPTION_STRING, AT(server), 0, 0, NULL, true },
	{ "token", OPTION_STRING, AT(token), 0, 0, NULL, false },
	{ "token_file", OPTION_STRING, AT(token_file), 0, 0, NULL, false },
	{ "ca", OPTION_STRING, AT(ca), 0, 0, NULL, false },
	{ "client_certificate", OPTION_STRING, AT(client_certificate), 0, 0, NULL, false },
	{ "client_key", OPTION_STRING, AT(client_key), 0, 0, NULL, false },
	{ "client_certificate_file", OPTION_STRING, AT(client_certificate_file), 0, 0, NULL, false },
	{ "client_key_file", OPTION_STRING, AT(client_key_file), 0, 0, NULL, false },
	{ "insecure_skip_tls_verify", OPTION_BOOLEAN, AT(insecure_skip_tls_verify), 0, 0, NULL, false },
	{ "resolve_early", OPTION_BOOLEAN, AT(resolve_early), 0, 0, NULL, false },
	{ "max_in_flight", OPTION_UNSIGNED, AT(max_in_flight), 1, 1000, NULL, false },
	{ "common", OPTION_ROWS, AT(common), 0, 0, sink_common_rows, false },
	{ "timeout", OPTION_DURATION, AT(timeout), 0, 3600, NULL, false },
	{ "resume", OPTION_BOOLEAN, AT(resume), 0, 0, NULL, false },
	{ "resume_instances", OPTION_STRINGS, offsetof(struct kubernetes_settings, resume_instances), 0, 0, NULL,
	  false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int sink_new_kubernetes(lua_State *L)
{
	const char *function = "evrec.sink.kubernetes";
	struct kubernetes_settings settings = { .resume_instances = { NULL, 0 } };
	struct sink *sink;
	evrec_error err;
	evrec_exec exec;

	lua_settop(L, 2);
	evrec_kubernetes_options_init(&settings.options);
	options_read(L, 1, function, kubernetes_rows, &settings, 0);
	sink_check_series(L, function, &settings.options.common);
	settings.options.resume_instances = settings.resume_instances.items;
	settings.options.resume_instances_len = settings.resume_instances.len;
	sink = push_sink(L);
	if (!lua_isnil(L, 2)) {
		luaL_checktype(L, 2, LUA_TTABLE);
		exec_read(L, 2, &exec);
		settings.options.exec = &exec;
		lua_pushvalue(L, 3);
	}
	sink->sink = evrec_sink_kubernetes(&settings.options, &err);
	return sink->sink != NULL ? 1 : options_refused(L, function, &err);
}

static int sink_gc(lua_State *L)
{
	struct sink *sink = lua_touserdata(L, 1);

	evrec_sink_release(sink->sink);
	sink->sink = NULL;
	return 0;
}

static const luaL_Reg metamethods[] = { { "__gc", sink_gc }, { NULL, NULL } };

const struct box_type sink_type = { "evrec.sink", NULL, metamethods };
