/*
 * series_runner.c - runs traces of series through evrec's recorder and a sink of events.k8s.io/v1, as the oracle runs them
 * through client-go's tools/events. It reads traces on standard input and writes one line for every line that it reads.
 * README.md defines the format of both.
 */
#include "runner.h"

#include "evrec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START (INT64_C(946684800) * EVREC_SECOND) /* 2000-01-01T00:00:00Z, when a trace begins */
#define TICK (360 * EVREC_SECOND)                 /* finish_time, of which refresh_interval is a multiple */

struct trace {
	evrec_clock *clock;
	evrec_broadcaster *broadcaster;
	evrec_sink *sink;
	evrec_watch *watch;
	struct source {
		char *controller, *instance;
		evrec_recorder *recorder;
	} * sources;
	size_t sources_len;
	json_t *made;     /* an event's name: the step that recorded it first */
	json_t *stored;   /* the names of the events that the server has */
	json_t *requests; /* of the current step */
	json_int_t step;
	bool rejects; /* creates */
};

/* ---- the server ---- */

/* Removes what is null or empty. */
static void prune(json_t *object)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(object, next, key, value)
	{
		prune(value);
		if (json_is_null(value) || (json_is_object(value) && json_object_size(value) == 0)) {
			json_object_del(object, key);
		}
	}
}

/* An instance that ends with the name of this machine is shown without that. */
static void hide_host_name(json_t *body)
{
	json_t *instance = json_object_get(body, "reportingInstance");
	char host[256];
	size_t len = json_string_length(instance), host_len;

	if (gethostname(host, sizeof(host)) != 0) {
		die("no host name");
	}
	host_len = strlen(host);
	if (len > host_len && strcmp(json_string_value(instance) + len - host_len, host) == 0) {
		json_object_set_new(body, "reportingInstance",
		                    json_stringn(json_string_value(instance), len - host_len));
	}
}

static json_t *body_of(const char *text, size_t len)
{
	json_t *body = json_loadb(text, len, JSON_ALLOW_NUL, NULL);

	if (body == NULL) {
		die("a body is not JSON");
	}
	json_object_del(body, "apiVersion");
	json_object_del(body, "kind");
	json_object_del(json_object_get(body, "metadata"), "name");
	json_object_del(json_object_get(body, "regarding"), "resourceVersion");
	json_object_del(json_object_get(body, "regarding"), "fieldPath");
	json_object_del(json_object_get(body, "related"), "resourceVersion");
	json_object_del(json_object_get(body, "related"), "fieldPath");
	hide_host_name(body);
	prune(body);
	return body;
}

static void add_request(struct trace *trace, const char *verb, const char *name, json_t *body, int status)
{
	json_t *series = json_object_get(body, "series"), *state = json_object_get(series, "state"), *request;
	json_int_t made = json_integer_value(json_object_get(trace->made, name));
	int64_t at = evrec_clock_now(trace->clock) - START;

	request = json_pack("{s:I, s:I, s:o, s:s, s:o, s:o, s:i}", "sort_at", (json_int_t)at, "sort_made", made, "at",
	                    json_sprintf("%lld", (long long)at), "verb", verb, "name",
	                    json_sprintf("made at %lld", (long long)made), "body", body, "status", status);
	if (state != NULL) {
		json_object_set(request, "state", state);
		json_object_del(series, "state");
	}
	json_array_append_new(trace->requests, request);
}

static const char *name_of(const evrec_event *event)
{
	static char name[256];
	evrec_str s = evrec_event_fields(event)->name;

	if (s.len == 0 || s.len >= sizeof(name)) {
		die("a request has no name");
	}
	memcpy(name, s.data, s.len);
	name[s.len] = '\0';
	return name;
}

static void answer_with(evrec_answer *answer, int status, const char *name)
{
	answer->status = status;
	if (status < 300) {
		(void)snprintf(answer->name, sizeof(answer->name), "%s", name);
		(void)snprintf(answer->resource_version, sizeof(answer->resource_version), "1");
	}
}

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct trace *trace = ctx;
	const char *name = name_of(event);
	int status = 201;
	size_t len;
	char *text = evrec_fields_json(evrec_event_fields(event), EVREC_EVENTS_V1, &len);

	if (text == NULL) {
		die("no memory");
	}
	if (json_object_get(trace->stored, name) != NULL) {
		die("an event was made twice");
	}
	if (json_object_get(trace->made, name) == NULL) {
		json_object_set_new(trace->made, name, json_integer(trace->step));
	}
	if (trace->rejects) {
		status = 400;
	} else {
		json_object_set_new(trace->stored, name, json_true());
	}
	add_request(trace, "create", name, body_of(text, len), status);
	answer_with(answer, status, name);
	evrec_free(text);
}

static void patch(void *ctx, const evrec_event *event, evrec_str body, evrec_answer *answer)
{
	struct trace *trace = ctx;
	const char *name = name_of(event);
	int status = json_object_get(trace->stored, name) != NULL ? 200 : 404;

	add_request(trace, "patch", name, body_of(body.data, body.len), status);
	answer_with(answer, status, name);
}

static void forget(struct trace *trace, json_int_t step)
{
	const char *name;
	json_t *made;

	json_object_foreach(trace->made, name, made)
	{
		if (json_integer_value(made) == step) {
			json_object_del(trace->stored, name);
		}
	}
}

/* ---- a trace ---- */

void trace_end(struct trace *trace)
{
	size_t i;

	evrec_broadcaster_free(trace->broadcaster);
	for (i = 0; i < trace->sources_len; i++) {
		evrec_recorder_free(trace->sources[i].recorder);
		free(trace->sources[i].controller);
		free(trace->sources[i].instance);
	}
	free(trace->sources);
	evrec_watch_free(trace->watch);
	evrec_sink_release(trace->sink);
	evrec_clock_release(trace->clock);
	json_decref(trace->made);
	json_decref(trace->stored);
	json_decref(trace->requests);
	*trace = (struct trace){ 0 };
}

static void on_error(void *ctx, const char *message, const char *name)
{
	(void)ctx;
	if (strcmp(name, "rejected") != 0) {
		die(message);
	}
}

void trace_begin(struct trace *trace, const json_t *line)
{
	static const evrec_sink_ops ops = { .create = create, .patch = patch };
	evrec_broadcaster_options options;
	evrec_sink_options sink;
	evrec_error err;

	trace_end(trace);
	trace->made = json_object();
	trace->stored = json_object();
	trace->requests = json_array();
	trace->clock = evrec_clock_fake(START);
	evrec_broadcaster_options_init(&options);
	options.clock = trace->clock;
	options.on_error = on_error;
	trace->broadcaster = evrec_broadcaster_new(&options, &err);
	if (trace->broadcaster == NULL) {
		die(err.message);
	}
	evrec_sink_options_init(&sink);
	sink.api = EVREC_SINK_EVENTS_V1;
	sink.series.max_series = (size_t)json_integer_value(json_object_get(line, "max_series"));
	trace->sink = evrec_sink_new(&ops, trace, &sink, &err);
	if (trace->sink == NULL) {
		die(err.message);
	}
	trace->watch = evrec_broadcaster_start_recording_to_sink(trace->broadcaster, trace->sink, NULL, &err);
	if (trace->watch == NULL) {
		die(err.message);
	}
}

/* Polls until a poll makes no request. */
static void poll_all(struct trace *trace)
{
	size_t before;

	do {
		before = json_array_size(trace->requests);
		evrec_broadcaster_poll(trace->broadcaster);
	} while (json_array_size(trace->requests) > before);
}

/* Advances the clock to t. evrec is polled at every tick on the way, and before what happens at t. */
static void advance(struct trace *trace, int64_t t)
{
	int64_t now = evrec_clock_now(trace->clock) - START;

	while (now < t) {
		now += TICK - now % TICK;
		now = now < t ? now : t;
		evrec_clock_set(trace->clock, START + now);
		poll_all(trace);
	}
}

static evrec_recorder *recorder_of(struct trace *trace, const char *controller, const char *instance)
{
	evrec_recorder_options options;
	struct source *source;
	evrec_error err;
	size_t i;

	for (i = 0; i < trace->sources_len; i++) {
		source = &trace->sources[i];
		if (strcmp(source->controller, controller) == 0 && strcmp(source->instance, instance) == 0) {
			return source->recorder;
		}
	}
	trace->sources = realloc(trace->sources, ++trace->sources_len * sizeof(*source));
	if (trace->sources == NULL) {
		die("no memory");
	}
	source = &trace->sources[i];
	evrec_recorder_options_init(&options);
	options.component = evrec_string(controller);
	options.instance = evrec_string(instance);
	*source = (struct source){ strdup(controller), strdup(instance),
		                   evrec_recorder_new(trace->broadcaster, &options, &err) };
	if (source->recorder == NULL) {
		die(err.message);
	}
	return source->recorder;
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value == NULL ? "" : value;
}

static evrec_reference reference_of(const json_t *json)
{
	return (evrec_reference){
		.kind = evrec_string(text(json, "kind")),
		.api_version = evrec_string(text(json, "apiVersion")),
		.name = evrec_string(text(json, "name")),
		.ns = evrec_string(text(json, "namespace")),
		.uid = evrec_string(text(json, "uid")),
		.resource_version = evrec_string(text(json, "resourceVersion")),
		.field_path = evrec_string(text(json, "fieldPath")),
	};
}

static void record(struct trace *trace, const json_t *event)
{
	evrec_recorder *recorder =
		recorder_of(trace, text(event, "reportingController"), text(event, "reportingInstance"));
	evrec_reference regarding = reference_of(json_object_get(event, "regarding"));
	evrec_reference related = reference_of(json_object_get(event, "related"));
	evrec_emit emit;
	evrec_error err;

	evrec_emit_init(&emit);
	emit.regarding = &regarding;
	emit.related = json_object_get(event, "related") == NULL ? NULL : &related;
	emit.type = evrec_string(text(event, "type"));
	emit.reason = evrec_string(text(event, "reason"));
	emit.action = evrec_string(text(event, "action"));
	emit.note = evrec_string(text(event, "note"));
	if (evrec_recorder_emit(recorder, &emit, &err) != 0) {
		die(err.message);
	}
}

static int by_time_and_event(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	static const char *const keys[] = { "sort_at", "sort_made", "sort_nth" };
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		json_int_t k = json_integer_value(json_object_get(x, keys[i]));
		json_int_t l = json_integer_value(json_object_get(y, keys[i]));

		if (k != l) {
			return k < l ? -1 : 1;
		}
	}
	return 0;
}

/* The requests of the step by time and event. */
static json_t *sorted_requests(const struct trace *trace)
{
	size_t n = json_array_size(trace->requests), i;
	json_t **list = calloc(n + 1, sizeof(*list)), *out = json_array();

	if (list == NULL) {
		die("no memory");
	}
	for (i = 0; i < n; i++) {
		list[i] = json_array_get(trace->requests, i);
		json_object_set_new(list[i], "sort_nth", json_integer((json_int_t)i));
	}
	qsort(list, n, sizeof(*list), by_time_and_event);
	for (i = 0; i < n; i++) {
		json_object_del(list[i], "sort_at");
		json_object_del(list[i], "sort_made");
		json_object_del(list[i], "sort_nth");
		json_array_append(out, list[i]);
	}
	free(list);
	return out;
}

json_t *trace_step(struct trace *trace, const json_t *line)
{
	const json_t *event = json_object_get(line, "event"), *forgotten = json_object_get(line, "forget");
	const json_t *rejects = json_object_get(line, "reject");
	const char *t = json_string_value(json_object_get(line, "t"));

	if (trace->broadcaster == NULL || t == NULL) {
		die(t == NULL ? "a step has no time" : "a step comes before the options");
	}
	trace->step = json_integer_value(json_object_get(line, "id"));
	json_array_clear(trace->requests);
	advance(trace, strtoll(t, NULL, 10));
	if (event != NULL) {
		record(trace, event);
		poll_all(trace);
	} else if (forgotten != NULL) {
		forget(trace, json_integer_value(forgotten));
	} else if (rejects != NULL) {
		trace->rejects = json_is_true(rejects);
	} else if (json_is_true(json_object_get(line, "flush"))) {
		(void)evrec_broadcaster_flush(trace->broadcaster, EVREC_SECOND, NULL);
	}
	return json_array_size(trace->requests) == 0 ? json_object()
	                                             : json_pack("{s:o}", "requests", sorted_requests(trace));
}

int main(void)
{
	struct trace trace = { 0 };

	return runner_run(&trace);
}
