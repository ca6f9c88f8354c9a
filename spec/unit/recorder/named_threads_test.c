/* Four threads use one broadcaster with a name, each by handles of its own. For the thread sanitizer above all. */
#include "stats_invariants.h"

#include "tmpdir.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 4
#define ROUNDS 40
#define EVENTS 25
#define RECORDED (THREADS * ROUNDS * EVENTS)

struct threads_fixture {
	evrec_sink *file;
	evrec_broadcaster *first; /* keeps the broadcaster alive */
	atomic_uint seen;         /* by functions of watches */
	atomic_uint asked;        /* for keys */
	bool custom;              /* each handle starts a sink of functions too, or joins it */
	atomic_uint created;      /* by such sinks */
	atomic_uint done;         /* threads */
};

/* A thread, and what its callbacks may see: that they run in it, and with no lock held. */
struct worker {
	struct threads_fixture *f;
	pthread_t thread;
	evrec_broadcaster *b;
	evrec_sink *custom;
	unsigned number;
};

static void check_thread(const struct worker *w)
{
	evrec_stats stats;

	assert_true(pthread_equal(w->thread, pthread_self()) != 0);
	evrec_broadcaster_get_stats(w->b, &stats);
}

static void on_drop(void *ctx, const evrec_event *event, const char *cause)
{
	(void)event;
	(void)cause;
	check_thread(ctx);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	(void)message;
	(void)name;
	check_thread(ctx);
}

static void on_event(void *ctx, evrec_event *event)
{
	struct worker *w = ctx;

	assert_true(evrec_event_fields(event)->name.len != 0);
	check_thread(w);
	w->f->seen++;
}

static bool choose_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	struct worker *w = ctx;

	check_thread(w);
	w->f->asked++;
	*key = event->reason;
	return true;
}

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	struct worker *w = ctx;

	(void)event;
	check_thread(w);
	answer->status = 201;
	w->f->created++;
}

static const evrec_sink_ops custom_ops = { .create = create };

static evrec_broadcaster *open_handle(struct worker *w)
{
	evrec_broadcaster_options options;
	evrec_error err;
	evrec_broadcaster *b;

	evrec_broadcaster_options_init(&options);
	options.name = EVREC_STR("threads");
	options.on_drop = on_drop;
	options.on_error = on_error;
	options.ctx = w;
	b = evrec_broadcaster_new(&options, &err);
	assert_non_null(b);
	return b;
}

static evrec_watch *start(struct worker *w)
{
	evrec_correlator_options options;
	evrec_watch *watch;
	evrec_error err = { 0 };

	evrec_correlator_options_init(&options);
	options.burst_size = 1000000;
	options.max_events = 1000000;
	options.spam_key_func = choose_spam_key;
	options.ctx = w;
	watch = evrec_broadcaster_start_recording_to_sink(w->b, w->f->file, &options, &err);
	if (watch == NULL) {
		fail_msg("%s", err.message);
	}
	return watch;
}

static void record(evrec_recorder *r, unsigned number, unsigned i)
{
	char text[32];
	evrec_emit emit;
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = evrec_string(text), .ns = EVREC_STR("shop") };
	evrec_reference regarding = pod;

	(void)snprintf(text, sizeof(text), "web-%u", (number + i) % 7);
	regarding.name = evrec_string(text);
	evrec_emit_init(&emit);
	emit.regarding = &regarding;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("Started");
	emit.note = EVREC_STR("started");
	assert_int_equal(evrec_recorder_emit(r, &emit, NULL), 0);
}

/* One life of a handle: joins the sink, records, polls, flushes, looks, and leaves. */
static void live(struct worker *w, unsigned round)
{
	evrec_recorder_options source = { .component = EVREC_STR("test") };
	evrec_watch *sink, *function, *queue, *custom = NULL;
	evrec_sink_stats stats;
	evrec_recorder *r;
	evrec_event *event;

	w->b = open_handle(w);
	sink = start(w);
	if (w->f->custom) {
		custom = evrec_broadcaster_start_recording_to_sink(w->b, w->custom, NULL, NULL);
		assert_non_null(custom);
	}
	function = evrec_broadcaster_start_event_watcher(w->b, on_event, w, NULL);
	queue = evrec_broadcaster_watch(w->b, 8, NULL);
	r = evrec_recorder_new(w->b, &source, NULL);
	assert_true(sink != NULL && function != NULL && queue != NULL && r != NULL);
	for (unsigned i = 0; i < EVENTS; i++) {
		record(r, w->number, i);
		if (i % 5 == w->number) {
			evrec_broadcaster_poll(w->b);
			event = evrec_watch_next(queue);
			evrec_event_release(event);
		}
	}
	assert_true(evrec_recorder_refuse(r, "no", NULL) == EVREC_EINVALID);
	(void)evrec_watch_get_sink_stats(sink, &stats);
	if (round % 4 == w->number) {
		(void)evrec_broadcaster_flush(w->b, SOON, NULL);
	}
	if (round % 2 == 0) {
		if (custom != NULL && w->number != 0) {
			evrec_watch_stop(custom);
		}
		evrec_watch_stop(sink);
		evrec_watch_stop(function);
	}
	evrec_watch_free(queue);
	evrec_watch_free(function);
	if (round % 3 == 0) {
		(void)evrec_broadcaster_shutdown(w->b, SOON, NULL);
	}
	evrec_broadcaster_free(w->b);
	(void)evrec_watch_get_sink_stats(sink, &stats);
	evrec_watch_free(sink);
	evrec_watch_free(custom);
	evrec_recorder_free(r);
}

static void *run(void *ctx)
{
	struct worker *w = ctx;

	w->thread = pthread_self();
	w->custom = evrec_sink_new(&custom_ops, w, NULL, NULL);
	for (unsigned round = 0; round < ROUNDS; round++) {
		live(w, round);
	}
	evrec_sink_release(w->custom);
	w->f->done++;
	return NULL;
}

/* The occurrences that were written, of sinks that run and of those that ended. */
static uint64_t count_written(const evrec_broadcaster *b)
{
	evrec_sink_stats sink;
	evrec_stats stats;
	uint64_t written;

	evrec_broadcaster_get_stats(b, &stats);
	written = stats.ended.created + stats.ended.patched + stats.ended.coalesced;
	for (size_t number = 1; evrec_broadcaster_next_sink(b, &number); number++) {
		assert_true(evrec_broadcaster_get_sink_stats(b, number, &sink));
		written += sink.created + sink.patched + sink.coalesced;
	}
	return written;
}

static void live_in_threads(struct threads_fixture *f, void *folder)
{
	struct worker workers[THREADS], own = { .f = f, .thread = pthread_self() };
	pthread_t threads[THREADS];
	evrec_stats stats;

	f->file = evrec_sink_file(evrec_string(tmpdir_path(folder, "events")), NULL, NULL);
	own.b = f->first = open_handle(&own);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .f = f, .number = i };
		assert_int_equal(pthread_create(&threads[i], NULL, run, &workers[i]), 0);
	}
	/* This handle has joined no sink: it flushes those that others stop meanwhile. */
	while (f->done < THREADS) {
		(void)evrec_broadcaster_flush(own.b, EVREC_SECOND / 100, NULL);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	(void)evrec_broadcaster_shutdown(f->first, SOON, NULL);
	stats_check_equations(f->first);
	evrec_broadcaster_get_stats(f->first, &stats);
	assert_int_equal(stats.recorded, RECORDED + THREADS * ROUNDS);
	assert_int_equal(stats.broadcast, RECORDED);
	assert_int_equal(stats.invalid, THREADS * ROUNDS);
	assert_int_equal(f->asked, RECORDED);
	assert_true(f->seen > 0);
	if (!f->custom) {
		assert_int_equal(count_written(f->first), RECORDED);
	}
	evrec_broadcaster_free(f->first);
	evrec_sink_release(f->file);
}

static void test_four_threads_record_and_nothing_is_lost(void **state)
{
	struct threads_fixture f = { .seen = 0 };

	live_in_threads(&f, *state);
}

static void test_functions_of_sinks_are_called_by_their_own_thread(void **state)
{
	struct threads_fixture f = { .custom = true };

	live_in_threads(&f, *state);
	assert_true(f.created > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_four_threads_record_and_nothing_is_lost),
		TMPDIR_TEST(test_functions_of_sinks_are_called_by_their_own_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
