#include "ask_world.h"

#include <unistd.h>

#include "share_idle.h"

static void on_record(void *ctx, const struct share_event *e)
{
	struct ask_process *p = ctx;

	p->recorded += e->n;
	p->late = p->late || p->asked != 0;
	if (e->source != 0) {
		share_settled(p->share, e->source, e->node, 0, FRAME_FORWARDED, e->n);
	}
}

static void on_error(void *ctx, const char *message, const char *name)
{
	(void)message;
	assert_string_equal(name, "share");
	((struct ask_process *)ctx)->errors++;
}

static void on_explain(void *ctx, const evrec_reference *object, struct buf *out)
{
	struct ask_process *p = ctx;

	p->asked++;
	(void)snprintf(p->object, sizeof(p->object), "%.*s", object == NULL ? 1 : (int)object->name.len,
	               object == NULL ? "*" : object->name.data);
	while (!out->failed && out->len < p->answer_len) {
		buf_put(out, "0123456789", 10);
	}
}

static const struct share_ops ops = {
	.record = on_record,
	.flush = share_idle_flush,
	.begin = share_idle_begin,
	.connected = share_idle_connected,
	.left = share_idle_left,
	.error = on_error,
	.save_state = share_idle_save_state,
	.explain = on_explain,
};

const struct frame_option ask_option = { { "qps", 3 }, 1 };

/* ---- the world ---- */

bool ask_start(struct ask_world *w, size_t i, evrec_error *err)
{
	const struct share_options options = { .name = str_from(w->name), .limits = { 1000, 1 << 24 } };
	struct ask_process *p = &w->processes[i];

	*p = (struct ask_process){ .answer_len = 100 };
	p->share = share_new(&options, &ops, p, err);
	return p->share != NULL && share_set_options(p->share, &ask_option, 1, 1);
}

void ask_stop(struct ask_process *p)
{
	share_free(p->share);
	p->share = NULL;
}

void ask_step(struct ask_world *w, size_t times)
{
	while (times-- > 0) {
		for (size_t i = 0; i < 2; i++) {
			if (w->processes[i].share != NULL) {
				share_step(w->processes[i].share, w->now, 0);
			}
		}
	}
}

void ask_make_world(struct ask_world *w)
{
	static unsigned number;

	*w = (struct ask_world){ .now = T0 };
	(void)snprintf(w->name, sizeof(w->name), "@evrec-ask-test-%ld-%u", (long)getpid(), number++);
}

/* The first is the owner. */
void ask_start_two(struct ask_world *w)
{
	evrec_error err;

	ask_make_world(w);
	assert_true(ask_start(w, 0, &err));
	ask_step(w, 1);
	assert_true(ask_start(w, 1, &err));
	ask_step(w, 4);
	assert_int_equal(share_role(w->processes[0].share), SHARE_OWNER);
	assert_int_equal(share_role(w->processes[1].share), SHARE_WORKER);
}

void ask_stop_two(struct ask_world *w)
{
	ask_stop(&w->processes[0]);
	ask_stop(&w->processes[1]);
}

const evrec_reference *ask_about(const char *name)
{
	static evrec_reference object = { .kind = { "Pod", 3 } };

	object.name = str_from(name);
	return &object;
}

bool ask_owner(struct ask_process *p, const char *name)
{
	evrec_error err = { 0 };
	const bool asked = share_ask(p->share, ask_about(name), &err);

	assert_int_equal(err.code, 0);
	return asked;
}

void ask_add(struct ask_process *p, const char *object)
{
	enum evrec_cause cause;
	evrec_fields f;

	evrec_fields_init(&f);
	f.ns = EVREC_STR("shop");
	f.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = str_from(object), .ns = f.ns };
	f.type = EVREC_STR("Warning");
	f.reason = EVREC_STR("Failed");
	f.count = 1;
	assert_int_equal(share_add(p->share, &f, NULL, T0, &cause), SHARE_KEPT);
}

void ask_check_answered(struct ask_process *p, size_t len)
{
	struct buf answer = { 0 };

	assert_int_equal(share_take_answer(p->share, &answer), SHARE_ANSWERED);
	assert_int_equal(answer.len, len);
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(answer.data[i], '0' + i % 10);
	}
	/* Once. */
	assert_int_equal(share_take_answer(p->share, &answer), SHARE_ASKED);
	buf_free(&answer);
}
