#include "lua/sink.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lua/event.h"
#include "lua/options.h"

struct sink {
	evrec_sink *sink;    /* NULL: written in Lua, the functions are in the user value */
	evrec_limits limits; /* of one in Lua */
};

/* ---- a sink in Lua, as the core calls it ---- */

struct write {
	evrec_event *event;
	const evrec_str *patch; /* NULL: not asked for */
	evrec_answer *answer;
};

/* A string field of the table at the top of the stack, into room for it. One that does not fit is none. */
static void copy_field(lua_State *L, const char *name, char *to, size_t size)
{
	size_t len;
	const char *text;

	lua_getfield(L, -1, name);
	if (lua_type(L, -1) == LUA_TSTRING) {
		text = lua_tolstring(L, -1, &len);
		if (len < size) {
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

/* nil, status, retry_after. What is no HTTP status of a failure is as if nothing had been answered. */
static void failed(lua_State *L, int status, evrec_answer *answer)
{
	double number = lua_type(L, status) == LUA_TNUMBER ? (double)lua_tonumber(L, status) : 0;

	answer->status = number >= 300 && number < 600 ? (int)number : 0;
	if (lua_type(L, status) == LUA_TSTRING) {
		(void)snprintf(answer->message, sizeof(answer->message), "%s", lua_tostring(L, status));
	} else if (answer->status == 0) {
		(void)snprintf(answer->message, sizeof(answer->message), "the sink did not answer");
	}
	if (seconds_read(L, status + 1, &answer->retry_after) != NULL) {
		answer->retry_after = 0;
	}
}

static void call_sink(lua_State *L, void *arg)
{
	const struct write *write = arg;
	const int function = lua_gettop(L);
	evrec_event **slot = event_push(L);
	int results;

	*slot = evrec_event_retain(write->event);
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

static void run(struct hooks *hooks, const char *name, const struct write *write)
{
	char message[CALLBACK_MESSAGE];
	evrec_answer *answer = write->answer;

	if (!callback_run(hooks->host, hooks, name, call_sink, (void *)write, message)) {
		*answer = (evrec_answer){ .status = 500 };
		(void)snprintf(answer->message, sizeof(answer->message), "%s", message);
	}
}

static void lua_create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct write write = { (evrec_event *)event, NULL, answer };

	run(ctx, "create", &write);
}

static void lua_patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	struct hooks *hooks = ctx;
	struct write write = { (evrec_event *)event, hooks->patch ? &patch : NULL, answer };

	run(hooks, hooks->patch ? "patch" : hooks->update ? "update" : "create", &write);
}

static const evrec_sink_ops lua_ops = { .name = "lua", .create = lua_create, .patch = lua_patch };

/* ---- what a broadcaster needs ---- */

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
	anchor_set(L);
	lua_pushvalue(L, 4);
	compat_setuservalue(L, -2);
	return hooks;
}

evrec_sink *sink_open(lua_State *L, int index, struct hooks *hooks, int functions, evrec_error *err)
{
	static const char *const names[] = { "create", "patch", "update" };
	const struct sink *sink = lua_touserdata(L, index);
	size_t i;

	if (sink->sink != NULL) {
		return sink->sink;
	}
	compat_getuservalue(L, index);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		lua_getfield(L, -1, names[i]);
		lua_setfield(L, functions, names[i]);
	}
	lua_pop(L, 1);
	hooks->patch = functions_have(L, functions, "patch");
	hooks->update = functions_have(L, functions, "update");
	hooks->sink = evrec_sink_new(&lua_ops, hooks, &sink->limits, err);
	return hooks->sink;
}

/* ---- constructors ---- */

struct limit_settings {
	evrec_limits limits;
	evrec_str full;
};

#define LIMIT(member) offsetof(struct limit_settings, limits.member)

/* Of every sink. */
static const struct option limit_rows[] = {
	{ "max_pending", OPTION_SIZE, LIMIT(max_pending), 1, 1e7, NULL, false },
	{ "max_pending_bytes", OPTION_SIZE, LIMIT(max_pending_bytes), 1, (double)(SIZE_MAX / 2), NULL, false },
	{ "max_age", OPTION_DURATION, LIMIT(max_age), 0, 1e9, NULL, false },
	{ "max_tries", OPTION_UNSIGNED, LIMIT(max_tries), 0, 1e9, NULL, false },
	{ "full", OPTION_STRING, offsetof(struct limit_settings, full), 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

static bool is_word(const evrec_str *s, const char *word)
{
	return s->len == strlen(word) && memcmp(s->data, word, s->len) == 0;
}

/* What those rows have read; raises where `full` is neither of its words. */
static const evrec_limits *check_limits(lua_State *L, const char *what, struct limit_settings *settings)
{
	const evrec_str *full = &settings->full;

	if (is_word(full, "drop_oldest")) {
		settings->limits.full = EVREC_DROP_OLDEST;
	} else if (full->data != NULL && !is_word(full, "drop_newest")) {
		luaL_error(L, "%s: option 'full': expected \"drop_newest\" or \"drop_oldest\", got \"%s\"", what,
		           full->data);
	}
	return &settings->limits;
}

static struct sink *push_sink(lua_State *L)
{
	return box_new(L, &sink_type, sizeof(struct sink));
}

static const struct option lua_rows[] = {
	{ "create", OPTION_FUNCTION, 0, 0, 0, NULL, true }, { "update", OPTION_FUNCTION, 0, 0, 0, NULL, false },
	{ "patch", OPTION_FUNCTION, 0, 0, 0, NULL, false }, { "limits", OPTION_ROWS, 0, 0, 0, limit_rows, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int sink_new_lua(lua_State *L)
{
	const char *what = "evrec.sink.lua";
	struct limit_settings settings = { .full = { NULL, 0 } };
	struct sink *sink;

	lua_settop(L, 1);
	lua_newtable(L);
	evrec_limits_init(&settings.limits);
	options_read(L, 1, what, lua_rows, &settings, 2);
	(void)check_limits(L, what, &settings);
	sink = push_sink(L);
	sink->limits = settings.limits;
	lua_pushvalue(L, 2);
	compat_setuservalue(L, -2);
	return 1;
}

struct file_settings {
	evrec_str path;
	struct limit_settings limits;
};

static const struct option file_rows[] = {
	{ "path", OPTION_STRING, offsetof(struct file_settings, path), 0, 0, NULL, true },
	{ "limits", OPTION_ROWS, offsetof(struct file_settings, limits), 0, 0, limit_rows, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int sink_new_file(lua_State *L)
{
	const char *what = "evrec.sink.file";
	struct file_settings settings = { .path = { NULL, 0 } };
	struct sink *sink;
	evrec_error err;

	lua_settop(L, 1);
	evrec_limits_init(&settings.limits.limits);
	options_read(L, 1, what, file_rows, &settings, 0);
	(void)check_limits(L, what, &settings.limits);
	sink = push_sink(L);
	sink->sink = evrec_sink_file(settings.path, &settings.limits.limits, &err);
	return sink->sink != NULL ? 1 : options_refused(L, what, &err);
}

struct kubernetes_settings {
	evrec_kubernetes_options options;
	struct limit_settings limits;
	bool thread;
};

#define AT(member) offsetof(struct kubernetes_settings, options.member)

static const struct option kubernetes_rows[] = {
	{ "server", OPTION_STRING, AT(server), 0, 0, NULL, true },
	{ "token", OPTION_STRING, AT(token), 0, 0, NULL, false },
	{ "token_file", OPTION_STRING, AT(token_file), 0, 0, NULL, false },
	{ "ca", OPTION_STRING, AT(ca), 0, 0, NULL, false },
	{ "client_certificate", OPTION_STRING, AT(client_certificate), 0, 0, NULL, false },
	{ "client_key", OPTION_STRING, AT(client_key), 0, 0, NULL, false },
	{ "insecure_skip_tls_verify", OPTION_BOOLEAN, AT(insecure_skip_tls_verify), 0, 0, NULL, false },
	{ "max_in_flight", OPTION_UNSIGNED, AT(max_in_flight), 1, 1000, NULL, false },
	{ "limits", OPTION_ROWS, offsetof(struct kubernetes_settings, limits), 0, 0, limit_rows, false },
	{ "timeout", OPTION_DURATION, AT(timeout), 0, 3600, NULL, false },
	{ "spool", OPTION_STRING, AT(spool), 0, 0, NULL, false },
	{ "thread", OPTION_BOOLEAN, offsetof(struct kubernetes_settings, thread), 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int sink_new_kubernetes(lua_State *L)
{
	const char *what = "evrec.sink.kubernetes";
	struct kubernetes_settings settings = { .thread = true };
	struct sink *sink;
	evrec_error err;

	lua_settop(L, 1);
	evrec_kubernetes_options_init(&settings.options);
	evrec_limits_init(&settings.limits.limits);
	options_read(L, 1, what, kubernetes_rows, &settings, 0);
	settings.options.limits = *check_limits(L, what, &settings.limits);
	settings.options.threadless = !settings.thread;
	sink = push_sink(L);
	sink->sink = evrec_sink_kubernetes(&settings.options, &err);
	return sink->sink != NULL ? 1 : options_refused(L, what, &err);
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
