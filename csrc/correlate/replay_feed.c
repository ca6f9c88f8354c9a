#include "correlate/replay.h"
#include "event/event.h"

#define LINE_MAX_BYTES ((size_t)4 << 20) /* longer than any event that a recorder takes */

/*
 * Bounds of the kept definitions: their number, and the bytes of their memory; but each id of a writer always keeps its
 * event. The definition of an ordinary event takes 2.5 KB, and 0.5 KB for each further variant.
 */
#define DEFINITIONS (1u << 17)
#define DEFINITIONS_BYTES ((size_t)256 << 20)

static void forget(void *known)
{
	replay_forget(known);
}

static const struct lru_type definition_type = { .value_size = sizeof(struct known),
	                                         .recycle = forget,
	                                         .fini = forget };

void replay_end_feed(evrec_replay *replay)
{
	lru_free(replay->definitions);
	buf_free(&replay->rest);
	buf_free(&replay->line.keys);
}

static int begin(evrec_replay *replay, evrec_str text, evrec_error *err)
{
	const enum trace_read read = trace_read_line(text, &replay->line);

	if (read != TRACE_OK || replay->line.kind != TRACE_HEADER) {
		return error_set(err, EVREC_EINVALID, "trace: the first line is none of a trace");
	}
	if (replay->line.version != TRACE_VERSION) {
		return error_set(err, EVREC_EINVALID, "trace: has version %u, and this evrec reads version %d",
		                 replay->line.version, TRACE_VERSION);
	}
	for (size_t i = 0; i < replay->variants_len && replay->line.real_clock; i++) {
		variant_use_real_clock(&replay->variants[i]);
	}
	/* Room for one more, so that forget_oldest, which counts bytes, evicts, and not the cache. */
	replay->definitions = lru_new(&definition_type, DEFINITIONS + 1);
	return replay->definitions != NULL ? 0 : error_set(err, EVREC_ENOMEM, "no memory");
}

static enum trace_read occur(evrec_replay *replay, struct known *known)
{
	return replay_occur(replay, known, replay->line.t, replay->line.at) ? TRACE_OK : TRACE_NO_MEMORY;
}

/* Reads the definition of the line, and makes *known stand for its event. */
static enum trace_read fill(evrec_replay *replay, struct known *known)
{
	const enum trace_read read = trace_read_definition(&replay->line);
	struct trace_keys keys;

	if (read != TRACE_OK) {
		return read;
	}
	keys = trace_line_keys(&replay->line);
	return replay_know(replay, known, replay->line.event, &keys) ? TRACE_OK : TRACE_NO_MEMORY;
}

static size_t bytes_of(const evrec_replay *replay, const struct known *known, evrec_str definition)
{
	return sizeof(*known) + definition.len + sizeof(*known->event) + evrec_packed_size(known->event) +
	       known->text.cap + known->keys[0].text.cap + replay->variants_len * sizeof(known->keys[0]);
}

/* Forgets definitions until their bounds hold. */
static void forget_oldest(evrec_replay *replay)
{
	struct lru *definitions = replay->definitions;

	while (lru_len(definitions) > DEFINITIONS ||
	       (replay->definitions_bytes > DEFINITIONS_BYTES && lru_len(definitions) > TRACE_IDS)) {
		struct known *oldest = lru_oldest(definitions);

		replay->definitions_bytes -= oldest->bytes;
		lru_remove(definitions, oldest);
	}
}

/* Lets the id stand for the event of this line, which occurs. */
static enum trace_read define(evrec_replay *replay, struct trace_line *line)
{
	struct key key = key_of(line->definition, (evrec_str){ NULL, 0 });
	enum trace_read read;
	struct known *known;
	bool fresh = false;

	known = lru_put(replay->definitions, &key, &fresh);
	if (known == NULL) {
		return TRACE_NO_MEMORY;
	}
	if (fresh) {
		read = fill(replay, known);
		if (read != TRACE_OK) {
			lru_remove(replay->definitions, known);
			return read;
		}
		known->bytes = bytes_of(replay, known, line->definition);
		replay->definitions_bytes += known->bytes;
		forget_oldest(replay);
	}
	replay->ids[line->id - 1] = lru_handle(known);
	return occur(replay, known);
}

static enum trace_read occur_again(evrec_replay *replay, const struct trace_line *line)
{
	struct known *known = lru_at(replay->definitions, replay->ids[line->id - 1]);

	if (known == NULL) {
		return TRACE_MALFORMED;
	}
	lru_use(replay->definitions, known);
	return occur(replay, known);
}

static enum trace_read take_line(evrec_replay *replay)
{
	struct trace_line *line = &replay->line;

	switch (line->kind) {
	case TRACE_EVENT:
		return define(replay, line);
	case TRACE_AGAIN:
		return occur_again(replay, line);
	case TRACE_GAP:
		replay->trace.lost += line->lost;
		replay->trace.gaps++;
		return TRACE_OK;
	case TRACE_END:
		replay->trace.full = true;
		return TRACE_OK;
	case TRACE_HEADER:
		break;
	}
	return TRACE_MALFORMED;
}

static int read_line(evrec_replay *replay, evrec_str text, evrec_error *err)
{
	enum trace_read read;

	if (replay->definitions == NULL) {
		return begin(replay, text, err);
	}
	read = trace_read_line(text, &replay->line);
	if (read == TRACE_OK) {
		read = take_line(replay);
	}
	replay->trace.malformed += read == TRACE_MALFORMED;
	return read != TRACE_NO_MEMORY ? 0 : error_set(err, EVREC_ENOMEM, "no memory");
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
