#include "share/frame.h"

#include "base/utf8.h"
#include "share/bytes.h"

#define MAGIC UINT32_C(0x65767263)
#define VERSION_THAT_NAMES_EVREC 3 /* the protocol version from which on a hello has the version of evrec */

struct head {
	uint16_t type, flags;
	uint32_t seq;
};

struct part_head {
	uint32_t total, offset;
};

static int broken(evrec_error *err, const char *reason)
{
	return error_set(err, EVREC_EINVALID, "the peer sent %s", reason);
}

/* ---- reading ---- */

/* The rest of a hello may have any form, but in later versions, too, it begins with evrec's version. */
static int refuse_version(struct bytes *in, uint32_t version, evrec_error *err)
{
	char evrec[64] = "of an earlier version";

	if (version >= VERSION_THAT_NAMES_EVREC) {
		utf8_copy(evrec, sizeof(evrec), bytes_str(in));
	}
	return error_set(err, EVREC_EINVALID,
	                 "the peer is evrec %s, with version %u of the protocol, this process " EVREC_VERSION
	                 ", with version %d",
	                 evrec, version, FRAME_VERSION);
}

static int read_hello(struct bytes *in, struct frame *f, evrec_error *err)
{
	uint32_t magic = 0, version = 0;

	bytes_get(in, &magic, sizeof(magic));
	bytes_get(in, &version, sizeof(version));
	if (!in->bad && magic == MAGIC && version != FRAME_VERSION) {
		return refuse_version(in, version, err);
	}
	(void)bytes_str(in);
	bytes_get(in, f->instance, sizeof(f->instance));
	f->options_len = (uint32_t)bytes_varint(in);
	f->options = (evrec_str){ in->at, in->left };
	for (size_t i = 0; i < f->options_len && !in->bad; i++) {
		uint64_t hash;

		(void)bytes_str(in);
		bytes_get(in, &hash, sizeof(hash));
	}
	return in->bad || magic != MAGIC || in->left != 0 ? broken(err, "no valid greeting") : 0;
}

static int read_part(struct bytes *in, struct frame *f, evrec_error *err)
{
	struct part_head head;

	bytes_get(in, &head, sizeof(head));
	f->part = (struct frame_part){ head.total, head.offset, { in->at, in->left } };
	return in->bad || in->left == 0 || head.offset > head.total || in->left > head.total - head.offset
	               ? broken(err, "a part that does not fit")
	               : 0;
}

static int read_event(struct bytes *in, struct frame *f, evrec_error *err)
{
	bytes_get(in, &f->times, sizeof(f->times));
	return f->times.n == 0 ? broken(err, "an event that did not happen") : read_part(in, f, err);
}

static int read_records(const struct bytes *in, size_t size, struct frame *f, evrec_error *err)
{
	f->records = (evrec_str){ in->at, in->left };
	return in->left == 0 || in->left % size != 0 ? broken(err, "records of a wrong size") : 0;
}

static int read_acks(const struct bytes *in, struct frame *f, evrec_error *err)
{
	int code = read_records(in, sizeof(struct frame_ack), f, err);

	for (size_t i = 0; code == 0 && i < frame_acks_len(f); i++) {
		const struct frame_ack ack = frame_ack_at(f, i);

		if (ack.sink >= FRAME_SINKS || ack.end >= FRAME_ENDS || ack.unused != 0) {
			code = broken(err, "an unknown end of an event");
		}
	}
	return code;
}

static int read_refuse(struct bytes *in, struct frame *f, evrec_error *err)
{
	f->option = bytes_str(in);
	f->text = bytes_str(in);
	return in->bad || in->left != 0 ? broken(err, "no valid refusal") : 0;
}

static int read_error(struct bytes *in, struct frame *f, evrec_error *err)
{
	f->problem = bytes_str(in);
	f->sink_name = bytes_str(in);
	f->text = bytes_str(in);
	return in->bad || in->left != 0 ? broken(err, "no valid error") : 0;
}

static int read_state(struct bytes *in, struct frame *f, evrec_error *err)
{
	bytes_get(in, &f->sink, sizeof(f->sink));
	return f->sink >= FRAME_SINKS ? broken(err, "the state of no sink") : read_part(in, f, err);
}

static int read_ask(struct bytes *in, struct frame *f, evrec_error *err)
{
	bytes_get(in, &f->question, sizeof(f->question));
	f->object = (evrec_str){ in->at, in->left };
	return in->left == 0 ? broken(err, "a question about nothing") : 0;
}

static int read_batch(struct bytes *in, struct frame *f, evrec_error *err)
{
	bytes_get(in, &f->batch, sizeof(f->batch));
	return in->bad || in->left != 0 ? broken(err, "a batch of a wrong size") : 0;
}

static int read_answer(struct bytes *in, struct frame *f, evrec_error *err)
{
	bytes_get(in, &f->question, sizeof(f->question));
	if (f->flags != FRAME_NONE) {
		return read_part(in, f, err);
	}
	return in->bad || in->left != 0 ? broken(err, "an answer of a wrong size") : 0;
}

static int read_body(struct bytes *in, struct frame *f, evrec_error *err)
{
	switch (f->type) {
	case FRAME_HELLO:
		return read_hello(in, f, err);
	case FRAME_REFUSE:
		return read_refuse(in, f, err);
	case FRAME_ERROR:
		return read_error(in, f, err);
	case FRAME_EVENT:
		return read_event(in, f, err);
	case FRAME_MORE:
		return read_records(in, sizeof(struct frame_times), f, err);
	case FRAME_ACK:
		return read_acks(in, f, err);
	case FRAME_STATE:
		return read_state(in, f, err);
	case FRAME_ASK:
		return read_ask(in, f, err);
	case FRAME_ANSWER:
		return read_answer(in, f, err);
	case FRAME_BATCH:
		return read_batch(in, f, err);
	case FRAME_FLUSH:
	case FRAME_BYE:
	case FRAME_PING:
	case FRAME_PONG:
	case FRAME_OFFER:
	case FRAME_ACCEPT:
	case FRAME_LEAVE:
	case FRAME_LEFT:
		return in->left == 0 ? 0 : broken(err, "a frame that is too long");
	}
	return broken(err, "a frame of an unknown type");
}

static unsigned known_flags(enum frame_type type)
{
	switch (type) {
	case FRAME_EVENT:
	case FRAME_MORE:
		return 0xff00 | FRAME_AGAIN | FRAME_RESENT | FRAME_UNSURE;
	case FRAME_BYE:
		return FRAME_HEIR | FRAME_UNSURE;
	case FRAME_FLUSH:
	case FRAME_ANSWER:
	case FRAME_ACK:
		return FRAME_CLOSING | FRAME_NONE | FRAME_OF_BATCH;
	default:
		return 0;
	}
}

int frame_read(evrec_str message, struct frame *f, evrec_error *err)
{
	struct bytes in = bytes_of(message);
	struct head head;

	bytes_get(&in, &head, sizeof(head));
	if (in.bad || message.len > FRAME_MAX) {
		return broken(err, "no frame");
	}
	*f = (struct frame){ .type = (enum frame_type)head.type, .flags = head.flags, .seq = head.seq };
	return (head.flags & ~known_flags(f->type)) != 0 ? broken(err, "an unknown flag") : read_body(&in, f, err);
}

size_t frame_times_len(const struct frame *f)
{
	return f->records.len / sizeof(struct frame_times);
}

struct frame_times frame_times_at(const struct frame *f, size_t i)
{
	struct frame_times times;

	memcpy(&times, f->records.data + i * sizeof(times), sizeof(times));
	return times;
}

size_t frame_acks_len(const struct frame *f)
{
	return f->records.len / sizeof(struct frame_ack);
}

struct frame_ack frame_ack_at(const struct frame *f, size_t i)
{
	struct frame_ack ack;

	memcpy(&ack, f->records.data + i * sizeof(ack), sizeof(ack));
	return ack;
}

bool frame_options_equal(const struct frame *hello, const struct frame_option *options, size_t n, evrec_str *name)
{
	struct bytes in = bytes_of(hello->options);
	size_t i;

	for (i = 0; i < n && i < hello->options_len; i++) {
		const evrec_str theirs = bytes_str(&in);
		uint64_t hash;

		bytes_get(&in, &hash, sizeof(hash));
		if (!str_eq(theirs, options[i].name) || hash != options[i].hash) {
			*name = options[i].name;
			return false;
		}
	}
	if (n == hello->options_len) {
		return true;
	}
	*name = i < n ? options[i].name : bytes_str(&in);
	return false;
}

/* ---- writing ---- */

bool frame_begin(struct buf *out, enum frame_type type, uint16_t flags)
{
	buf_clear(out);
	buf_put(out, &(struct head){ (uint16_t)type, flags, 0 }, sizeof(struct head));
	return !out->failed;
}

void frame_set_seq(struct buf *frame, uint32_t seq)
{
	memcpy(frame->data + offsetof(struct head, seq), &seq, sizeof(seq));
}

static bool is_whole(const struct buf *out)
{
	return !out->failed && out->len <= FRAME_MAX;
}

bool frame_hello(struct buf *out, const unsigned char instance[FRAME_ID_SIZE], const struct frame_option *options,
                 size_t n)
{
	const uint32_t greeting[] = { MAGIC, FRAME_VERSION };

	(void)frame_begin(out, FRAME_HELLO, 0);
	buf_put(out, greeting, sizeof(greeting));
	bytes_put_str(out, EVREC_STR(EVREC_VERSION));
	buf_put(out, instance, FRAME_ID_SIZE);
	bytes_put_varint(out, n);
	for (size_t i = 0; i < n; i++) {
		bytes_put_str(out, options[i].name);
		buf_put(out, &options[i].hash, sizeof(options[i].hash));
	}
	return is_whole(out);
}

bool frame_refuse(struct buf *out, evrec_str option, evrec_str text)
{
	(void)frame_begin(out, FRAME_REFUSE, 0);
	bytes_put_str(out, option);
	bytes_put_str(out, text);
	return is_whole(out);
}

bool frame_error(struct buf *out, evrec_str problem, evrec_str sink_name, evrec_str text)
{
	(void)frame_begin(out, FRAME_ERROR, 0);
	bytes_put_str(out, problem);
	bytes_put_str(out, sink_name);
	bytes_put_str(out, text);
	return is_whole(out);
}

static bool put_part(struct buf *out, evrec_str whole, size_t offset, size_t *next)
{
	const struct part_head head = { (uint32_t)whole.len, (uint32_t)offset };
	size_t len = FRAME_MAX - out->len - sizeof(head);

	if (len > whole.len - offset) {
		len = whole.len - offset;
	}
	buf_put(out, &head, sizeof(head));
	buf_put(out, whole.data + offset, len);
	if (!is_whole(out)) {
		return false;
	}
	*next = offset + len;
	return true;
}

bool frame_event(struct buf *out, uint16_t flags, const struct frame_times *times, evrec_str whole, size_t offset,
                 size_t *next)
{
	(void)frame_begin(out, FRAME_EVENT, flags);
	buf_put(out, times, sizeof(*times));
	return put_part(out, whole, offset, next);
}

bool frame_state(struct buf *out, uint32_t sink, evrec_str whole, size_t offset, size_t *next)
{
	(void)frame_begin(out, FRAME_STATE, 0);
	buf_put(out, &sink, sizeof(sink));
	return put_part(out, whole, offset, next);
}

bool frame_batch(struct buf *out, uint64_t batch)
{
	(void)frame_begin(out, FRAME_BATCH, 0);
	buf_put(out, &batch, sizeof(batch));
	return is_whole(out);
}

static void begin_about(struct buf *out, enum frame_type type, uint16_t flags, uint32_t question)
{
	(void)frame_begin(out, type, flags);
	buf_put(out, &question, sizeof(question));
}

bool frame_ask(struct buf *out, uint32_t question, evrec_str object)
{
	begin_about(out, FRAME_ASK, 0, question);
	buf_put_str(out, object);
	return is_whole(out);
}

bool frame_answer(struct buf *out, uint32_t question, evrec_str whole, size_t offset, size_t *next)
{
	begin_about(out, FRAME_ANSWER, 0, question);
	return put_part(out, whole, offset, next);
}

bool frame_answer_none(struct buf *out, uint32_t question)
{
	begin_about(out, FRAME_ANSWER, FRAME_NONE, question);
	return is_whole(out);
}

void frame_add_times(struct buf *out, const struct frame_times *times)
{
	buf_put(out, times, sizeof(*times));
}

void frame_add_ack(struct buf *out, const struct frame_ack *ack)
{
	buf_put(out, ack, sizeof(*ack));
}

int frame_collect(struct frame_parts *parts, const struct frame_part *part, size_t max, bool *complete,
                  evrec_error *err)
{
	if (part->offset == 0) {
		buf_clear(&parts->whole);
		parts->total = part->total;
	}
	if (part->total != parts->total || part->offset != parts->whole.len || part->total > max) {
		return broken(err, part->total > max ? "something that is too long" : "a part out of its turn");
	}
	buf_put_str(&parts->whole, part->bytes);
	if (parts->whole.failed) {
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	*complete = parts->whole.len == parts->total;
	return 0;
}
