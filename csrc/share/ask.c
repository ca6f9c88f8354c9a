/* A worker's question to the owner, and the answer. */
#include "share/explained.h"
#include "share/share_inner.h"

#define OBJECT_MAX (FRAME_MAX / 2)

/* ---- the worker ---- */

static void forget(struct ask *ask)
{
	ask->phase = ASK_NONE;
	buf_free(&ask->object);
	buf_free(&ask->answer.whole);
}

void ask_free(struct ask *ask)
{
	forget(ask);
}

static int begin(struct ask *ask, const evrec_reference *object, evrec_error *err)
{
	explained_put_object(&ask->object, object);
	if (ask->object.failed) {
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	if (ask->object.len > OBJECT_MAX) {
		return error_set(err, EVREC_EINVALID, "object: its fields are too long");
	}
	ask->phase = ASK_WAITS;
	ask->number++;
	return 0;
}

bool share_ask(struct share *s, const evrec_reference *object, evrec_error *err)
{
	struct ask *ask = &s->ask;
	bool asked = false;

	err->code = 0;
	share_lock(s);
	if (ask->phase == ASK_NONE) {
		asked = begin(ask, object, err) == 0;
		if (!asked) {
			forget(ask);
		}
	}
	share_unlock(s);
	if (asked) {
		share_wake(s);
	}
	return asked;
}

enum share_answer share_take_answer(struct share *s, struct buf *answer)
{
	enum share_answer result = SHARE_ASKED;
	struct ask *ask = &s->ask;

	share_lock(s);
	if (ask->phase == ASK_ANSWERED) {
		result = SHARE_ANSWERED;
		buf_free(answer);
		*answer = ask->answer.whole;
		ask->answer.whole = (struct buf){ 0 };
	} else if (ask->phase == ASK_REFUSED) {
		result = SHARE_REFUSED;
	}
	if (result != SHARE_ASKED) {
		forget(ask);
	}
	share_unlock(s);
	return result;
}

void share_forget_question(struct share *s)
{
	share_lock(s);
	forget(&s->ask);
	share_unlock(s);
}

void ask_put(struct share *s)
{
	struct buf *out = &s->link.line.out;
	struct ask *ask = &s->ask;

	if (ask->phase == ASK_WAITS) {
		if (frame_ask(out, ask->number, buf_str(&ask->object))) {
			ask->phase = ASK_SENT;
		} else {
			buf_clear(out);
		}
	}
}

void ask_disconnect(struct share *s)
{
	struct ask *ask = &s->ask;

	if (ask->phase == ASK_SENT) {
		buf_free(&ask->answer.whole);
		ask->phase = ASK_WAITS;
	}
}

/* With the lock held. An answer to a cancelled question is no error. */
static int take(struct ask *ask, const struct frame *f, evrec_error *err)
{
	bool complete = false;
	int code;

	if (ask->phase != ASK_SENT || f->question != ask->number) {
		return 0;
	}
	if (f->flags == FRAME_NONE) {
		ask->phase = ASK_REFUSED;
		return 0;
	}
	code = frame_collect(&ask->answer, &f->part, FRAME_ANSWER_MAX, &complete, err);
	if (code == EVREC_ENOMEM) {
		/* Not an error of the connection. */
		ask->phase = ASK_REFUSED;
		return 0;
	}
	if (code == 0 && complete) {
		ask->phase = ASK_ANSWERED;
	}
	return code;
}

int ask_take(struct share *s, const struct frame *f, evrec_error *err)
{
	int code;

	share_lock(s);
	code = take(&s->ask, f, err);
	share_unlock(s);
	return code;
}

/* ---- the owner ---- */

int answer_make(struct share *s, struct peer *peer, const struct frame *f, evrec_error *err)
{
	struct answer *answer = &peer->answer;
	evrec_reference object;
	bool any;
	const int code = explained_read_object(f->object, &object, &any, err);

	if (code != 0) {
		return code;
	}
	s->ops->explain(s->ctx, any ? NULL : &object, &answer->whole);
	if (answer->whole.failed || answer->whole.len > FRAME_ANSWER_MAX) {
		buf_free(&answer->whole);
	}
	answer->question = f->question;
	answer->sent = 0;
	answer->sends = true;
	return 0;
}

void answer_put(struct peer *peer)
{
	struct answer *answer = &peer->answer;
	const evrec_str whole = buf_str(&answer->whole);
	struct buf *out = &peer->line.out;
	bool ok;

	if (!answer->sends) {
		return;
	}
	ok = whole.len == 0 ? frame_answer_none(out, answer->question)
	                    : frame_answer(out, answer->question, whole, answer->sent, &answer->sent);
	if (!ok) {
		buf_clear(out);
	} else if (answer->sent == whole.len) {
		answer->sends = false;
		buf_free(&answer->whole);
	}
}
