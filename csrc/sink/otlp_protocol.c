#include "base/utf8.h"
#include "http/http_client.h"
#include "otlp/batch.h"
#include "otlp/verdict.h"
#include "outbox/outbox.h"
#include "sender/sender.h"
#include "sink/otlp.h"

#include <stdio.h>

/* The client's maximum: a cut answer does not show how many records were rejected. */
#define ANSWER_MAX ((size_t)4 * 1024 * 1024)

/* A batch under way. */
struct sent {
	struct sent *next;      /* in `free` or `going_on` */
	struct entry **entries; /* room for max_batch */
	struct otlp_parts parts;
	size_t whole;          /* parts after the pieces of one that was too large; SIZE_MAX: there are no pieces */
	struct otlp_part part; /* that was sent */
};

/* Sends events to an OTLP receiver. */
struct otlp {
	struct protocol base;
	struct http_client *client;
	struct otlp_batch *batch; /* the part that is encoded */
	enum otlp_encoding encoding;
	fields_func *fields;
	char *path;             /* of each request */
	struct otlp_size size;  /* of parts; the most is the option batch_bytes */
	uint64_t failed;        /* requests, ever: the number of the latest */
	struct sender *sender;  /* the one that runs a send or a step */
	struct sent *requests;  /* OTLP_MAX_IN_FLIGHT of them */
	struct entry **entries; /* their entries */
	struct sent *free;      /* those of them that are not under way */
	struct sent *going_on;  /* those that have a part to be sent */
	bool told_web_page;     /* that answers are web pages */
	evrec_error unresolved; /* of resolved.h, to be told */
};

static struct otlp *otlp_of(struct protocol *p)
{
	return (struct otlp *)p;
}

/* ---- what an answer means ---- */

/* Answers the records of the part: the last ones are `affected`, and the first of these has the message. */
static void give_outcomes(struct otlp *o, const struct sent *sent, struct otlp_verdict *verdict)
{
	const struct outcome written = { .verdict = VERDICT_WRITTEN };
	const size_t first = sent->part.records - verdict->affected;

	if (verdict->outcome.verdict == VERDICT_RETRY) {
		verdict->outcome.request = ++o->failed;
	}
	for (size_t i = 0; i < sent->part.records; i++) {
		sender_answered(o->sender, sent->entries[sent->parts.at + i], i < first ? &written : &verdict->outcome);
		if (i >= first) {
			verdict->outcome.problem = NULL;
		}
	}
}

/* Returns the records of parts that were not sent to the outbox. */
static void give_back(struct otlp *o, struct sent *sent)
{
	const struct outcome again = { .verdict = VERDICT_AGAIN };

	for (size_t n; (n = otlp_parts_next(&sent->parts)) != 0; otlp_parts_pass(&sent->parts)) {
		for (size_t i = 0; i < n; i++) {
			sender_answered(o->sender, sent->entries[sent->parts.at + i], &again);
		}
	}
}

static void end(struct otlp *o, struct sent *sent, const struct otlp_answer *answer)
{
	sent->next = o->free;
	o->free = sent;
	sender_request_ended(o->sender, otlp_result(answer), answer->retry_after);
}

/* True: another part of the batch is to be sent. */
static bool answered(struct otlp *o, struct sent *sent, const struct otlp_answer *answer)
{
	struct otlp_verdict verdict;

	otlp_verdict(answer, sent->part.records, &verdict);
	otlp_size_answered(&o->size, &sent->part, verdict.split, otlp_result(answer) == REQUEST_SUCCEEDED);
	if (verdict.split) {
		sent->whole = sent->part.piece ? sent->whole : sent->parts.len - 1;
		otlp_parts_halve(&sent->parts);
		return true;
	}
	give_outcomes(o, sent, &verdict);
	otlp_parts_pass(&sent->parts);
	if (verdict.outcome.verdict == VERDICT_RETRY) {
		give_back(o, sent);
	}
	if (otlp_parts_next(&sent->parts) != 0) {
		return true;
	}
	end(o, sent, answer);
	return false;
}

/* Cuts a long text rather than the hint. */
static void add_hint(struct otlp_answer *answer, const char *hint)
{
	const size_t room = sizeof(answer->message) - strlen(hint) - 2;
	const size_t at = utf8_floor(str_from(answer->message), room);

	(void)snprintf(answer->message + at, sizeof(answer->message) - at, "%s%s", at == 0 ? "" : " ", hint);
}

/* Adds hints about two common mistakes in an endpoint, which the receiver cannot detect. */
static void add_hints(const struct otlp *o, struct otlp_answer *answer)
{
	if (answer->status == 404 && strcmp(o->path, "/") == 0) {
		add_hint(answer, "(the endpoint is used as it is: is /v1/logs missing?)");
	} else if (answer->status == 0 && strstr(answer->message, "HTTP/0.9") != NULL) {
		add_hint(answer, "(is this a port for gRPC? evrec needs the one for HTTP, usually 4318)");
	}
}

/*
 * Whether an incomplete answer suffices: the header of a refusal does, and so does a text about a body that is too
 * large.
 */
static bool says_enough(const struct otlp_answer *cut)
{
	return cut->status == 429 || cut->status == 503 || otlp_says_too_large(cut);
}

/* Reads an answer whose status is set, and returns true; if that is 0, one that was cut, if enough of it has come. */
static bool read_answer(const struct otlp *o, const struct http_response *response, struct otlp_answer *answer)
{
	struct otlp_answer cut = {
		.status = response->cut_status,
		.cut_early = response->cut_early,
		.retry_after = response->retry_after,
	};

	if (answer->status != 0) {
		otlp_answer_read(answer, o->encoding, response->content_type, response->body);
		return true;
	}
	otlp_answer_read(&cut, o->encoding, response->content_type, response->body);
	if (says_enough(&cut)) {
		*answer = cut;
	}
	return answer->status != 0;
}

static void on_done(void *owner, void *ctx, const struct http_response *response)
{
	struct otlp *o = owner;
	struct sent *sent = ctx;
	struct otlp_answer answer = {
		.status = response->status,
		/* A timeout of connecting does not count as one of the receiver's load. */
		.timed_out = response->timed_out && !response->unsent,
		.retry_after = response->retry_after,
	};

	if (!read_answer(o, response, &answer)) {
		otlp_answer_text(&answer, str_from(response->message));
	}
	answer.web_page = answer.web_page && !o->told_web_page;
	o->told_web_page = o->told_web_page || answer.web_page;
	answer.too_large = otlp_says_too_large(&answer);
	http_client_hide_secrets(o->client, answer.message);
	add_hints(o, &answer);
	if (answered(o, sent, &answer)) {
		sent->next = o->going_on;
		o->going_on = sent;
	}
}

/* ---- sending ---- */

/* Encodes the next part, cut to the size of a body, or to the memory that there is. False: no memory. */
static bool fill(struct otlp *o, struct sent *sent)
{
	const size_t n = otlp_parts_next(&sent->parts);
	const int64_t now = evrec_clock_now(sender_clock(o->sender));
	enum otlp_added added = OTLP_ADDED;
	size_t limit;

	sent->part = (struct otlp_part){ .piece = sent->parts.len > sent->whole };
	limit = otlp_size_limit(&o->size, &sent->part);
	otlp_batch_clear(o->batch);
	for (size_t i = 0; i < n && added == OTLP_ADDED; i++) {
		const evrec_fields event = o->fields(sent->entries[sent->parts.at + i]->item, BODY_WHOLE);
		const struct otlp_record record = { &event, now };

		added = otlp_batch_add_within(o->batch, &record, limit);
	}
	if (otlp_batch_len(o->batch) != 0) {
		otlp_parts_cut(&sent->parts, otlp_batch_len(o->batch));
	}
	sent->part.records = otlp_parts_next(&sent->parts);
	sent->part.bytes = otlp_batch_size(o->batch);
	return otlp_batch_len(o->batch) != 0;
}

/* False: no memory. */
static bool begin(struct otlp *o, struct sent *sent, struct http_response *response)
{
	struct http_request request = {
		.method = "POST",
		.path = o->path,
		.content_type = otlp_content_type(o->encoding),
		.ctx = sent,
		.max_answer = ANSWER_MAX,
	};

	if (fill(o, sent)) {
		otlp_size_sent(&o->size, &sent->part);
		request.body = otlp_batch_finish(o->batch, &request.body_len);
	}
	return request.body != NULL && http_client_send(o->client, &request, response);
}

/* Sends the next part. If there is no memory, ends the part as unanswered, and the remaining parts too. */
static void send_part(struct otlp *o, struct sent *sent)
{
	struct http_response response = { .message = "no memory for the request" };
	struct otlp_answer answer = { 0 };

	if (!begin(o, sent, &response)) {
		otlp_answer_text(&answer, str_from(response.message));
		(void)answered(o, sent, &answer);
	}
}

static void otlp_send(struct protocol *p, struct sender *s, struct entry *const *entries, size_t n)
{
	struct otlp *o = otlp_of(p);
	struct sent *sent = o->free;

	o->sender = s;
	resolved_tell(&o->unresolved, sender_outbox(s));
	o->free = sent->next;
	memcpy(sent->entries, entries, n * sizeof(*entries));
	otlp_parts_begin(&sent->parts, n);
	sent->whole = SIZE_MAX;
	send_part(o, sent);
}

static bool step_once(struct otlp *o)
{
	const bool any = http_client_step(o->client);
	struct sent *sent;

	/* Here, as the client's callbacks begin no requests. */
	while ((sent = o->going_on) != NULL) {
		o->going_on = sent->next;
		send_part(o, sent);
	}
	return any;
}

static void otlp_step(struct protocol *p, struct sender *s, int64_t timeout)
{
	struct otlp *o = otlp_of(p);

	o->sender = s;
	if (!step_once(o) && timeout > 0) {
		http_client_wait(o->client, timeout);
		(void)step_once(o);
	}
}

static void otlp_wake(struct protocol *p)
{
	http_client_wake(otlp_of(p)->client);
}

static void otlp_free(struct protocol *p)
{
	struct otlp *o = otlp_of(p);

	http_client_free(o->client);
	otlp_batch_free(o->batch);
	mem_free(o->requests);
	mem_free(o->entries);
	mem_free(o->path);
	mem_free(o);
}

static const struct protocol_ops otlp_ops = {
	.does_io = true,
	.send = otlp_send,
	.step = otlp_step,
	.wake = otlp_wake,
	.init_library = http_global_init,
	.end_thread = http_end_thread,
	.free = otlp_free,
};

/* False: no memory. */
static bool make_requests(struct otlp *o)
{
	o->requests = mem_zalloc(OTLP_MAX_IN_FLIGHT * sizeof(*o->requests));
	o->entries = mem_alloc(OTLP_MAX_IN_FLIGHT * o->base.max_batch * sizeof(struct entry *));
	if (o->requests == NULL || o->entries == NULL) {
		return false;
	}
	for (size_t i = 0; i < OTLP_MAX_IN_FLIGHT; i++) {
		o->requests[i].entries = o->entries + i * o->base.max_batch;
		o->requests[i].next = o->free;
		o->free = &o->requests[i];
	}
	return true;
}

/* False: no memory. */
static bool make_path(struct otlp *o, evrec_str endpoint)
{
	const evrec_str path = otlp_endpoint_path(endpoint);
	struct buf made = { 0 };

	buf_put_str(&made, path.len != 0 && path.data[0] == '/' ? (evrec_str){ NULL, 0 } : EVREC_STR("/"));
	buf_put_str(&made, path);
	(void)buf_cstr(&made);
	o->path = made.data;
	return !made.failed;
}

/* False: no memory. */
static bool make_batch(struct otlp *o, const evrec_otlp_options *options)
{
	const struct otlp_options how = {
		.encoding = o->encoding,
		.gzip = options->compression == EVREC_OTLP_GZIP,
		.resource = options->resource,
	};

	o->batch = otlp_batch_new(&how);
	return o->batch != NULL;
}

struct protocol *otlp_protocol_new(const evrec_otlp_options *options, fields_func *fields, evrec_error *err)
{
	const struct http_events events = { .done = on_done };
	const struct http_options http = otlp_http_options(options);
	struct otlp *o;

	if (otlp_check_options(options, err) != 0) {
		return NULL;
	}
	o = mem_zalloc(sizeof(*o));
	if (o == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	o->base = (struct protocol){ .ops = &otlp_ops,
		                     .max_batch = options->batch_max,
		                     .max_in_flight = OTLP_MAX_IN_FLIGHT,
		                     .batch_delay = options->batch_delay,
		                     .append_only = true };
	o->encoding = options->encoding == EVREC_OTLP_JSON ? OTLP_JSON : OTLP_PROTOBUF;
	o->fields = fields;
	otlp_size_begin(&o->size, options->batch_bytes);
	if (!make_requests(o) || !make_path(o, options->endpoint) || !make_batch(o, options)) {
		error_set(err, EVREC_ENOMEM, "no memory");
	} else {
		o->client = http_client_new(&http, &events, o, err);
	}
	if (o->client == NULL) {
		otlp_free(&o->base);
		return NULL;
	}
	return &o->base;
}

bool otlp_protocol_keep_addresses(struct protocol *p, const struct resolved *resolved)
{
	struct otlp *o = otlp_of(p);

	return resolved_use(resolved, o->client, &o->unresolved);
}
