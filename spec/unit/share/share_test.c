/* Owners and workers, of one process here and stepped in turns: who writes, what is handed over, and how it ends. */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc_failure.h"
#include "raw_connection.h"
#include "share/share.h"

#define KEPT 64

/* An occurrence that an owner has recorded. */
struct recorded {
	uint64_t source, node;
	char object[64], name[256];
	bool again;
	uint32_t n;
};

/* A process. */
struct process {
	struct share *share;
	struct recorded recorded[KEPT];
	size_t recorded_len;
	uint64_t occurrences; /* recorded */
	bool settles;         /* at once, as written */
	unsigned flushes, errors, begins, begins_late;
	bool alone; /* as it became an owner */
	char error[256], error_name[32];
	uint32_t lost[FRAME_ENDS];
	char lost_object[64];
	const char *state; /* to be handed over */
	char loaded[64];
};

struct world {
	char name[64];
	struct process processes[3];
	int64_t now;
};

static void copy(char *to, size_t size, evrec_str from)
{
	(void)snprintf(to, size, "%.*s", (int)from.len, from.len == 0 ? "" : from.data);
}

/* ---- what a share calls ---- */

static void on_record(void *ctx, const struct share_event *e)
{
	struct process *p = ctx;

	if (p->recorded_len < KEPT) {
		struct recorded *r = &p->recorded[p->recorded_len++];

		*r = (struct recorded){
			.source = e->source, .node = e->node, .again = (e->flags & FRAME_AGAIN) != 0, .n = e->n
		};
		copy(r->object, sizeof(r->object), e->event->fields.regarding.name);
		copy(r->name, sizeof(r->name), e->name);
	}
	p->occurrences += e->n;
	/* A flush must not end between the ledger and the pipelines. */
	assert_true(e->source != 0 || !share_is_settled(p->share));
	if (p->settles && e->source != 0) {
		share_settled(p->share, e->source, e->node, 0, FRAME_FORWARDED, e->n);
	}
}

static void on_flush(void *ctx)
{
	((struct process *)ctx)->flushes++;
}

static void on_lost(void *ctx, const evrec_fields *event, size_t sink, unsigned end, uint32_t n)
{
	struct process *p = ctx;

	assert_int_equal(sink, 0);
	p->lost[end] += n;
	copy(p->lost_object, sizeof(p->lost_object), event->regarding.name);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	struct process *p = ctx;

	p->errors++;
	copy(p->error, sizeof(p->error), str_from(message));
	copy(p->error_name, sizeof(p->error_name), str_from(name));
}

static bool on_save(void *ctx, size_t sink, struct buf *out)
{
	const struct process *p = ctx;

	(void)sink;
	buf_put_str(out, str_from(p->state));
	return p->state != NULL;
}

static void on_load(void *ctx, size_t sink, evrec_str state)
{
	struct process *p = ctx;

	(void)sink;
	copy(p->loaded, sizeof(p->loaded), state);
}

/* An owner whose state is another process's for a moment. */
static bool on_begin(void *ctx, bool alone)
{
	struct process *p = ctx;

	p->begins++;
	p->alone = alone;
	return p->begins > p->begins_late;
}

static const struct share_ops ops = {
	.record = on_record,
	.flush = on_flush,
	.begin = on_begin,
	.lost = on_lost,
	.error = on_error,
	.save_state = on_save,
	.load_state = on_load,
};

/* ---- the world ---- */

static const struct frame_option options_a[] = { { { "qps", 3 }, 1 } }, options_b[] = { { { "qps", 3 }, 2 } };

static struct share_options options_of(const struct world *w)
{
	return (struct share_options){ .name = str_from(w->name), .limits = { 1000, 1 << 24 } };
}

static struct process *start_as(struct world *w, size_t i, const struct share_options *options,
                                const struct frame_option *same)
{
	struct process *p = &w->processes[i];

	*p = (struct process){ .settles = true };
	p->share = share_new(options, &ops, p, NULL);
	assert_non_null(p->share);
	assert_true(share_set_options(p->share, same, 1, 1));
	return p;
}

static struct process *start(struct world *w, size_t i)
{
	const struct share_options options = options_of(w);

	return start_as(w, i, &options, options_a);
}

/* As a process that is killed: its sockets are closed. */
static void stop(struct process *p)
{
	share_free(p->share);
	p->share = NULL;
}

static void step(struct world *w, size_t times)
{
	while (times-- > 0) {
		for (size_t i = 0; i < 3; i++) {
			if (w->processes[i].share != NULL) {
				share_step(w->processes[i].share, w->now, 0);
			}
		}
	}
}

static enum share_result add_note(struct process *p, const char *object, evrec_str note)
{
	enum evrec_cause cause;
	evrec_fields f;

	evrec_fields_init(&f);
	f.ns = EVREC_STR("shop");
	f.regarding = (evrec_reference){ .kind = EVREC_STR("Service"), .name = str_from(object), .ns = f.ns };
	f.type = EVREC_STR("Warning");
	f.reason = EVREC_STR("Failed");
	f.note = note;
	f.count = 1;
	return share_add(p->share, &f, NULL, T0, &cause);
}

static enum share_result add(struct process *p, const char *object)
{
	return add_note(p, object, EVREC_STR("It failed."));
}

static struct ledger_counts counts(const struct process *p)
{
	struct ledger_counts c;

	share_count(p->share, 0, &c);
	return c;
}

static int setup(void **state)
{
	static unsigned number;
	struct world *w = calloc(1, sizeof(*w));

	(void)snprintf(w->name, sizeof(w->name), "@evrec-share-test-%ld-%u", (long)getpid(), number++);
	w->now = T0;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < 3; i++) {
		share_free(w->processes[i].share);
	}
	free(w);
	return 0;
}

/* An owner and a worker that know each other. */
static void start_two(struct world *w, struct process **owner, struct process **worker)
{
	*owner = start(w, 0);
	step(w, 1);
	*worker = start(w, 1);
	step(w, 4);
	assert_int_equal(share_role((*owner)->share), SHARE_OWNER);
	assert_int_equal(share_role((*worker)->share), SHARE_WORKER);
}

/* ---- tests ---- */

static void test_nothing_is_bound_before_the_first_step(void **state)
{
	struct world *w = *state;
	struct process *second;

	(void)start(w, 0);
	second = start(w, 1);
	assert_int_equal(share_role(second->share), SHARE_UNKNOWN);
	share_step(second->share, w->now, 0);
	assert_int_equal(share_role(second->share), SHARE_OWNER);
	assert_int_equal(add(second, "a"), SHARE_OWN);
}

static void test_owner_records_what_was_noted_before(void **state)
{
	struct world *w = *state;
	struct process *p = start(w, 0);

	assert_int_equal(add(p, "a"), SHARE_KEPT);
	assert_int_equal(add(p, "a"), SHARE_KEPT);
	assert_false(share_is_settled(p->share));
	step(w, 1);
	assert_int_equal(p->recorded_len, 1);
	assert_int_equal(p->recorded[0].n, 2);
	assert_int_equal(p->recorded[0].source, 0);
	assert_false(p->recorded[0].again);
	assert_true(share_is_settled(p->share));
	assert_int_equal(counts(p).pending + counts(p).forwarded, 0);
}

/* It has the endpoint, and nobody else writes; but what it would write with is another process's for a moment. */
static void test_owner_keeps_events_until_it_can_write(void **state)
{
	struct world *w = *state;
	struct process *p = start(w, 0);

	p->begins_late = 2;
	(void)add(p, "a");
	step(w, 2);
	assert_int_equal(share_role(p->share), SHARE_UNKNOWN);
	assert_int_equal(add(p, "a"), SHARE_KEPT);
	step(w, 1);
	assert_int_equal(share_role(p->share), SHARE_OWNER);
	assert_int_equal(p->occurrences, 2);
	assert_int_equal(p->begins, 3);
}

static void test_worker_hands_over_and_is_told_the_end(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;

	start_two(w, &owner, &worker);
	owner->settles = false;
	assert_int_equal(add(worker, "a"), SHARE_KEPT);
	assert_int_equal(add(worker, "a"), SHARE_KEPT);
	assert_int_equal(add(worker, "b"), SHARE_KEPT);
	step(w, 2);
	assert_int_equal(owner->recorded_len, 2);
	assert_string_equal(owner->recorded[0].object, "a");
	assert_int_equal(owner->recorded[0].n, 2);
	assert_memory_equal(owner->recorded[0].name, "a.", 2);
	assert_int_equal(counts(worker).pending, 3);
	share_settled(owner->share, owner->recorded[0].source, owner->recorded[0].node, 0, FRAME_FORWARDED, 1);
	share_settled(owner->share, owner->recorded[0].source, owner->recorded[0].node, 0, FRAME_RATE_LIMITED, 1);
	share_settled(owner->share, owner->recorded[1].source, owner->recorded[1].node, 0, EVREC_CAUSE_FORBIDDEN, 1);
	step(w, 2);
	assert_true(share_is_settled(worker->share));
	assert_int_equal(counts(worker).forwarded, 1);
	assert_int_equal(counts(worker).rate_limited, 1);
	assert_int_equal(counts(worker).dropped[EVREC_CAUSE_FORBIDDEN], 1);
	assert_int_equal(worker->lost[FRAME_RATE_LIMITED], 1);
	assert_int_equal(worker->lost[EVREC_CAUSE_FORBIDDEN], 1);
	assert_string_equal(worker->lost_object, "b");
	/* The owner knows the event, and gives it no name of the worker's any more. */
	(void)add(worker, "a");
	step(w, 2);
	assert_int_equal(owner->recorded_len, 3);
	assert_string_equal(owner->recorded[2].object, "a");
	assert_string_equal(owner->recorded[2].name, "");
}

static void test_killed_owner_is_replaced_and_nothing_is_lost(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker, *other;
	char name[256];

	start_two(w, &owner, &worker);
	other = start(w, 2);
	step(w, 4);
	owner->settles = false;
	(void)add(worker, "a");
	(void)add(other, "a");
	step(w, 2);
	assert_int_equal(owner->occurrences, 2);
	/* The owner has read the other worker first. */
	copy(name, sizeof(name), str_from(owner->recorded[1].name));
	share_settled(owner->share, owner->recorded[1].source, owner->recorded[1].node, 0, FRAME_FORWARDED, 1);
	stop(owner);
	step(w, 4);
	/* The first worker that notices is the next owner, and the last owner may have written what it had sent. */
	assert_int_equal(share_role(worker->share), SHARE_OWNER);
	assert_int_equal(share_role(other->share), SHARE_WORKER);
	assert_int_equal(worker->occurrences, 2);
	assert_true(worker->recorded[0].again && worker->recorded[1].again);
	assert_string_equal(worker->recorded[0].name, name);
	assert_true(share_is_settled(other->share));
	assert_int_equal(counts(other).forwarded, 1);
}

/* An owner in a process of its own, which writes a byte once it is the owner, and once it has served a worker. */
static void own_with_child(struct world *w, const int held[2], int told)
{
	struct process *p = start(w, 0);
	char byte;

	share_step(p->share, unit_mono(), 0);
	(void)!write(told, "", 1);
	while (p->occurrences == 0) {
		share_step(p->share, unit_mono(), EVREC_SECOND);
	}
	/* Its child never uses the share, and lives on. */
	if (fork() == 0) {
		(void)close(held[1]);
		(void)!write(told, "", 1);
		(void)!read(held[0], &byte, 1);
		_exit(0);
	}
	for (;;) {
		(void)pause();
	}
}

static void test_child_of_a_killed_owner_does_not_hold_its_connections(void **state)
{
	struct world *w = *state;
	const int64_t deadline = unit_mono() + SOON;
	struct process *worker;
	int held[2], told[2];
	char byte;
	pid_t owner;

	assert_int_equal(pipe(held), 0);
	assert_int_equal(pipe(told), 0);
	owner = fork();
	if (owner == 0) {
		own_with_child(w, held, told[1]);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	worker = start(w, 1);
	(void)add(worker, "a");
	while (!share_is_settled(worker->share) && unit_mono() < deadline) {
		share_step(worker->share, unit_mono(), EVREC_SECOND / 100);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_int_equal(kill(owner, SIGKILL), 0);
	assert_int_equal(waitpid(owner, NULL, 0), owner);
	while (share_role(worker->share) != SHARE_OWNER && unit_mono() < deadline) {
		share_step(worker->share, unit_mono(), EVREC_SECOND / 100);
	}
	for (size_t i = 0; i < 2; i++) {
		(void)close(held[i]);
		(void)close(told[i]);
	}
	assert_int_equal(share_role(worker->share), SHARE_OWNER);
}

/* A process that listens there, and ends each connection without a word. */
static void test_owner_without_a_word_is_asked_again_later(void **state)
{
	struct world *w = *state;
	struct process *worker = start(w, 0);
	struct endpoint e;
	unsigned connections = 0;

	assert_int_equal(endpoint_init(&e, str_from(w->name), NULL), 0);
	assert_int_equal(endpoint_bind(&e, NULL), ENDPOINT_OK);
	for (size_t i = 0; i < 10; i++) {
		int fd;

		step(w, 1);
		fd = raw_accept(&e);
		connections += fd >= 0;
		if (fd >= 0) {
			(void)close(fd);
		}
	}
	assert_int_equal(connections, 1);
	w->now += EVREC_SECOND;
	step(w, 1);
	assert_int_equal(share_role(worker->share), SHARE_WORKER);
	endpoint_close(&e);
}

static void *fail_to_allocate(void *ctx, void *block, size_t size)
{
	(void)ctx;
	if (size == 0) {
		free(block);
	}
	return NULL;
}

static void test_worker_without_memory_to_greet_does_not_spin(void **state)
{
	struct world *w = *state;
	struct process *worker = start(w, 0);
	struct endpoint e;
	unsigned connections = 0;
	int fd;

	assert_int_equal(endpoint_init(&e, str_from(w->name), NULL), 0);
	assert_int_equal(endpoint_bind(&e, NULL), ENDPOINT_OK);
	evrec_set_allocator(fail_to_allocate, NULL);
	step(w, 10);
	evrec_set_allocator(NULL, NULL);
	while ((fd = raw_accept(&e)) >= 0) {
		connections++;
		(void)close(fd);
	}
	assert_int_equal(connections, 1);
	w->now += EVREC_SECOND;
	step(w, 1);
	assert_int_equal(share_role(worker->share), SHARE_WORKER);
	endpoint_close(&e);
}

/* An owner, and a worker that has an event, and whose options differ. */
static void start_refused(struct world *w, struct process **owner, struct process **worker)
{
	const struct share_options options = options_of(w);

	*owner = start(w, 0);
	step(w, 1);
	*worker = start_as(w, 1, &options, options_b);
	(void)add(*worker, "a");
}

static void test_worker_with_other_options_is_refused_by_name(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;

	start_refused(w, &owner, &worker);
	step(w, 6);
	assert_int_equal(owner->occurrences, 0);
	assert_int_equal(worker->errors, 1);
	assert_string_equal(worker->error_name, "share_refused");
	assert_string_equal(worker->error, "the owner refuses this process: option 'qps' differs");
	/* It is told once, and tries again. */
	w->now += 10 * EVREC_SECOND;
	step(w, 6);
	assert_int_equal(worker->errors, 1);
	assert_true(share_set_options(worker->share, options_a, 1, 1));
	w->now += 10 * EVREC_SECOND;
	step(w, 6);
	assert_int_equal(owner->occurrences, 1);
	assert_true(share_is_settled(worker->share));
}

/* A server reads other options: its former processes have one owner, and the next ones another. */
static void test_refused_worker_takes_over_once_its_owner_is_gone(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;

	start_refused(w, &owner, &worker);
	step(w, 6);
	share_end(owner->share, 0);
	stop(owner);
	w->now += EVREC_SECOND;
	step(w, 2);
	assert_int_equal(share_role(worker->share), SHARE_OWNER);
	assert_false(worker->alone);
	assert_int_equal(worker->occurrences, 1);
}

static void test_refused_worker_that_ends_records_itself(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;

	start_refused(w, &owner, &worker);
	share_leave(worker->share);
	step(w, 6);
	assert_true(worker->alone);
	assert_true(share_is_settled(worker->share));
	assert_int_equal(add(worker, "b"), SHARE_OWN);
	assert_int_equal(worker->occurrences, 1);
	share_end(worker->share, 0);
	assert_int_equal(worker->lost[EVREC_CAUSE_CLOSED], 0);
	/* The owner is still there for the others. */
	(void)add(start(w, 2), "c");
	w->now += EVREC_SECOND;
	step(w, 6);
	assert_int_equal(owner->occurrences, 1);
}

/* Its end comes before it has read that. */
static void test_worker_that_ends_is_refused(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;

	start_refused(w, &owner, &worker);
	share_step(worker->share, w->now, 0);
	share_step(owner->share, w->now, 0);
	share_end(worker->share, 0);
	assert_string_equal(worker->error_name, "share_refused");
	assert_int_equal(worker->lost[EVREC_CAUSE_CLOSED], 1);
}

/* A worker that is not refused hands its events over, also at its end. */
static void test_worker_that_ends_hands_over(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;

	start_two(w, &owner, &worker);
	(void)add(worker, "a");
	share_leave(worker->share);
	step(w, 6);
	assert_int_equal(owner->occurrences, 1);
	assert_int_equal(worker->occurrences, 0);
}

static void test_options_that_change_are_compared_again(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;

	start_two(w, &owner, &worker);
	assert_true(share_set_options(owner->share, options_b, 1, 1));
	step(w, 6);
	unit_check_contains(worker->error, "option 'qps' differs");
}

static void test_process_that_must_not_own_waits_for_an_owner(void **state)
{
	struct world *w = *state;
	struct share_options options = options_of(w);
	struct process *client, *owner;

	options.client_only = true;
	client = start_as(w, 0, &options, options_a);
	(void)add(client, "a");
	step(w, 3);
	assert_int_equal(share_role(client->share), SHARE_UNKNOWN);
	owner = start(w, 1);
	step(w, 1);
	w->now += EVREC_SECOND;
	step(w, 4);
	assert_int_equal(owner->occurrences, 1);
	assert_true(share_is_settled(client->share));
}

static void test_owner_that_ends_hands_its_state_to_one_worker(void **state)
{
	struct world *w = *state;
	struct process *owner, *first, *second;
	int heirs;

	start_two(w, &owner, &first);
	second = start(w, 2);
	step(w, 4);
	owner->state = "the state";
	owner->settles = false;
	(void)add(first, "a");
	step(w, 2);
	share_settled(owner->share, owner->recorded[0].source, owner->recorded[0].node, 0, FRAME_FORWARDED, 1);
	share_end(owner->share, SOON);
	stop(owner);
	step(w, 2);
	assert_true(share_is_settled(first->share));
	heirs = (share_role(first->share) == SHARE_OWNER) + (share_role(second->share) == SHARE_OWNER);
	assert_int_equal(heirs, 1);
	first = share_role(first->share) == SHARE_OWNER ? first : second;
	second = first == second ? &w->processes[1] : second;
	assert_string_equal(first->loaded, "the state");
	/* The other one waits a moment, so as not to be the next owner itself, and then connects. */
	assert_int_equal(share_role(second->share), SHARE_UNKNOWN);
	w->now += EVREC_SECOND;
	step(w, 4);
	assert_int_equal(share_role(second->share), SHARE_WORKER);
	assert_string_equal(second->loaded, "");
}

/* Else it would count on from there when that one ends. */
static void test_state_of_an_owner_before_the_last_one_is_forgotten(void **state)
{
	struct world *w = *state;
	struct process *owner, *heir, *other;

	start_two(w, &owner, &heir);
	owner->state = "old";
	share_end(owner->share, SOON);
	stop(owner);
	other = start(w, 2);
	share_step(other->share, w->now, 0);
	step(w, 4);
	assert_int_equal(share_role(other->share), SHARE_OWNER);
	assert_int_equal(share_role(heir->share), SHARE_WORKER);
	stop(other);
	step(w, 3);
	assert_int_equal(share_role(heir->share), SHARE_OWNER);
	assert_string_equal(heir->loaded, "");
}

static void test_acknowledgements_wait_for_the_state_file(void **state)
{
	struct world *w = *state;
	struct share_options options = options_of(w);
	struct process *owner, *worker;

	options.holds_acks = true;
	owner = start_as(w, 0, &options, options_a);
	step(w, 1);
	worker = start(w, 1);
	(void)add(worker, "a");
	step(w, 6);
	assert_int_equal(owner->occurrences, 1);
	assert_false(share_is_settled(worker->share));
	share_mark(owner->share);
	(void)add(worker, "a");
	(void)add(worker, "b");
	step(w, 4);
	assert_int_equal(owner->occurrences, 3);
	share_release(owner->share);
	step(w, 4);
	/* The occurrences that were settled after the mark are not in the file. */
	assert_int_equal(counts(worker).forwarded, 1);
	share_mark(owner->share);
	share_release(owner->share);
	step(w, 4);
	assert_true(share_is_settled(worker->share));
}

static void test_long_event_is_handed_over(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;
	char *note = malloc(250000);

	assert_non_null(note);
	memset(note, 'x', 250000);
	start_two(w, &owner, &worker);
	assert_int_equal(add_note(worker, "a", (evrec_str){ note, 250000 }), SHARE_KEPT);
	(void)add(worker, "b");
	step(w, 10);
	assert_int_equal(owner->recorded_len, 2);
	assert_string_equal(owner->recorded[0].object, "a");
	assert_string_equal(owner->recorded[1].object, "b");
	assert_true(share_is_settled(worker->share));
	free(note);
}

/* More than a socket holds, from a worker that is faster than its owner, and back. */
static void test_flood_of_different_events_is_handed_over(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;
	char object[32];

	start_two(w, &owner, &worker);
	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(object, sizeof(object), "web-%u", i);
		assert_int_equal(add(worker, object), SHARE_KEPT);
		(void)add(worker, object);
	}
	assert_int_equal(add(worker, "one-more"), SHARE_DROPPED);
	for (unsigned i = 0; i < 1000 && !share_is_settled(worker->share); i++) {
		step(w, 1);
	}
	assert_int_equal(owner->occurrences, 2000);
	assert_int_equal(counts(worker).forwarded, 2000);
	assert_int_equal(counts(worker).dropped[EVREC_CAUSE_QUEUE_FULL], 1);
}

static void test_flush_reaches_the_owner_behind_the_events(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;

	start_two(w, &owner, &worker);
	share_flush(worker->share);
	(void)add(worker, "a");
	step(w, 4);
	assert_int_equal(owner->flushes, 1);
	assert_int_equal(owner->occurrences, 1);
}

static void test_worker_that_ends_drops_what_is_left_and_tells(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;

	start_two(w, &owner, &worker);
	owner->settles = false;
	(void)add(worker, "a");
	step(w, 2);
	(void)add(worker, "a");
	share_end(worker->share, 0);
	assert_int_equal(worker->lost[EVREC_CAUSE_CLOSED], 2);
	assert_int_equal(counts(worker).dropped[EVREC_CAUSE_CLOSED], 2);
	/* The end of an event of a worker that is gone concerns nobody. */
	step(w, 2);
	share_settled(owner->share, owner->recorded[0].source, owner->recorded[0].node, 0, FRAME_FORWARDED, 1);
	step(w, 1);
}

static void test_wake_ends_a_wait(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;
	int64_t before;

	start_two(w, &owner, &worker);
	share_wake(owner->share);
	before = unit_mono();
	share_step(owner->share, w->now, SOON);
	assert_true(unit_mono() - before < SOON);
	/* An event in an empty ledger wakes the worker, and a frame the owner. */
	(void)add(worker, "a");
	share_step(worker->share, w->now, SOON);
	share_step(owner->share, w->now, SOON);
	assert_int_equal(owner->occurrences, 1);
}

/* Bytes that are no frame end the connection, and nothing else. */
static void test_nonsense_ends_the_connection_alone(void **state)
{
	struct world *w = *state;
	struct process *owner, *worker;
	char answer[256];
	int fd;

	start_two(w, &owner, &worker);
	fd = raw_connect(w->name);
	assert_true(fd >= 0);
	assert_int_equal(endpoint_send(fd, "nonsense", 8), 1);
	step(w, 2);
	assert_true(endpoint_receive(fd, answer, sizeof(answer)) > 0);
	assert_int_equal(endpoint_receive(fd, answer, sizeof(answer)), -1);
	(void)close(fd);
	(void)add(worker, "a");
	step(w, 3);
	assert_true(share_is_settled(worker->share));
}

static void test_frame_out_of_its_turn_ends_the_connection(void **state)
{
	struct world *w = *state;
	struct buf hello = { 0 };
	char answer[256];
	int fd;

	(void)start(w, 0);
	step(w, 1);
	fd = raw_connect(w->name);
	assert_true(fd >= 0);
	assert_true(frame_hello(&hello, (const unsigned char *)"0123456789abcdef", options_a, 1));
	frame_set_seq(&hello, 1);
	assert_int_equal(endpoint_send(fd, hello.data, hello.len), 1);
	step(w, 2);
	while (endpoint_receive(fd, answer, sizeof(answer)) > 0) {
	}
	assert_int_equal(endpoint_receive(fd, answer, sizeof(answer)), -1);
	(void)close(fd);
	buf_free(&hello);
}

/* ---- memory ---- */

/* Whatever fails, the event is recorded or counted as dropped, in the end. */
static void scenario(void)
{
	static unsigned number;
	struct world w = { .now = T0 };
	struct share_options options;
	evrec_error err = { 0 };
	unsigned added = 0;
	struct process *p = w.processes;

	(void)snprintf(w.name, sizeof(w.name), "@evrec-share-memory-%ld-%u", (long)getpid(), number++);
	options = options_of(&w);
	alloc_failure_arm();
	for (size_t i = 0; i < 2; i++) {
		p[i].settles = true;
		p[i].share = share_new(&options, &ops, &p[i], &err);
		alloc_failure_check_error(p[i].share != NULL, &err);
		if (p[i].share != NULL && !share_set_options(p[i].share, options_a, 1, 1)) {
			alloc_failure_check(false);
			stop(&p[i]);
		}
	}
	if (p[0].share != NULL && p[1].share != NULL) {
		step(&w, 3);
		added = add(&p[1], "a") == SHARE_KEPT;
		added += add(&p[1], "a") == SHARE_KEPT;
		step(&w, 4);
		alloc_failure_ignore();
	}
	alloc_failure_disarm();
	for (size_t i = 0; i < 4 && added != 0; i++) {
		w.now += 10 * EVREC_SECOND;
		step(&w, 6);
	}
	if (added != 0) {
		assert_true(share_is_settled(p[1].share));
		assert_true(p[0].occurrences + p[1].occurrences >= added);
	}
	share_free(p[0].share);
	share_free(p[1].share);
}

static void test_no_memory(void **state)
{
	(void)state;
	alloc_failure_run(scenario, 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_is_bound_before_the_first_step),
		TEST(test_owner_records_what_was_noted_before),
		TEST(test_owner_keeps_events_until_it_can_write),
		TEST(test_worker_hands_over_and_is_told_the_end),
		TEST(test_killed_owner_is_replaced_and_nothing_is_lost),
		TEST(test_child_of_a_killed_owner_does_not_hold_its_connections),
		TEST(test_owner_without_a_word_is_asked_again_later),
		TEST(test_worker_without_memory_to_greet_does_not_spin),
		TEST(test_worker_with_other_options_is_refused_by_name),
		TEST(test_refused_worker_takes_over_once_its_owner_is_gone),
		TEST(test_refused_worker_that_ends_records_itself),
		TEST(test_worker_that_ends_is_refused),
		TEST(test_worker_that_ends_hands_over),
		TEST(test_options_that_change_are_compared_again),
		TEST(test_process_that_must_not_own_waits_for_an_owner),
		TEST(test_owner_that_ends_hands_its_state_to_one_worker),
		TEST(test_state_of_an_owner_before_the_last_one_is_forgotten),
		TEST(test_acknowledgements_wait_for_the_state_file),
		TEST(test_long_event_is_handed_over),
		TEST(test_flood_of_different_events_is_handed_over),
		TEST(test_flush_reaches_the_owner_behind_the_events),
		TEST(test_worker_that_ends_drops_what_is_left_and_tells),
		TEST(test_wake_ends_a_wait),
		TEST(test_nonsense_ends_the_connection_alone),
		TEST(test_frame_out_of_its_turn_ends_the_connection),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
