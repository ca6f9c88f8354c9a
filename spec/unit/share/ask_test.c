/* A worker that asks its owner what it has suppressed; both of this process, stepped in turns. */
#include "unit.h"

#include <unistd.h>

#include "alloc_failure.h"
#include "share/endpoint.h"
#include "share/explained.h"
#include "share/share.h"

/* A process. */
struct process {
	struct share *share;
	unsigned asked, recorded, errors;
	char object[64]; /* that was asked for last; "*": all */
	size_t answer_len;
	bool late; /* recorded after a question */
};

struct world {
	char name[64];
	struct process processes[2];
	int64_t now;
};

static void on_record(void *ctx, const struct share_event *e)
{
	struct process *p = ctx;

	p->recorded += e->n;
	p->late = p->late || p->asked != 0;
	if (e->source != 0) {
		share_settled(p->share, e->source, e->node, 0, FRAME_FORWARDED, e->n);
	}
}

static bool on_begin(void *ctx)
{
	(void)ctx;
	return true;
}

static void on_flush(void *ctx)
{
	(void)ctx;
}

static void on_error(void *ctx, const char *message, const char *name)
{
	(void)message;
	assert_string_equal(name, "share");
	((struct process *)ctx)->errors++;
}

static bool on_save(void *ctx, size_t sink, struct buf *out)
{
	(void)ctx;
	(void)sink;
	(void)out;
	return false;
}

static void on_explain(void *ctx, const evrec_reference *object, struct buf *out)
{
	struct process *p = ctx;

	p->asked++;
	(void)snprintf(p->object, sizeof(p->object), "%.*s", object == NULL ? 1 : (int)object->name.len,
	               object == NULL ? "*" : object->name.data);
	while (!out->failed && out->len < p->answer_len) {
		buf_put(out, "0123456789", 10);
	}
}

static const struct share_ops ops = {
	.record = on_record,
	.flush = on_flush,
	.begin = on_begin,
	.error = on_error,
	.save_state = on_save,
	.explain = on_explain,
};

static const struct frame_option option = { { "qps", 3 }, 1 };

/* ---- the world ---- */

static bool start(struct world *w, size_t i, evrec_error *err)
{
	const struct share_options options = { .name = str_from(w->name), .limits = { 1000, 1 << 24 } };
	struct process *p = &w->processes[i];

	*p = (struct process){ .answer_len = 100 };
	p->share = share_new(&options, &ops, p, err);
	return p->share != NULL && share_set_options(p->share, &option, 1, 1);
}

static void stop(struct process *p)
{
	share_free(p->share);
	p->share = NULL;
}

static void step(struct world *w, size_t times)
{
	while (times-- > 0) {
		for (size_t i = 0; i < 2; i++) {
			if (w->processes[i].share != NULL) {
				share_step(w->processes[i].share, w->now, 0);
			}
		}
	}
}

static void make_world(struct world *w)
{
	static unsigned number;

	*w = (struct world){ .now = T0 };
	(void)snprintf(w->name, sizeof(w->name), "@evrec-ask-test-%ld-%u", (long)getpid(), number++);
}

/* The first is the owner. */
static void start_two(struct world *w)
{
	evrec_error err;

	make_world(w);
	assert_true(start(w, 0, &err));
	step(w, 1);
	assert_true(start(w, 1, &err));
	step(w, 4);
	assert_int_equal(share_role(w->processes[0].share), SHARE_OWNER);
	assert_int_equal(share_role(w->processes[1].share), SHARE_WORKER);
}

static void stop_two(struct world *w)
{
	stop(&w->processes[0]);
	stop(&w->processes[1]);
}

static const evrec_reference *about(const char *name)
{
	static evrec_reference object = { .kind = { "Pod", 3 } };

	object.name = str_from(name);
	return &object;
}

static bool ask(struct process *p, const char *name)
{
	evrec_error err = { 0 };
	const bool asked = share_ask(p->share, about(name), &err);

	assert_int_equal(err.code, 0);
	return asked;
}

static void add(struct process *p, const char *object)
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

static void check_answered(struct process *p, size_t len)
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

/* ---- tests ---- */

static void test_worker_is_answered_by_the_owner(void **state)
{
	struct buf none = { 0 };
	struct world w;
	struct process *owner = &w.processes[0], *worker = &w.processes[1];
	evrec_error err;

	(void)state;
	start_two(&w);
	assert_int_equal(share_take_answer(worker->share, &none), SHARE_ASKED);
	assert_true(ask(worker, "web-0"));
	assert_int_equal(share_take_answer(worker->share, &none), SHARE_ASKED);
	/* One question at a time. */
	assert_false(ask(worker, "web-1"));
	step(&w, 2);
	assert_false(ask(worker, "web-1"));
	assert_int_equal(owner->asked, 1);
	assert_string_equal(owner->object, "web-0");
	check_answered(worker, 100);
	assert_true(share_ask(worker->share, NULL, &err));
	step(&w, 2);
	assert_string_equal(owner->object, "*");
	check_answered(worker, 100);
	stop_two(&w);
}

/* The owner answers behind all that the worker recorded before. */
static void test_question_is_behind_the_events(void **state)
{
	struct world w;
	struct process *owner = &w.processes[0], *worker = &w.processes[1];
	char name[32];

	(void)state;
	start_two(&w);
	assert_true(ask(worker, "web-0"));
	for (unsigned i = 0; i < 200; i++) {
		(void)snprintf(name, sizeof(name), "web-%u", i);
		add(worker, name);
	}
	step(&w, 10);
	assert_int_equal(owner->asked, 1);
	assert_int_equal(owner->recorded, 200);
	assert_false(owner->late);
	check_answered(worker, 100);
	stop_two(&w);
}

static void test_long_answer_comes_in_parts(void **state)
{
	struct world w;
	struct process *owner = &w.processes[0], *worker = &w.processes[1];

	(void)state;
	start_two(&w);
	owner->answer_len = 3000000;
	assert_true(ask(worker, "web-0"));
	step(&w, 2);
	/* Events of meanwhile are recorded behind it. */
	add(worker, "late");
	step(&w, 100);
	check_answered(worker, 3000000);
	assert_int_equal(owner->recorded, 1);
	assert_true(share_is_settled(worker->share));
	stop_two(&w);
}

static void test_answer_that_would_be_too_long_is_none(void **state)
{
	struct buf answer = { 0 };
	struct world w;
	struct process *worker = &w.processes[1];

	(void)state;
	start_two(&w);
	w.processes[0].answer_len = FRAME_ANSWER_MAX + 1;
	assert_true(ask(worker, "web-0"));
	step(&w, 3);
	assert_int_equal(share_take_answer(worker->share, &answer), SHARE_REFUSED);
	assert_int_equal(answer.len, 0);
	/* The connection goes on. */
	w.processes[0].answer_len = 50;
	assert_true(ask(worker, "web-0"));
	step(&w, 3);
	check_answered(worker, 50);
	stop_two(&w);
}

/* An object whose fields do not fit into a frame. */
static void test_object_that_is_too_long_is_refused(void **state)
{
	char *name = malloc(FRAME_MAX);
	struct world w;
	evrec_error err = { 0 };

	(void)state;
	start_two(&w);
	memset(name, 'x', FRAME_MAX - 1);
	name[FRAME_MAX - 1] = '\0';
	assert_false(share_ask(w.processes[1].share, about(name), &err));
	assert_int_equal(err.code, EVREC_EINVALID);
	unit_check_contains(err.message, "object");
	assert_true(ask(&w.processes[1], "web-0"));
	stop_two(&w);
	free(name);
}

/* Who waits no longer does not get the answer that is under way; the next question is not answered by it. */
static void test_late_answer_is_ignored(void **state)
{
	struct world w;
	struct process *owner = &w.processes[0], *worker = &w.processes[1];

	(void)state;
	start_two(&w);
	owner->answer_len = 1000000;
	assert_true(ask(worker, "web-0"));
	step(&w, 2); /* a part of it has come */
	share_forget_question(worker->share);
	owner->answer_len = 300000;
	assert_true(ask(worker, "web-1"));
	step(&w, 100);
	assert_int_equal(owner->asked, 2);
	assert_string_equal(owner->object, "web-1");
	check_answered(worker, 300000);
	assert_int_equal(worker->errors, 0);
	stop_two(&w);
}

/* The question goes to the next owner, which here is the worker: then its caller knows by itself. */
static void test_owner_that_goes_away_is_not_waited_for(void **state)
{
	struct buf answer = { 0 };
	struct world w;
	struct process *worker = &w.processes[1];
	evrec_error err;

	(void)state;
	start_two(&w);
	w.processes[0].answer_len = 1000000;
	assert_true(ask(worker, "web-0"));
	step(&w, 2);
	assert_int_equal(w.processes[0].asked, 1);
	stop(&w.processes[0]);
	share_step(worker->share, w.now, 0);
	while (share_role(worker->share) != SHARE_OWNER) {
		w.now += EVREC_SECOND;
		share_step(worker->share, w.now, 0);
	}
	assert_int_equal(share_take_answer(worker->share, &answer), SHARE_ASKED);
	share_forget_question(worker->share);
	assert_true(start(&w, 0, &err));
	step(&w, 4);
	/* An owner has whom to ask as a worker again. */
	assert_true(ask(&w.processes[0], "web-2"));
	step(&w, 3);
	assert_string_equal(worker->object, "web-2");
	check_answered(&w.processes[0], 100);
	stop_two(&w);
}

/* A worker that finds another owner asks it what the last one has not answered. */
static void test_next_owner_is_asked_again(void **state)
{
	struct world w;
	struct process *worker = &w.processes[1];
	evrec_error err;

	(void)state;
	start_two(&w);
	assert_true(ask(worker, "web-0"));
	share_step(worker->share, w.now, 0); /* sent, and read by nobody */
	stop(&w.processes[0]);
	assert_true(start(&w, 0, &err));
	share_step(w.processes[0].share, w.now, 0);
	for (unsigned i = 0; i < 6; i++) {
		w.now += EVREC_SECOND;
		share_step(worker->share, w.now, 0);
		share_step(w.processes[0].share, w.now, 0);
	}
	assert_int_equal(share_role(w.processes[0].share), SHARE_OWNER);
	assert_string_equal(w.processes[0].object, "web-0");
	check_answered(worker, 100);
	stop_two(&w);
}

/* ---- a peer that sends what no process of evrec sends ---- */

/* A connection to the owner, past the greeting. */
static int greet(const struct world *w)
{
	const unsigned char instance[FRAME_ID_SIZE] = "x";
	struct endpoint endpoint;
	struct buf hello = { 0 };
	evrec_error err;
	int fd = -1;

	assert_int_equal(endpoint_init(&endpoint, str_from(w->name), &err), 0);
	assert_int_equal(endpoint_connect(&endpoint, &fd, &err), ENDPOINT_OK);
	assert_true(frame_hello(&hello, instance, &option, 1));
	assert_int_equal(endpoint_send(fd, hello.data, hello.len), 1);
	buf_free(&hello);
	return fd;
}

static void test_question_of_nonsense_ends_the_connection_alone(void **state)
{
	struct buf frame = { 0 };
	struct world w;
	int fd;

	(void)state;
	start_two(&w);
	fd = greet(&w);
	assert_true(frame_ask(&frame, 1, EVREC_STR("\x07")));
	frame_set_seq(&frame, 1);
	assert_int_equal(endpoint_send(fd, frame.data, frame.len), 1);
	step(&w, 3);
	assert_int_equal(w.processes[0].asked, 0);
	assert_true(endpoint_send(fd, frame.data, frame.len) < 0);
	(void)close(fd);
	assert_true(ask(&w.processes[1], "web-0"));
	step(&w, 3);
	check_answered(&w.processes[1], 100);
	buf_free(&frame);
	stop_two(&w);
}

/* Questions of a peer that reads no answers: it is read no more, and others are served. */
static void test_peer_that_reads_nothing_is_read_no_more(void **state)
{
	struct buf frame = { 0 }, object = { 0 };
	struct world w;
	uint32_t sent = 0;
	int fd;

	(void)state;
	start_two(&w);
	w.processes[0].answer_len = 1000000;
	fd = greet(&w);
	explained_put_object(&object, NULL);
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(frame_ask(&frame, sent + 1, buf_str(&object)));
		frame_set_seq(&frame, sent + 1);
		sent += endpoint_send(fd, frame.data, frame.len) > 0;
		step(&w, 1);
	}
	assert_int_equal(w.processes[0].asked, 1);
	assert_true(ask(&w.processes[1], "web-0"));
	step(&w, 50);
	check_answered(&w.processes[1], 1000000);
	(void)close(fd);
	buf_free(&frame);
	buf_free(&object);
	stop_two(&w);
}

/* An owner that answers what nobody has asked, in parts that do not fit. */
static void test_answer_to_no_question_is_ignored(void **state)
{
	const unsigned char instance[FRAME_ID_SIZE] = "x";
	struct endpoint endpoint;
	struct buf frame = { 0 };
	struct world w;
	struct process *worker = &w.processes[1];
	evrec_error err = { 0 };
	size_t next;
	int fd;

	(void)state;
	make_world(&w);
	assert_int_equal(endpoint_init(&endpoint, str_from(w.name), &err), 0);
	assert_int_equal(endpoint_bind(&endpoint, &err), ENDPOINT_OK);
	assert_true(start(&w, 1, &err));
	step(&w, 1);
	fd = endpoint_accept(&endpoint, NULL, 0, &err);
	assert_true(fd >= 0);
	assert_true(frame_hello(&frame, instance, &option, 1));
	assert_int_equal(endpoint_send(fd, frame.data, frame.len), 1);
	assert_true(frame_answer(&frame, 0, EVREC_STR("xy"), 1, &next));
	frame_set_seq(&frame, 1);
	assert_int_equal(endpoint_send(fd, frame.data, frame.len), 1);
	step(&w, 1);
	assert_int_equal(share_role(worker->share), SHARE_WORKER);
	/* But a part out of its turn of an answer that is waited for ends the connection. */
	assert_true(ask(worker, "web-0"));
	step(&w, 1);
	assert_true(frame_answer(&frame, 1, EVREC_STR("xy"), 1, &next));
	frame_set_seq(&frame, 2);
	assert_int_equal(endpoint_send(fd, frame.data, frame.len), 1);
	assert_int_equal(worker->errors, 0);
	step(&w, 1);
	assert_int_equal(worker->errors, 1);
	assert_int_equal(share_role(worker->share), SHARE_UNKNOWN);
	(void)close(fd);
	stop_two(&w);
	endpoint_close(&endpoint);
	buf_free(&frame);
}

/* ---- memory ---- */

/* Whatever fails, the worker can ask again, and is answered then. */
static void scenario(void)
{
	struct buf answer = { 0 };
	struct world w;
	struct process *worker = &w.processes[1];
	evrec_error err = { 0 };
	bool asked;

	start_two(&w);
	w.processes[0].answer_len = 200000;
	alloc_failure_arm();
	asked = share_ask(worker->share, about("web-0"), &err);
	alloc_failure_check_error(asked, &err);
	step(&w, 20);
	alloc_failure_ignore();
	alloc_failure_disarm();
	if (asked) {
		(void)share_take_answer(worker->share, &answer);
		share_forget_question(worker->share);
		buf_free(&answer);
	}
	/* The owner has done nothing wrong. */
	assert_int_equal(worker->errors, 0);
	for (unsigned i = 0; i < 4; i++) {
		w.now += 10 * EVREC_SECOND;
		step(&w, 4);
	}
	assert_true(ask(worker, "web-1"));
	step(&w, 20);
	assert_string_equal(w.processes[0].object, "web-1");
	check_answered(worker, 200000);
	stop_two(&w);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worker_is_answered_by_the_owner),
		cmocka_unit_test(test_question_is_behind_the_events),
		cmocka_unit_test(test_long_answer_comes_in_parts),
		cmocka_unit_test(test_answer_that_would_be_too_long_is_none),
		cmocka_unit_test(test_object_that_is_too_long_is_refused),
		cmocka_unit_test(test_late_answer_is_ignored),
		cmocka_unit_test(test_owner_that_goes_away_is_not_waited_for),
		cmocka_unit_test(test_next_owner_is_asked_again),
		cmocka_unit_test(test_question_of_nonsense_ends_the_connection_alone),
		cmocka_unit_test(test_peer_that_reads_nothing_is_read_no_more),
		cmocka_unit_test(test_answer_to_no_question_is_ignored),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
