#include "read/cluster_inner.h"

#include "base/utf8.h"
#include "event/event.h"

static int no_memory(evrec_error *err)
{
	return error_set(err, EVREC_ENOMEM, "no memory");
}

static int64_t version_number(evrec_str version)
{
	int64_t number = 0;

	for (size_t i = 0; i < version.len; i++) {
		if (version.data[i] < '0' || version.data[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, version.data[i] - '0', &number)) {
			return 0;
		}
	}
	return number;
}

/* ---- lists ---- */

/*
 * The newest of events with one time is the last written one, as in a store and in lines. The oldest stay in the order of
 * the server's list, in which kubectl prints a short list.
 */
static bool rank(struct cluster_reader *r, int64_t by, int64_t version, const struct event_item *item)
{
	const uint64_t tie = r->ranking.descending ? (uint64_t)version : 0;
	struct buf text = { 0 };

	if (!ranking_takes(&r->ranking, by, tie)) {
		return true;
	}
	event_item_json(item, EVREC_CORE_V1, &text);
	if (text.failed) {
		buf_free(&text);
		return false;
	}
	return ranking_put(&r->ranking, by, tie, text.data, text.len);
}

static bool on_listed(void *ctx, const evrec_fields *event, const struct event_item *item)
{
	struct cluster_reader *r = ctx;
	const int64_t version = version_number(event->resource_version);

	if (!filter_matches(r->filter, event)) {
		return true;
	}
	if (!r->watch) {
		return rank(r, event_last(event), version, item);
	}
	return version <= version_number(buf_str(&r->version)) || rank(r, version, version, item);
}

static bool ignore(void *ctx, const evrec_fields *event, const struct event_item *item)
{
	(void)ctx;
	(void)event;
	(void)item;
	return true;
}

/* A watch goes on behind the version of the list. */
static int take_version(struct cluster_reader *r, evrec_error *err)
{
	buf_clear(&r->version);
	buf_put_str(&r->version, buf_str(&r->new_version));
	return r->version.failed ? no_memory(err) : 0;
}

int cluster_read_page(struct cluster_reader *r, evrec_error *err)
{
	event_found_func *const found = r->phase == VERSION ? ignore : on_listed;

	if (!event_list_from_json(buf_str(&r->connection->body), EVREC_CORE_V1, found, r, &r->token, &r->new_version)) {
		return error_set(err, EVREC_ESYSTEM,
		                 "the API server's answer is no list of events, or there is no memory");
	}
	r->tries = 0;
	r->asked = false;
	if (r->phase == VERSION) {
		r->begun = true;
		buf_clear(&r->token);
		cluster_go_to(r, WATCHING);
		return take_version(r, err);
	}
	if (r->token.len != 0) {
		return 0;
	}
	r->begun = true;
	ranking_sort(&r->ranking);
	cluster_go_to(r, TELLING);
	return r->watch ? take_version(r, err) : 0;
}

/* ---- streams ---- */

static bool on_change(void *ctx, const evrec_fields *event, const struct event_item *item)
{
	struct cluster_reader *r = ctx;

	if (!filter_matches(r->filter, event)) {
		return true;
	}
	buf_clear(&r->base.json);
	event_item_json(item, EVREC_CORE_V1, &r->base.json);
	r->found = evrec_event_new(event);
	return r->found != NULL && !r->base.json.failed;
}

/* EVREC_READ_EVENT: *found is set; EVREC_READ_END: go on with the next line; or an error. */
static int read_change(struct cluster_reader *r, evrec_str line, evrec_found *found, evrec_error *err)
{
	enum event_change change;
	int status, code = 0;

	r->found = NULL;
	change = event_change_from_json(line, EVREC_CORE_V1, on_change, r, &r->new_version, &status);
	if (change == EVENT_ERROR) {
		r->connection->status = status;
		utf8_copy(r->connection->message, sizeof(r->connection->message), EVREC_STR("the watch has ended"));
		return cluster_failed(r, status, err);
	}
	if (change == EVENT_UNKNOWN) {
		evrec_event_release(r->found);
		return error_set(err, EVREC_ESYSTEM,
		                 "the API server sent a change that cannot be read, or there is no memory");
	}
	r->tries = 0;
	if (r->new_version.len != 0) {
		code = take_version(r, err);
	}
	if (code != 0) {
		evrec_event_release(r->found);
		return code;
	}
	return r->found == NULL ? EVREC_READ_END : reader_show(&r->base, r->found, change == EVENT_DELETED, found, err);
}

/* The next whole line of the stream. False: there is none yet. */
static bool take_line(struct cluster_reader *r, evrec_str *line)
{
	struct buf *body = &r->connection->body;
	const char *start = body->data + r->used;
	const char *newline = body->len == r->used ? NULL : memchr(start, '\n', body->len - r->used);

	if (newline != NULL) {
		*line = (evrec_str){ start, (size_t)(newline - start) };
		r->used += line->len + 1;
	} else if (r->used != 0) {
		memmove(body->data, start, body->len - r->used);
		body->len -= r->used;
		r->used = 0;
	}
	return newline != NULL;
}

int cluster_read_stream(struct cluster_reader *r, evrec_found *found, evrec_error *err)
{
	int result = EVREC_READ_END;
	evrec_str line;

	while (result == EVREC_READ_END && r->phase == WATCHING && r->asked && take_line(r, &line)) {
		result = read_change(r, line, found, err);
	}
	return result;
}
