/*
 * Any bytes as another process may send them by the socket of `share`: as a frame, as an event with its name, and as an
 * answer. Whatever a reader accepts can be written, and reads as the same again.
 */
#include "fuzz.h"

#include "share/explained.h"
#include "share/frame.h"

static void check_event(evrec_str bytes)
{
	struct buf once = { 0 }, twice = { 0 };
	struct frame_event event, again;
	evrec_error err = { 0 };

	if (frame_event_read(bytes, &event, &err) != 0) {
		CHECK(err.code == EVREC_EINVALID && err.message[0] != '\0');
		return;
	}
	CHECK(event.sinks <= FRAME_SINKS && event.fields.reason.len != 0 && event.fields.regarding.kind.len != 0);
	CHECK(fuzz_is_utf8(event.fields.note) && fuzz_is_utf8(event.fields.reason) && fuzz_is_utf8(event.fields.ns));
	frame_event_put(&once, &event.fields, event.keys, event.sinks);
	CHECK(frame_event_read(buf_str(&once), &again, &err) == 0);
	frame_event_put(&twice, &again.fields, again.keys, again.sinks);
	CHECK(str_eq(buf_str(&once), buf_str(&twice)));
	frame_event_destroy(&event);
	frame_event_destroy(&again);
	buf_free(&once);
	buf_free(&twice);
}

/* Bytes of an answer that are all read are those that writing gives, but for the lengths of numbers. */
static void check_answer(evrec_str bytes)
{
	struct bytes in = bytes_of(bytes);
	struct buf once = { 0 }, twice = { 0 };
	struct explained part;
	evrec_error err = { 0 };

	while (explained_next(&in, &part, &err) == 0 && part.type == EXPLAINED_EVENT) {
		const evrec_suppressed *s = &part.suppressed;
		struct bytes again;

		CHECK(s->stage < EVREC_STAGES && s->cause <= EVREC_CAUSES && s->spam_kind <= EVREC_KEY_UNKNOWN);
		CHECK(evrec_stage_name(s->stage) != NULL && s->message.len <= bytes.len);
		buf_clear(&once);
		explained_put(&once, s);
		again = bytes_of(buf_str(&once));
		CHECK(explained_next(&again, &part, &err) == 0 && again.left == 0);
		buf_clear(&twice);
		explained_put(&twice, &part.suppressed);
		CHECK(str_eq(buf_str(&once), buf_str(&twice)));
	}
	CHECK(err.code == 0 || err.code == EVREC_EINVALID);
	buf_free(&once);
	buf_free(&twice);
}

static void check_question(evrec_str bytes)
{
	struct buf out = { 0 };
	evrec_reference object, again;
	bool any, is_any;

	if (explained_read_object(bytes, &object, &any, NULL) == 0) {
		explained_put_object(&out, any ? NULL : &object);
		CHECK(explained_read_object(buf_str(&out), &again, &is_any, NULL) == 0);
		CHECK(any == is_any && str_eq(object.name, again.name) && str_eq(object.uid, again.uid));
	}
	buf_free(&out);
}

static void check_hello(const struct frame *f)
{
	const struct frame_option option = { EVREC_STR("api"), 1 };
	evrec_str name = { NULL, 0 };

	if (!frame_options_equal(f, &option, 1, &name)) {
		CHECK(name.len <= FRAME_MAX);
	}
}

static void check_frame(evrec_str bytes)
{
	struct frame_parts parts = { { 0 }, 0 };
	bool complete = false;
	evrec_error err = { 0 };
	struct frame f;

	if (frame_read(bytes, &f, &err) != 0) {
		CHECK(err.code == EVREC_EINVALID && strncmp(err.message, "the peer ", 9) == 0);
		return;
	}
	if (f.type == FRAME_MORE) {
		for (size_t i = 0; i < frame_times_len(&f); i++) {
			(void)frame_times_at(&f, i);
		}
	} else if (f.type == FRAME_ACK) {
		for (size_t i = 0; i < frame_acks_len(&f); i++) {
			CHECK(frame_ack_at(&f, i).sink < FRAME_SINKS && frame_ack_at(&f, i).end < FRAME_ENDS);
		}
	} else if (f.type == FRAME_HELLO) {
		check_hello(&f);
	} else if (f.type == FRAME_ASK) {
		check_question(f.object);
	} else if (f.type == FRAME_ANSWER && f.flags == FRAME_NONE) {
		CHECK(f.part.bytes.len == 0);
	} else if (f.type == FRAME_EVENT || f.type == FRAME_STATE || f.type == FRAME_ANSWER) {
		CHECK(f.part.bytes.len <= FRAME_MAX && f.part.offset + f.part.bytes.len <= f.part.total);
		if (frame_collect(&parts, &f.part, FRAME_EVENT_MAX, &complete, &err) == 0 && complete) {
			check_event(buf_str(&parts.whole));
		}
		buf_free(&parts.whole);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .left = size };
	const unsigned char kind = input_byte(&in) & 3;
	const evrec_str bytes = input_rest(&in);

	if (kind == 3) {
		check_answer(bytes);
	} else if (kind == 1) {
		check_event(bytes);
	} else {
		check_frame(bytes);
	}
	input_end(&in);
	return 0;
}
