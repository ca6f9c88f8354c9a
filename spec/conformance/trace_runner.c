/*
 * trace_runner.c - runs traces through evrec's correlator, as the oracle runs them through client-go's. It reads traces
 * on standard input and writes one line for every line that it reads. README.md defines the format of both.
 */
#include "runner.h"

#include "evrec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The correlated event of a step. A later step of the trace may carry the server's answer to it. */
struct result {
	evrec_event *event; /* NULL if the step was no event, or the event was skipped */
	uint64_t handle;
};

struct trace {
	evrec_correlator *correlator;
	struct result *results; /* indexed by the step's id */
	size_t results_len;
	json_t *names; /* maps every event name seen to the name to print for it */
};

/* ---- from JSON ---- */

static evrec_str text(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return (evrec_str){ json_string_value(value), json_string_length(value) };
}

static int64_t timestamp(const json_t *object, const char *key)
{
	evrec_str s = text(object, key);
	int64_t ns = EVREC_UNSET;

	if (s.len != 0 && !evrec_rfc3339_parse(s, &ns)) {
		die("a timestamp is not RFC 3339");
	}
	return ns;
}

/* The strings of the result stay owned by `json`. */
static evrec_fields event_of(const json_t *json)
{
	const json_t *metadata = json_object_get(json, "metadata"), *object = json_object_get(json, "involvedObject");
	const json_t *source = json_object_get(json, "source");
	evrec_fields f;

	evrec_fields_init(&f);
	f.name = text(metadata, "name");
	f.ns = text(metadata, "namespace");
	f.resource_version = text(metadata, "resourceVersion");
	f.regarding = (evrec_reference){
		.kind = text(object, "kind"),
		.api_version = text(object, "apiVersion"),
		.name = text(object, "name"),
		.ns = text(object, "namespace"),
		.uid = text(object, "uid"),
		.resource_version = text(object, "resourceVersion"),
		.field_path = text(object, "fieldPath"),
	};
	f.type = text(json, "type");
	f.reason = text(json, "reason");
	f.action = text(json, "action");
	f.note = text(json, "message");
	f.component = text(source, "component");
	f.host = text(source, "host");
	f.controller = text(json, "reportingComponent");
	f.instance = text(json, "reportingInstance");
	f.first = timestamp(json, "firstTimestamp");
	f.last = timestamp(json, "lastTimestamp");
	f.count = (int32_t)json_integer_value(json_object_get(json, "count"));
	return f;
}

/* ---- custom functions: the same as in oracle/oracle.go ---- */

static evrec_str joined(char *out, size_t size, evrec_str a, const char *between, evrec_str b)
{
	size_t middle = strlen(between);

	if (a.len + middle + b.len > size) {
		die("a custom key or message is too long");
	}
	if (a.len != 0) {
		memcpy(out, a.data, a.len);
	}
	memcpy(out + a.len, between, middle);
	if (b.len != 0) {
		memcpy(out + a.len + middle, b.data, b.len);
	}
	return (evrec_str){ out, a.len + middle + b.len };
}

static bool key_func(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	static char key[4096];

	(void)ctx;
	*aggregate_key = joined(key, sizeof(key), event->type, "\x01", event->reason);
	/* If the local key is not set (data NULL), evrec takes the message. The oracle takes an empty key. */
	*local_key = event->regarding.name.data != NULL ? event->regarding.name : (evrec_str){ "", 0 };
	return true;
}

static bool message_func(void *ctx, const evrec_fields *event, evrec_str *message)
{
	static char out[4096];

	(void)ctx;
	*message = joined(out, sizeof(out), (evrec_str){ NULL, 0 }, "together: ", event->note);
	return true;
}

static bool spam_key_func(void *ctx, const evrec_fields *event, evrec_str *key)
{
	static char out[4096];

	(void)ctx;
	*key = joined(out, sizeof(out), event->regarding.name, "\x01", event->reason);
	return true;
}

/* ---- a trace ---- */

void trace_end(struct trace *trace)
{
	size_t i;

	for (i = 0; i < trace->results_len; i++) {
		evrec_event_release(trace->results[i].event);
	}
	free(trace->results);
	json_decref(trace->names);
	evrec_correlator_free(trace->correlator);
	*trace = (struct trace){ 0 };
}

void trace_begin(struct trace *trace, const json_t *line)
{
	evrec_correlator_options options;
	evrec_error err;

	trace_end(trace);
	evrec_correlator_options_init(&options);
	options.lru_cache_size = (size_t)json_integer_value(json_object_get(line, "lru_cache_size"));
	options.burst_size = (unsigned)json_integer_value(json_object_get(line, "burst_size"));
	options.qps = json_number_value(json_object_get(line, "qps"));
	options.max_events = (unsigned)json_integer_value(json_object_get(line, "max_events"));
	options.max_interval = json_integer_value(json_object_get(line, "max_interval_in_seconds")) * EVREC_SECOND;
	options.key_func = json_is_true(json_object_get(line, "key_func")) ? key_func : NULL;
	options.message_func = json_is_true(json_object_get(line, "message_func")) ? message_func : NULL;
	options.spam_key_func = json_is_true(json_object_get(line, "spam_key_func")) ? spam_key_func : NULL;
	trace->names = json_object();
	trace->correlator = evrec_correlator_new(&options, &err);
	if (trace->correlator == NULL) {
		die(err.message);
	}
}

static struct result *result_at(struct trace *trace, size_t id)
{
	if (id >= trace->results_len) {
		size_t len = id * 2 + 64;

		trace->results = realloc(trace->results, len * sizeof(*trace->results));
		if (trace->results == NULL) {
			die("no memory");
		}
		memset(trace->results + trace->results_len, 0, (len - trace->results_len) * sizeof(*trace->results));
		trace->results_len = len;
	}
	return &trace->results[id];
}

static json_t *string_of(evrec_str s)
{
	return json_stringn(s.len == 0 ? "" : s.data, s.len);
}

static json_t *nanoseconds(int64_t ns)
{
	return ns == EVREC_UNSET ? json_null() : json_sprintf("%lld", (long long)ns);
}

static json_t *patch_of(const evrec_correlation *correlation)
{
	size_t len;
	char *patch;
	json_t *json;

	if (!correlation->patch) {
		return json_null();
	}
	patch = evrec_fields_patch(&correlation->event, &len);
	json = patch == NULL ? NULL : json_loadb(patch, len, JSON_ALLOW_NUL, NULL);
	evrec_free(patch);
	if (json == NULL) {
		die("a patch is not JSON");
	}
	return json;
}

/* Records a name that an event or an answer brought. The correlator generated every other name. */
static void name_add(struct trace *trace, evrec_str name)
{
	if (name.len != 0) {
		json_object_setn_new(trace->names, name.data, name.len, string_of(name));
	}
}

/*
 * The name to print for a correlated event: "made at ID" if the correlator generated the name in step ID, else the name
 * itself. This does not check that generated names are unique, since a clock that goes back to an earlier time may
 * repeat one. The unit tests of event/name.c check uniqueness.
 */
static json_t *name_shown(struct trace *trace, const evrec_fields *event, size_t id)
{
	evrec_str name = event->name;
	json_t *shown = json_object_getn(trace->names, name.data, name.len);

	if (shown == NULL || (event->count == 1 && strncmp(json_string_value(shown), "made at ", 8) == 0)) {
		shown = json_sprintf("made at %zu", id);
		json_object_setn_new(trace->names, name.data, name.len, shown);
	}
	return json_incref(shown);
}

static json_t *correlate(struct trace *trace, size_t id, int64_t now, const json_t *json)
{
	evrec_fields given = event_of(json);
	evrec_correlation correlation;
	const evrec_fields *f = &correlation.event;
	struct result *result = result_at(trace, id);
	json_t *out;

	name_add(trace, given.name);
	if (evrec_correlator_correlate(trace->correlator, &given, now, &correlation) != 0) {
		die("evrec_correlator_correlate failed");
	}
	out = json_pack("{s:b, s:s, s:o, s:i, s:o, s:o}", "skip", correlation.skip, "why",
	                evrec_why_name(correlation.why), "name", name_shown(trace, f, id), "count", f->count,
	                "resourceVersion", string_of(f->resource_version), "firstTimestamp", nanoseconds(f->first));
	if (correlation.skip) {
		return out;
	}
	result->event = evrec_event_new(f);
	result->handle = correlation.handle;
	json_object_update_new(out,
	                       json_pack("{s:o, s:o, s:o, s:[o, o, o, o, o, o, o, o, o, o]}", "lastTimestamp",
	                                 nanoseconds(f->last), "message", string_of(f->note), "patch",
	                                 patch_of(&correlation), "kept", string_of(f->ns), string_of(f->regarding.name),
	                                 string_of(f->regarding.field_path), string_of(f->type), string_of(f->reason),
	                                 string_of(f->action), string_of(f->component), string_of(f->host),
	                                 string_of(f->controller), string_of(f->instance)));
	return out;
}

static void answer(struct trace *trace, const json_t *line)
{
	struct result *result = result_at(trace, (size_t)json_integer_value(json_object_get(line, "answer")));
	evrec_fields f;

	if (result->event == NULL) {
		return;
	}
	f = *evrec_event_fields(result->event);
	if (json_object_get(line, "name") != NULL) {
		f.name = text(line, "name");
		name_add(trace, f.name);
	}
	f.resource_version = text(line, "resourceVersion");
	if (json_is_true(json_object_get(line, "handle"))) {
		evrec_correlator_answered(trace->correlator, result->handle, f.name, f.resource_version);
	} else if (evrec_correlator_update_state(trace->correlator, &f) != 0) {
		die("evrec_correlator_update_state failed");
	}
}

json_t *trace_step(struct trace *trace, const json_t *line)
{
	const json_t *event = json_object_get(line, "event"), *update = json_object_get(line, "update");
	const char *t = json_string_value(json_object_get(line, "t"));
	size_t id = (size_t)json_integer_value(json_object_get(line, "id"));
	evrec_fields f;

	if (trace->correlator == NULL || t == NULL) {
		die(t == NULL ? "a step has no time" : "a step comes before the options");
	}
	if (event != NULL) {
		return correlate(trace, id, strtoll(t, NULL, 10), event);
	}
	if (update != NULL) {
		f = event_of(update);
		name_add(trace, f.name);
		if (evrec_correlator_update_state(trace->correlator, &f) != 0) {
			die("evrec_correlator_update_state failed");
		}
	} else {
		answer(trace, line);
	}
	return json_object();
}

int main(void)
{
	struct trace trace = { 0 };

	return runner_run(&trace);
}
