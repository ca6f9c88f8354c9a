#include "correlate/replay.h"

#define LINE_MAX_BYTES ((size_t)4 << 20) /* longer than any event that a recorder takes */

void replay_end_feed(evrec_replay *replay)
{
	for (size_t i = 0; replay->known != NULL && i < TRACE_IDS; i++) {
		replay_forget(&replay->known[i]);
	}
	mem_free(replay->known);
	buf_free(&replay->rest);
	buf_free(&replay->line.keys);
}

static int begin(evrec_replay *replay, evrec_str text, evrec_error *err)
{
	const enum trace_read read = trace_read_line(text, &replay->line);

	if (read == TRACE_OK && replay->line.kind == TRACE_EVENT) {
		evrec_event_release(replay->line.event);
	}
	if (read != TRACE_OK || replay->line.kind != TRACE_HEADER) {
		return error_set(err, EVREC_EINVALID, "trace: the first line is none of a trace");
	}
	if (replay->line.version != TRACE_VERSION) {
		return error_set(err, EVREC_EINVALID, "trace: has version %u, and this evrec reads version %d",
		                 replay->line.version, TRACE_VERSION);
	}
	replay->known = mem_zalloc(TRACE_IDS * sizeof(*replay->known));
	replay->begun = replay->known != NULL;
	return replay->begun ? 0 : error_set(err, EVREC_ENOMEM, "no memory");
}

/* False: no memory. */
static bool take_line(evrec_replay *replay)
{
	const struct trace_line *line = &replay->line;
	struct known *known = &replay->known[line->id == 0 ? 0 : line->id - 1];
	struct trace_keys keys;

	switch (line->kind) {
	case TRACE_EVENT:
		keys = trace_line_keys(line);
		return replay_know(replay, known, line->event, &keys) && replay_occur(replay, known, line->t, line->at);
	case TRACE_AGAIN:
		if (known->event != NULL) {
			return replay_occur(replay, known, line->t, line->at);
		}
		replay->trace.malformed++;
		return true;
	case TRACE_GAP:
		replay->trace.lost += line->lost;
		replay->trace.gaps++;
		return true;
	case TRACE_END:
		replay->trace.full = true;
		return true;
	case TRACE_HEADER:
		break;
	}
	replay->trace.malformed++;
	return true;
}

static int read_line(evrec_replay *replay, evrec_str text, evrec_error *err)
{
	enum trace_read read;

	if (!replay->begun) {
		return begin(replay, text, err);
	}
	read = trace_read_line(text, &replay->line);
	if (read == TRACE_MALFORMED) {
		replay->trace.malformed++;
		return 0;
	}
	if (read == TRACE_NO_MEMORY || !take_line(replay)) {
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	return 0;
}

/* Keeps the beginning of a line until the rest comes. */
static int keep_rest(evrec_replay *replay, evrec_str bytes, evrec_error *err)
{
	if (bytes.len > LINE_MAX_BYTES - replay->rest.len) {
		return error_set(err, EVREC_EINVALID, "trace: a line is too long");
	}
	buf_put_str(&replay->rest, bytes);
	return replay->rest.failed ? error_set(err, EVREC_ENOMEM, "no memory") : 0;
}

int evrec_replay_feed(evrec_replay *replay, evrec_str bytes, evrec_error *err)
{
	int code = 0;

	while (code == 0 && bytes.len != 0) {
		const char *end = memchr(bytes.data, '\n', bytes.len);
		evrec_str line = bytes;

		if (end == NULL) {
			return keep_rest(replay, bytes, err);
		}
		line.len = (size_t)(end - bytes.data);
		bytes = (evrec_str){ end + 1, bytes.len - line.len - 1 };
		if (replay->rest.len != 0) {
			code = keep_rest(replay, line, err);
			line = buf_str(&replay->rest);
		}
		code = code == 0 ? read_line(replay, line, err) : code;
		buf_clear(&replay->rest);
	}
	return code;
}
