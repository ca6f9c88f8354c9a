/*
 * Bytes choose steps of the correlator, and each result is compared with that of the model in spec/support/model.lua.
 * Caches hold few entries, fields have few values, and the time is often just at the end of an interval.
 */
#include "fuzz_lua.h"

#define REMEMBERED 4             /* names and handles of so many latest results */
#define EXACT (INT64_C(1) << 53) /* up to here a double holds every nanosecond */

struct run {
	lua_State *L;
	struct input *in;
	evrec_correlator *correlator;
	evrec_correlator_options options;
	evrec_fields event; /* of the next correlate */
	int64_t now;
	bool stepped_back;
	int answers[4]; /* indexes into `words`; -1: the callback fails */
	char names[REMEMBERED][300];
	uint64_t handles[REMEMBERED];
	size_t results;
};

static const char *const words[] = { "", "a", "b", "ab" };
static const char *const messages[] = { "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7",
	                                "m8", "m9", "ma", "mb", "mc", "md", "me", "" };

enum answer_name { KEY, LOCAL_KEY, MESSAGE, SPAM_KEY };
static const char *const answer_names[] = { "key", "local_key", "message", "spam_key" };

/* ---- callbacks, the same for the correlator and the model ---- */

static bool answer(const struct run *run, enum answer_name name, evrec_str *text)
{
	if (run->answers[name] < 0) {
		return false;
	}
	*text = str_from(words[run->answers[name]]);
	return true;
}

static bool key_func(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	evrec_correlation result;
	struct run *run = ctx;

	CHECK(evrec_correlator_correlate(run->correlator, event, run->now, &result) == EVREC_EINVALID);
	return answer(run, KEY, aggregate_key) && answer(run, LOCAL_KEY, local_key);
}

static bool message_func(void *ctx, const evrec_fields *event, evrec_str *message)
{
	struct run *run = ctx;

	CHECK(evrec_correlator_update_state(run->correlator, event) == EVREC_EINVALID);
	return answer(run, MESSAGE, message);
}

static bool spam_key_func(void *ctx, const evrec_fields *event, evrec_str *key)
{
	(void)event;
	return answer(ctx, SPAM_KEY, key);
}

/* ---- the model ---- */

static void push_function(const struct run *run, const char *name)
{
	lua_getfield(run->L, 1, name);
}

static void push_str(const struct run *run, evrec_str s)
{
	lua_pushlstring(run->L, s.len == 0 ? "" : s.data, s.len);
}

/* Any time that no event has may stand for unset. */
static int64_t to_model_time(int64_t time)
{
	return time == EVREC_UNSET ? -1 : time - T0;
}

static void compare_stats(const struct run *run)
{
	evrec_correlator_stats s;
	const uint64_t *why = s.why;

	evrec_correlator_get_stats(run->correlator, &s);
	push_function(run, "stats");
	lua_pushinteger(run->L, (lua_Integer)s.correlated);
	lua_pushinteger(run->L, (lua_Integer)why[EVREC_NEW]);
	lua_pushinteger(run->L, (lua_Integer)why[EVREC_DUPLICATE]);
	lua_pushinteger(run->L, (lua_Integer)why[EVREC_AGGREGATED]);
	lua_pushinteger(run->L, (lua_Integer)why[EVREC_RATE_LIMITED]);
	lua_pushinteger(run->L, (lua_Integer)s.callback_errors);
	lua_pushinteger(run->L, (lua_Integer)s.aggregates);
	lua_pushinteger(run->L, (lua_Integer)s.observed);
	lua_pushinteger(run->L, (lua_Integer)s.buckets);
	fuzz_lua_call(run->L, 9, 0);
}

/* False: the run is over. */
static bool compare(const struct run *run, const evrec_correlation *result)
{
	bool go_on;

	push_function(run, "correlate");
	lua_pushinteger(run->L, to_model_time(run->now));
	lua_pushboolean(run->L, run->stepped_back);
	lua_pushstring(run->L, evrec_why_name(result->why));
	lua_pushboolean(run->L, result->skip);
	lua_pushboolean(run->L, result->patch);
	lua_pushinteger(run->L, (lua_Integer)result->handle);
	push_str(run, result->event.name);
	push_str(run, result->event.resource_version);
	push_str(run, result->event.note);
	lua_pushinteger(run->L, result->event.count);
	lua_pushinteger(run->L, to_model_time(result->event.first));
	lua_pushinteger(run->L, to_model_time(result->event.last));
	fuzz_lua_call(run->L, 12, 1);
	go_on = lua_toboolean(run->L, -1);
	lua_pop(run->L, 1);
	return go_on;
}

/* ---- steps ---- */

static void set_text(struct run *run, evrec_str *field, const char *name, const char *value)
{
	*field = str_from(value);
	push_function(run, "set");
	lua_pushstring(run->L, name);
	lua_pushstring(run->L, value);
	fuzz_lua_call(run->L, 2, 0);
}

static void set_number(struct run *run, const char *name, int64_t value)
{
	push_function(run, "set");
	lua_pushstring(run->L, name);
	lua_pushinteger(run->L, value);
	fuzz_lua_call(run->L, 2, 0);
}

static void set_times(struct run *run, int64_t first, int64_t last)
{
	run->event.first = first;
	run->event.last = last;
	set_number(run, "first", to_model_time(first));
	set_number(run, "last", to_model_time(last));
}

static void set_count(struct run *run, int32_t count)
{
	run->event.count = count;
	set_number(run, "count", count);
}

#define AT(member) offsetof(evrec_fields, member)
static const struct {
	const char *name;
	size_t offset;
} fields[] = {
	{ "component", AT(component) },
	{ "host", AT(host) },
	{ "kind", AT(regarding.kind) },
	{ "namespace", AT(regarding.ns) },
	{ "object", AT(regarding.name) },
	{ "uid", AT(regarding.uid) },
	{ "api_version", AT(regarding.api_version) },
	{ "type", AT(type) },
	{ "field_path", AT(regarding.field_path) },
	{ "reason", AT(reason) },
	{ "controller", AT(controller) },
	{ "instance", AT(instance) },
	{ "resource_version", AT(resource_version) },
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static evrec_str *field_at(struct run *run, size_t i)
{
	return (evrec_str *)(void *)((char *)&run->event + fields[i].offset);
}

/* The name of one of the latest results, or an unknown name. */
static const char *some_name(const struct run *run, uint8_t choice)
{
	size_t i = choice % (REMEMBERED + 4);

	return i < REMEMBERED ? run->names[i] : words[i - REMEMBERED];
}

static void set_field(struct run *run)
{
	const int32_t counts[] = { 0, 1, 7, INT32_MAX - 1 };
	uint8_t choice = input_byte(run->in);
	size_t i = choice % 16;

	choice /= 16;
	if (i < FIELDS) {
		set_text(run, field_at(run, i), fields[i].name, words[choice % 4]);
	} else if (i == FIELDS) {
		set_text(run, &run->event.name, "name", some_name(run, choice));
	} else if (i == FIELDS + 1) {
		set_count(run, counts[choice % 4]);
	} else {
		set_times(run, choice & 1 ? EVREC_UNSET : run->now - choice, choice & 2 ? EVREC_UNSET : run->now);
	}
}

static bool correlate(struct run *run)
{
	size_t slot = run->results++ % REMEMBERED;
	char name[sizeof(run->names[0])];
	evrec_correlation result;
	bool go_on;

	CHECK(evrec_correlator_correlate(run->correlator, &run->event, run->now, &result) == 0);
	CHECK(result.event.name.len < sizeof(name));
	go_on = compare(run, &result);
	/* The name of the event may be one of the remembered names. */
	(void)snprintf(name, sizeof(name), "%.*s", (int)result.event.name.len, result.event.name.data);
	set_text(run, &run->event.name, "name", "");
	memcpy(run->names[slot], name, sizeof(name));
	run->handles[slot] = result.handle;
	return go_on;
}

/* The time until the next token, the interval of an aggregate, and one nanosecond less or more. */
static void pass_time(struct run *run)
{
	uint8_t choice = input_byte(run->in);
	const int64_t token = run->options.qps > 0 ? (int64_t)(1e9 / (double)(float)run->options.qps) : EVREC_SECOND;
	const int64_t steps[] = { 1, run->options.max_interval, token, token * 3, EVREC_SECOND, EVREC_SECOND * 1000 };
	const size_t n = sizeof(steps) / sizeof(steps[0]);
	int64_t step = steps[choice % n] + (int)(choice / n % 3) - 1;

	if (choice >= 240) {
		step = -step;
	}
	/* The model has doubles. */
	if (run->now - T0 + step < EXACT) {
		run->stepped_back = run->stepped_back || step < 0;
		run->now += step;
	}
}

static void update_state(struct run *run)
{
	uint8_t choice = input_byte(run->in);
	evrec_fields state = run->event;

	state.name = str_from(some_name(run, choice));
	state.resource_version = str_from(words[choice / 8 % 4]);
	state.count = choice / 32;
	CHECK(evrec_correlator_update_state(run->correlator, &state) == 0);
	push_function(run, "update_state");
	push_str(run, state.name);
	push_str(run, state.resource_version);
	lua_pushinteger(run->L, state.count);
	fuzz_lua_call(run->L, 3, 0);
}

static void answered(struct run *run)
{
	uint8_t choice = input_byte(run->in);
	uint64_t handle = run->handles[choice % REMEMBERED];
	evrec_str name = str_from(some_name(run, choice / REMEMBERED));
	evrec_str version = str_from(words[choice / 64]);

	evrec_correlator_answered(run->correlator, handle, name, version);
	push_function(run, "answered");
	lua_pushinteger(run->L, (lua_Integer)handle);
	push_str(run, name);
	push_str(run, version);
	fuzz_lua_call(run->L, 3, 0);
}

/* Sets the answers of callbacks for the next steps. A key_func that fails has neither key. */
static void set_answer(struct run *run)
{
	uint8_t choice = input_byte(run->in);
	enum answer_name name = choice % 4;

	run->answers[name] = choice / 4 % 5 - 1;
	push_function(run, "answer");
	lua_pushstring(run->L, answer_names[name]);
	if (run->answers[name] < 0) {
		lua_pushnil(run->L);
	} else {
		lua_pushstring(run->L, words[run->answers[name]]);
	}
	fuzz_lua_call(run->L, 2, 0);
}

static bool step(struct run *run)
{
	uint8_t choice = input_byte(run->in);
	int times = choice / 8 % 4 + 1;

	switch (choice % 8) {
	case 0:
	case 1:
		set_text(run, &run->event.note, "message", messages[choice / 8 % 16]);
		return correlate(run);
	case 2:
		while (times-- > 0) {
			if (!correlate(run)) {
				return false;
			}
		}
		break;
	case 3:
		set_field(run);
		break;
	case 4:
		pass_time(run);
		break;
	case 5:
		update_state(run);
		break;
	case 6:
		answered(run);
		break;
	default:
		set_answer(run);
		break;
	}
	return true;
}

/* ---- a run ---- */

static void read_options(struct run *run)
{
	static const double rates[] = { 0, 1.0 / 300, 0.5, 3, 1e9, 0.1, 1e-4, 7e5 };
	const int64_t intervals[] = { 0, 1, EVREC_SECOND, 600 * EVREC_SECOND };
	uint8_t sizes = input_byte(run->in), rate = input_byte(run->in), callbacks = input_byte(run->in);
	evrec_correlator_options *o = &run->options;

	evrec_correlator_options_init(o);
	o->lru_cache_size = 1 + sizes % 4;
	o->burst_size = 1 + sizes / 4 % 4;
	o->max_events = 1 + sizes / 16 % 4;
	o->qps = rates[rate % 8];
	o->max_interval = intervals[rate / 8 % 4];
	o->key_func = callbacks & 1 ? key_func : NULL;
	o->message_func = callbacks & 2 ? message_func : NULL;
	o->spam_key_func = callbacks & 4 ? spam_key_func : NULL;
	o->ctx = run;
	push_function(run, "begin");
	lua_pushinteger(run->L, (lua_Integer)o->lru_cache_size);
	lua_pushinteger(run->L, o->burst_size);
	lua_pushnumber(run->L, o->qps);
	lua_pushinteger(run->L, o->max_events);
	lua_pushinteger(run->L, o->max_interval);
	lua_pushboolean(run->L, callbacks & 1);
	lua_pushboolean(run->L, callbacks & 2);
	lua_pushboolean(run->L, callbacks & 4);
	fuzz_lua_call(run->L, 8, 0);
}

static void first_event(struct run *run)
{
	evrec_fields *e = &run->event;
	size_t i;

	evrec_fields_init(e);
	for (i = 0; i < FIELDS; i++) {
		set_text(run, field_at(run, i), fields[i].name, "");
	}
	set_text(run, &e->name, "name", "");
	set_text(run, &e->note, "message", messages[0]);
	set_times(run, run->now, run->now);
	set_count(run, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static lua_State *L;
	struct input in = { .data = data, .left = size };
	struct run run = { .in = &in, .now = T0, .answers = { -1, -1, -1, -1 } };

	if (L == NULL) {
		L = fuzz_lua_open("spec/fuzz/correlator.lua");
	}
	run.L = L;
	read_options(&run);
	run.correlator = evrec_correlator_new(&run.options, NULL);
	CHECK(run.correlator != NULL);
	first_event(&run);
	while (in.left > 0 && step(&run)) {
		compare_stats(&run);
	}
	evrec_correlator_free(run.correlator);
	CHECK(fuzz_blocks == 0);
	return 0;
}
