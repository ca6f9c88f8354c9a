/* Two broadcasters of one process that share one recorder, driven by polls: the first is the owner. */
#include "tmpdir.h"

#include <poll.h>
#include <sys/stat.h>

#include "alloc_failure.h"
#include "base/file.h"
#include "recorder/broadcaster.h"
#include "recorder/sharing_inner.h"

struct side {
	evrec_broadcaster *b;
	evrec_watch *watch;
	evrec_recorder *r;
	unsigned drops, errors;
	char why[64], error[256], error_name[64];
};

struct world {
	char share[64];
	struct side sides[2];
};

static void on_drop(void *ctx, const evrec_event *event, const char *why)
{
	struct side *side = ctx;

	assert_non_null(event);
	side->drops++;
	(void)snprintf(side->why, sizeof(side->why), "%s", why);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	struct side *side = ctx;

	side->errors++;
	(void)snprintf(side->error, sizeof(side->error), "%s", message);
	(void)snprintf(side->error_name, sizeof(side->error_name), "%s", name);
}

static const char *const names[] = { "first", "second", "third" };

static evrec_broadcaster_options options_of(const struct world *w, size_t i, struct side *side)
{
	evrec_broadcaster_options options;

	evrec_broadcaster_options_init(&options);
	options.share = str_from(w->share);
	options.name = str_from(names[i]);
	options.on_drop = on_drop;
	options.on_error = on_error;
	options.ctx = side;
	return options;
}

/* False: no memory. */
static bool open_with(struct side *side, const evrec_broadcaster_options *options, const char *path,
                      const evrec_sink_options *common, unsigned burst)
{
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	evrec_correlator_options correlator;
	evrec_sink *sink;

	evrec_correlator_options_init(&correlator);
	correlator.burst_size = burst;
	correlator.qps = 0;
	side->b = evrec_broadcaster_new(options, NULL);
	sink = evrec_sink_file(str_from(path), common, NULL);
	if (side->b != NULL && sink != NULL) {
		side->watch = evrec_broadcaster_start_recording_to_sink(side->b, sink, &correlator, NULL);
		side->r = evrec_recorder_new(side->b, &source, NULL);
	}
	evrec_sink_release(sink);
	return side->watch != NULL && side->r != NULL;
}

static bool open_driven(struct side *side, const evrec_broadcaster_options *options, const char *path, unsigned burst,
                        enum evrec_drive drive)
{
	evrec_broadcaster_options own = *options;

	own.drive = drive;
	return open_with(side, &own, path, NULL, burst);
}

static bool open_limited(struct side *side, const evrec_broadcaster_options *options, const char *path,
                         const evrec_sink_options *common)
{
	evrec_broadcaster_options own = *options;

	own.drive = EVREC_DRIVE_POLL;
	return open_with(side, &own, path, common, 25);
}

static bool open_side(struct side *side, const evrec_broadcaster_options *options, const char *path, unsigned burst)
{
	return open_driven(side, options, path, burst, EVREC_DRIVE_POLL);
}

static void close_side(struct side *side)
{
	evrec_watch_free(side->watch);
	evrec_recorder_free(side->r);
	evrec_broadcaster_free(side->b);
	*side = (struct side){ .b = NULL };
}

static int record(const struct side *side, const char *note)
{
	const evrec_reference pod = { .kind = EVREC_STR("Pod"), .name = EVREC_STR("p"), .ns = EVREC_STR("n") };
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &pod;
	emit.type = EVREC_STR("Normal");
	emit.reason = EVREC_STR("R");
	emit.note = str_from(note);
	return evrec_recorder_emit(side->r, &emit, NULL);
}

static evrec_sink_stats stats(const struct side *side)
{
	evrec_sink_stats s = { .number = 0 };

	assert_true(evrec_broadcaster_get_sink_stats(side->b, 1, &s));
	return s;
}

static void poll_both(struct world *w, unsigned times)
{
	while (times-- > 0) {
		evrec_broadcaster_poll(w->sides[0].b);
		evrec_broadcaster_poll(w->sides[1].b);
	}
}

static void make_world(struct world *w)
{
	static unsigned number;

	*w = (struct world){ .share = "" };
	(void)snprintf(w->share, sizeof(w->share), "@evrec-sharing-%ld-%u", (long)getpid(), number++);
}

static void open_both(struct world *w, const char *path, unsigned burst)
{
	make_world(w);
	for (size_t i = 0; i < 2; i++) {
		const evrec_broadcaster_options options = options_of(w, i, &w->sides[i]);

		assert_true(open_side(&w->sides[i], &options, path, burst));
		evrec_broadcaster_poll(w->sides[i].b);
	}
	poll_both(w, 4);
}

static void close_both(struct world *w)
{
	close_side(&w->sides[1]);
	close_side(&w->sides[0]);
}

static void test_drops_are_told_where_the_event_was_recorded(void **state)
{
	struct world w;

	open_both(&w, tmpdir_path(*state, "events"), 1);
	assert_int_equal(record(&w.sides[1], "a"), 0);
	assert_int_equal(record(&w.sides[1], "b"), 0);
	poll_both(&w, 6);
	assert_int_equal(w.sides[1].drops, 1);
	assert_string_equal(w.sides[1].why, "rate_limited");
	assert_int_equal(w.sides[0].drops, 0);
	assert_int_equal(stats(&w.sides[1]).forwarded, 1);
	assert_int_equal(stats(&w.sides[1]).rate_limited, 1);
	assert_int_equal(stats(&w.sides[1]).received, 2);
	/* The owner's own are told to the owner. */
	assert_int_equal(record(&w.sides[0], "c"), 0);
	poll_both(&w, 2);
	assert_int_equal(w.sides[0].drops, 1);
	assert_int_equal(w.sides[1].drops, 1);
	close_both(&w);
}

/* What an owner that ends cannot write, its worker still has. */
static void test_owner_that_ends_leaves_what_it_cannot_write(void **state)
{
	struct world w;

	open_both(&w, "/dev/full", 25);
	(void)state;
	assert_int_equal(record(&w.sides[1], "a"), 0);
	poll_both(&w, 6);
	assert_int_equal(stats(&w.sides[1]).pending, 1);
	assert_int_equal(evrec_broadcaster_shutdown(w.sides[0].b, 0, NULL), 0);
	assert_int_equal(stats(&w.sides[0]).forwarded, 1);
	assert_int_equal(stats(&w.sides[0]).dropped[EVREC_CAUSE_CLOSED], 0);
	poll_both(&w, 6);
	assert_int_equal(w.sides[0].drops + w.sides[1].drops, 0);
	assert_int_equal(stats(&w.sides[1]).pending, 1);
	close_both(&w);
}

static void test_process_with_other_options_is_refused(void **state)
{
	struct world w;
	evrec_broadcaster_options options;

	make_world(&w);
	options = options_of(&w, 0, &w.sides[0]);
	assert_true(open_side(&w.sides[0], &options, tmpdir_path(*state, "events"), 25));
	evrec_broadcaster_poll(w.sides[0].b);
	options = options_of(&w, 1, &w.sides[1]);
	assert_true(open_side(&w.sides[1], &options, tmpdir_path(*state, "events"), 24));
	assert_int_equal(record(&w.sides[1], "a"), 0);
	poll_both(&w, 6);
	assert_int_equal(w.sides[1].errors, 1);
	assert_string_equal(w.sides[1].error_name, "share_refused");
	unit_check_contains(w.sides[1].error, "option 'burst_size' differs");
	assert_int_equal(stats(&w.sides[1]).pending, 1);
	assert_int_equal(evrec_broadcaster_flush(w.sides[1].b, 1, NULL), EVREC_ETIMEOUT);
	close_both(&w);
}

/* The owner has other options, as of a configuration that was read later or before. */
static void test_refused_process_that_is_shut_down_writes(void **state)
{
	struct world w;
	evrec_broadcaster_options options;

	make_world(&w);
	options = options_of(&w, 0, &w.sides[0]);
	assert_true(open_side(&w.sides[0], &options, tmpdir_path(*state, "events"), 25));
	evrec_broadcaster_poll(w.sides[0].b);
	options = options_of(&w, 1, &w.sides[1]);
	assert_true(open_side(&w.sides[1], &options, tmpdir_path(*state, "events"), 24));
	assert_int_equal(record(&w.sides[1], "a"), 0);
	poll_both(&w, 6);
	assert_int_equal(evrec_broadcaster_shutdown(w.sides[1].b, SOON, NULL), 0);
	assert_int_equal(stats(&w.sides[1]).created, 1);
	assert_int_equal(w.sides[1].drops, 0);
	close_both(&w);
}

/* Nobody writes: a worker keeps as much as its sinks would. */
static void test_limits_of_a_sink_bound_a_worker(void **state)
{
	evrec_broadcaster_options options;
	evrec_sink_options common;
	struct world w;

	make_world(&w);
	evrec_sink_options_init(&common);
	common.limits.max_pending = 3;
	options = options_of(&w, 0, &w.sides[0]);
	options.share_client_only = true;
	assert_true(open_limited(&w.sides[0], &options, tmpdir_path(*state, "events"), &common));
	for (char note[] = "a"; note[0] <= 'e'; note[0]++) {
		assert_int_equal(record(&w.sides[0], note), 0);
	}
	assert_int_equal(stats(&w.sides[0]).pending, 3);
	assert_int_equal(stats(&w.sides[0]).dropped[EVREC_CAUSE_QUEUE_FULL], 2);
	assert_int_equal(w.sides[0].drops, 2);
	close_side(&w.sides[0]);
}

static void test_share_is_the_name_of_a_broadcaster_without_one(void **state)
{
	struct world w;
	evrec_broadcaster_options options;

	make_world(&w);
	for (size_t i = 0; i < 2; i++) {
		options = options_of(&w, i, &w.sides[i]);
		options.name = (evrec_str){ NULL, 0 };
		assert_true(open_side(&w.sides[i], &options, tmpdir_path(*state, "events"), 25));
		assert_int_equal(record(&w.sides[i], "a"), 0);
	}
	poll_both(&w, 3);
	assert_int_equal(stats(&w.sides[0]).created, 1);
	assert_int_equal(stats(&w.sides[0]).coalesced, 1);
	assert_int_equal(stats(&w.sides[1]).received, 2);
	close_both(&w);
}

static void test_worker_shut_down_alone_drops_and_tells(void **state)
{
	struct world w;

	open_both(&w, tmpdir_path(*state, "events"), 25);
	assert_int_equal(record(&w.sides[1], "a"), 0);
	assert_int_equal(evrec_broadcaster_shutdown(w.sides[1].b, 0, NULL), EVREC_ELOST);
	assert_int_equal(stats(&w.sides[1]).dropped[EVREC_CAUSE_CLOSED], 1);
	assert_int_equal(w.sides[1].drops, 1);
	assert_int_equal(record(&w.sides[1], "a"), EVREC_ECLOSED);
	close_both(&w);
}

/* ---- an owner that ends in order ---- */

static void check_in_file(const char *path, const char *words)
{
	struct buf text = { 0 };

	assert_true(file_read(path, 1 << 20, &text));
	unit_check_contains(buf_cstr(&text), words);
	buf_free(&text);
}

static void end_owner(struct world *w)
{
	assert_int_equal(evrec_broadcaster_shutdown(w->sides[0].b, SOON, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		evrec_broadcaster_poll(w->sides[1].b);
	}
}

static void test_the_next_owner_counts_on(void **state)
{
	const char *path = tmpdir_path(*state, "events");
	struct world w;

	open_both(&w, path, 25);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(record(&w.sides[0], "a"), 0);
		poll_both(&w, 2);
	}
	end_owner(&w);
	assert_int_equal(record(&w.sides[1], "a"), 0);
	assert_int_equal(evrec_broadcaster_flush(w.sides[1].b, SOON, NULL), 0);
	assert_int_equal(stats(&w.sides[1]).created, 0);
	assert_int_equal(stats(&w.sides[1]).patched, 1);
	check_in_file(path, "\"count\":6");
	close_both(&w);
}

static void test_the_next_owner_has_no_new_tokens(void **state)
{
	struct world w;

	open_both(&w, tmpdir_path(*state, "events"), 2);
	assert_int_equal(record(&w.sides[0], "a"), 0);
	assert_int_equal(record(&w.sides[0], "b"), 0);
	end_owner(&w);
	assert_int_equal(record(&w.sides[1], "c"), 0);
	assert_int_equal(stats(&w.sides[1]).rate_limited, 1);
	assert_string_equal(w.sides[1].why, "rate_limited");
	close_both(&w);
}

/* The child of an owner is a worker, and hands over what it records. */
static void test_child_of_an_owner_is_a_worker(void **state)
{
	struct world w;
	pid_t child;
	int status = -1;

	open_both(&w, tmpdir_path(*state, "events"), 25);
	assert_int_equal(record(&w.sides[0], "a"), 0);
	poll_both(&w, 2);
	child = fork();
	if (child == 0) {
		const bool ok = record(&w.sides[0], "a") == 0 && evrec_broadcaster_flush(w.sides[0].b, SOON, NULL) == 0;
		const evrec_sink_stats s = stats(&w.sides[0]);

		_exit(!ok ? 2 : s.forwarded == 1 && s.received == 1 && s.created == 0 ? 0 : 1);
	}
	while (waitpid(child, &status, WNOHANG) == 0) {
		evrec_broadcaster_poll(w.sides[0].b);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(status, 0);
	assert_int_equal(stats(&w.sides[0]).created + stats(&w.sides[0]).patched + stats(&w.sides[0]).coalesced, 2);
	close_both(&w);
}

/* The same while the thread of the parent is anywhere. */
static void test_children_of_an_owner_with_a_thread_are_workers(void **state)
{
	evrec_broadcaster_options options;
	struct side *side;
	struct world w;

	if (UNDER_TSAN) {
		skip(); /* it supports no threads in the child of a process that has some */
	}
	make_world(&w);
	side = &w.sides[0];
	options = options_of(&w, 0, side);
	assert_true(open_driven(side, &options, tmpdir_path(*state, "events"), 1000, EVREC_DRIVE_AUTO));
	/* From here on it is the owner. */
	assert_int_equal(record(side, "a"), 0);
	assert_int_equal(evrec_broadcaster_flush(side->b, SOON, NULL), 0);
	for (unsigned i = 0; i < 20; i++) {
		pid_t child;

		assert_int_equal(record(side, "a"), 0);
		child = fork();
		if (child == 0) {
			_exit(record(side, "a") == 0 && evrec_broadcaster_flush(side->b, SOON, NULL) == 0 &&
			                      stats(side).forwarded == 1
			              ? 0
			              : 1);
		}
		assert_int_equal(unit_wait(child), 0);
	}
	assert_int_equal(evrec_broadcaster_flush(side->b, SOON, NULL), 0);
	assert_int_equal(stats(side).created + stats(side).patched + stats(side).coalesced, 41);
	assert_int_equal(evrec_broadcaster_shutdown(side->b, SOON, NULL), 0);
	close_side(side);
}

/* ---- series ---- */

static void poll_three(struct world *w, const struct side *third, unsigned times)
{
	while (times-- > 0) {
		poll_both(w, 1);
		evrec_broadcaster_poll(third->b);
	}
}

/* The count of the series that was written last. */
static long long last_count(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[4096];
	long long count = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		const char *at = strstr(line, "\"series\":{\"count\":");

		count = at == NULL ? 1 : atoll(at + strlen("\"series\":{\"count\":"));
	}
	(void)fclose(file);
	return count;
}

/* One event goes on in an owner and two workers. */
static void test_series_goes_on_through_two_workers(void **state)
{
	static const unsigned turns[] = { 1, 2, 1, 0, 2, 2, 1 };
	const char *path = tmpdir_path(*state, "events");
	evrec_sink_options common;
	evrec_sink_stats s;
	struct side third;
	struct world w;

	make_world(&w);
	evrec_sink_options_init(&common);
	common.api = EVREC_SINK_EVENTS_V1;
	for (size_t i = 0; i < 3; i++) {
		struct side *side = i < 2 ? &w.sides[i] : &third;
		evrec_broadcaster_options options = options_of(&w, i, side);

		*side = (struct side){ .b = NULL };
		assert_true(open_limited(side, &options, path, &common));
		evrec_broadcaster_poll(side->b);
	}
	for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
		assert_int_equal(record(turns[i] < 2 ? &w.sides[turns[i]] : &third, "a"), 0);
		poll_three(&w, &third, 3);
	}
	s = stats(&w.sides[0]);
	assert_int_equal(s.received, 7);
	/* The first two are written at once; the series counts the rest. */
	assert_int_equal(s.created, 1);
	assert_int_equal(s.counted, 5);
	assert_int_equal(stats(&w.sides[1]).pending + stats(&third).pending, 4);
	assert_int_equal(last_count(path), 2);
	/* A worker's flush writes what is counted of all. */
	for (unsigned i = 0; i < 1000 && evrec_broadcaster_flush(third.b, 1, NULL) != 0; i++) {
		poll_three(&w, &third, 1);
		(void)poll(NULL, 0, 1);
	}
	poll_three(&w, &third, 3);
	s = stats(&w.sides[0]);
	assert_int_equal(s.counted + s.pending, 0);
	assert_int_equal(s.created + s.patched + s.coalesced, 7);
	assert_int_equal(last_count(path), 7);
	assert_int_equal(stats(&w.sides[1]).forwarded, 3);
	assert_int_equal(stats(&third).forwarded, 3);
	assert_int_equal(stats(&w.sides[1]).pending + stats(&third).pending, 0);
	close_side(&third);
	close_both(&w);
}

/* ---- ends without a shutdown ---- */

/* How a process ends that has just recorded three events. */
enum ending { BY_EXIT, BY_SIGNAL, BY_FREE };

static int live(const struct world *w, const char *path, const char *errors, bool threads, enum ending ending,
                bool client_only)
{
	static const int signals[] = { SIGTERM };
	static struct side side; /* static, as exit() comes before all is freed, and what is left must not be a leak */
	evrec_broadcaster_options options = options_of(w, 1, &side);

	if (freopen(errors, "w", stderr) == NULL) {
		return 2;
	}
	options.share_client_only = client_only;
	options.on_drop = NULL;
	options.on_error = NULL;
	options.loud = true;
	if (!open_driven(&side, &options, path, 25, threads ? EVREC_DRIVE_AUTO : EVREC_DRIVE_POLL) ||
	    evrec_on_signal(signals, 1, EVREC_SECOND / 2, NULL) != 0) {
		return 3;
	}
	(void)record(&side, "a");
	(void)record(&side, "a");
	(void)record(&side, "b");
	if (ending == BY_SIGNAL) {
		(void)raise(SIGTERM);
		(void)pause();
	}
	if (ending == BY_FREE) {
		close_side(&side);
	}
	return 0;
}

static int end_process(const struct world *w, void **state, const char *path, bool threads, enum ending ending,
                       bool client_only)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		exit(live(w, path, tmpdir_path(*state, "errors"), threads, ending, client_only));
	}
	while (waitpid(child, &status, WNOHANG) == 0) {
		if (w->sides[0].b != NULL) {
			evrec_broadcaster_poll(w->sides[0].b);
		}
		(void)poll(NULL, 0, 1);
	}
	return status;
}

static int end_worker(const struct world *w, void **state, bool threads, enum ending ending)
{
	return end_process(w, state, tmpdir_path(*state, "events"), threads, ending, true);
}

/* The count that the event with this message has in the last line of the file that shows it. */
static int count_of(const char *path, const char *message)
{
	FILE *file = fopen(path, "r");
	char line[4096], wanted[64];
	int count = 0;

	assert_non_null(file);
	(void)snprintf(wanted, sizeof(wanted), "\"message\":\"%s\"", message);
	while (fgets(line, sizeof(line), file) != NULL) {
		const char *at = strstr(line, "\"count\":");

		if (at != NULL && strstr(line, wanted) != NULL) {
			count = atoi(at + strlen("\"count\":"));
		}
	}
	(void)fclose(file);
	return count;
}

/* The lines of evrec on standard error. The sanitizers tell there of threads that live at the end. */
static void check_line(void **state, const char *line)
{
	FILE *file = fopen(tmpdir_path(*state, "errors"), "r");
	char next[512], own[512] = "";

	assert_non_null(file);
	while (fgets(next, sizeof(next), file) != NULL) {
		if (strncmp(next, "evrec: ", 7) == 0) {
			(void)snprintf(own, sizeof(own), "%s", next);
		}
	}
	(void)fclose(file);
	assert_string_equal(own, line);
}

/* A process alone becomes the owner, also if it ends at once, and writes by itself. */
static void test_lone_process_that_ends_writes(void **state)
{
	struct world w;

	if (UNDER_TSAN) {
		skip();
	}
	make_world(&w);
	for (unsigned i = 0; i < 4; i++) {
		char path[256];

		(void)snprintf(path, sizeof(path), "%s-%u", tmpdir_path(*state, "alone"), i);
		assert_int_equal(end_process(&w, state, path, i % 2 == 1, i < 2 ? BY_EXIT : BY_FREE, false), 0);
		check_line(state, "");
		assert_int_equal(count_of(path, "a"), 2);
		assert_int_equal(count_of(path, "b"), 1);
	}
}

/* Nobody is there who would write. */
static void test_worker_that_ends_tells_what_is_not_acknowledged(void **state)
{
	char line[256];
	struct world w;

	if (UNDER_TSAN) {
		skip();
	}
	make_world(&w);
	(void)snprintf(line, sizeof(line),
	               "evrec: the share %s: 3 events were not acknowledged by the process that writes for all\n",
	               w.share);
	assert_int_equal(end_worker(&w, state, true, BY_EXIT), 0);
	check_line(state, line);
	assert_int_equal(end_worker(&w, state, true, BY_SIGNAL), SIGTERM);
	check_line(state, line);
	assert_int_equal(end_worker(&w, state, true, BY_FREE), 0);
	check_line(state, line);
}

static void test_worker_that_exits_hands_over_first(void **state)
{
	evrec_broadcaster_options options;
	evrec_sink_stats s;
	struct world w;

	if (UNDER_TSAN) {
		skip();
	}
	make_world(&w);
	options = options_of(&w, 0, &w.sides[0]);
	assert_true(open_side(&w.sides[0], &options, tmpdir_path(*state, "events"), 25));
	evrec_broadcaster_poll(w.sides[0].b);
	for (int threads = 0; threads <= 1; threads++) {
		assert_int_equal(end_worker(&w, state, threads == 1, BY_EXIT), 0);
		check_line(state, "");
	}
	assert_int_equal(end_worker(&w, state, true, BY_SIGNAL), SIGTERM);
	check_line(state, "");
	s = stats(&w.sides[0]);
	assert_int_equal(s.created + s.patched + s.coalesced, 9);
	close_side(&w.sides[0]);
}

/* The owner has other options. */
static void test_refused_process_that_ends_writes(void **state)
{
	static const enum ending endings[] = { BY_EXIT, BY_SIGNAL, BY_FREE };
	evrec_broadcaster_options options;
	struct world w;

	if (UNDER_TSAN) {
		skip();
	}
	make_world(&w);
	options = options_of(&w, 0, &w.sides[0]);
	assert_true(open_side(&w.sides[0], &options, tmpdir_path(*state, "events"), 24));
	evrec_broadcaster_poll(w.sides[0].b);
	/* By a free alone, a broadcaster without a thread is not there long enough to learn that it is refused. */
	for (unsigned i = 0; i < 5; i++) {
		const enum ending ending = endings[i / 2];
		char path[256];

		(void)snprintf(path, sizeof(path), "%s-%u", tmpdir_path(*state, "refused"), i);
		assert_int_equal(end_process(&w, state, path, i % 2 == 0, ending, false),
		                 ending == BY_SIGNAL ? SIGTERM : 0);
		assert_int_equal(count_of(path, "a"), 2);
		assert_int_equal(count_of(path, "b"), 1);
	}
	close_side(&w.sides[0]);
}

/* ---- memory ---- */

struct busy {
	const struct side *side;
	atomic_uint recorded;
	atomic_bool stops;
};

static void *keep_recording(void *ctx)
{
	struct busy *busy = ctx;

	while (!atomic_load(&busy->stops)) {
		(void)record(busy->side, "a");
		atomic_fetch_add(&busy->recorded, 1);
	}
	return NULL;
}

/* Recording calls have their turn while an owner records many occurrences that a worker has handed over at once. */
static void test_recording_calls_do_not_wait_for_those_of_workers(void **state)
{
	struct busy busy = { .recorded = 0 };
	struct frame_event event = { .sinks = 0 };
	struct share_event e = { .event = &event, .n = 100000, .first = T0, .last = T0 };
	evrec_broadcaster_options options;
	struct world w;
	pthread_t thread;
	unsigned before;

	make_world(&w);
	options = options_of(&w, 0, &w.sides[0]);
	assert_true(open_side(&w.sides[0], &options, tmpdir_path(*state, "events"), 25));
	evrec_broadcaster_poll(w.sides[0].b);
	busy.side = &w.sides[0];
	evrec_fields_init(&event.fields);
	event.fields.regarding =
		(evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("p"), .ns = EVREC_STR("n") };
	event.fields.ns = EVREC_STR("n");
	event.fields.type = EVREC_STR("Normal");
	event.fields.reason = EVREC_STR("R");
	event.fields.note = EVREC_STR("b");
	assert_int_equal(pthread_create(&thread, NULL, keep_recording, &busy), 0);
	while (atomic_load(&busy.recorded) == 0) {
		(void)poll(NULL, 0, 1);
	}
	before = atomic_load(&busy.recorded);
	sharing_ops.record(w.sides[0].b->hub, &e);
	before = atomic_load(&busy.recorded) - before;
	atomic_store(&busy.stops, true);
	(void)pthread_join(thread, NULL);
	assert_true(before >= 20);
	close_side(&w.sides[0]);
}

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

static void wait_for_size(const char *path, off_t more_than)
{
	const int64_t deadline = unit_mono() + SOON;

	while (size_of(path) <= more_than && unit_mono() < deadline) {
		(void)poll(NULL, 0, 1);
	}
	assert_true(size_of(path) > more_than);
}

/* The sink's thread goes on for a while, and writes the state when the share has been freed. */
static void test_owner_freed_while_its_state_is_to_be_written(void **state)
{
	const evrec_recorder_options source = { .component = EVREC_STR("c") };
	const char *path = tmpdir_path(*state, "state");
	evrec_kubernetes_options server;
	evrec_broadcaster_options options;
	struct side side = { .b = NULL };
	struct world w;
	evrec_sink *sink;
	off_t before;

	make_world(&w);
	options = options_of(&w, 0, &side);
	evrec_kubernetes_options_init(&server);
	server.server = EVREC_STR("http://127.0.0.1:1");
	server.common.state_file = str_from(path);
	sink = evrec_sink_kubernetes(&server, NULL);
	side.b = evrec_broadcaster_new(&options, NULL);
	side.watch = evrec_broadcaster_start_recording_to_sink(side.b, sink, NULL, NULL);
	side.r = evrec_recorder_new(side.b, &source, NULL);
	evrec_sink_release(sink);
	assert_int_equal(record(&side, "a"), 0);
	wait_for_size(path, 0);
	before = size_of(path);
	assert_int_equal(record(&side, "b"), 0);
	close_side(&side);
	wait_for_size(path, before);
}

static const char *memory_path;

/* Whatever fails, each recorded event ends somewhere. */
static void scenario(void)
{
	struct world w;
	bool ok = true;
	uint64_t recorded = 0;

	make_world(&w);
	alloc_failure_arm();
	for (size_t i = 0; i < 2 && ok; i++) {
		const evrec_broadcaster_options options = options_of(&w, i, &w.sides[i]);

		ok = open_side(&w.sides[i], &options, memory_path, 25);
		alloc_failure_check(ok);
		if (ok) {
			evrec_broadcaster_poll(w.sides[i].b);
		}
	}
	if (ok) {
		poll_both(&w, 3);
		recorded = record(&w.sides[1], "a") == 0;
		recorded += record(&w.sides[1], "a") == 0;
		poll_both(&w, 4);
		alloc_failure_ignore();
	}
	alloc_failure_disarm();
	if (ok) {
		evrec_sink_stats s;

		/* A worker whose connection could not be made tries again after some real time; what it has may be dropped. */
		(void)evrec_broadcaster_shutdown(w.sides[1].b, 0, NULL);
		s = stats(&w.sides[1]);
		assert_int_equal(s.pending, 0);
		assert_true(s.received >= recorded);
		/* Else what it has not written is written in the background. */
		(void)evrec_broadcaster_shutdown(w.sides[0].b, 0, NULL);
	}
	alloc_failure_ignore();
	close_both(&w);
}

static void test_no_memory(void **state)
{
	memory_path = tmpdir_path(*state, "events");
	alloc_failure_run(scenario, 40);
}

/* The next owner goes on, if only with counts of its own. */
static void hand_over(void)
{
	struct world w;

	open_both(&w, memory_path, 25);
	assert_int_equal(record(&w.sides[0], "a"), 0);
	poll_both(&w, 2);
	alloc_failure_arm();
	(void)evrec_broadcaster_shutdown(w.sides[0].b, SOON, NULL);
	for (unsigned i = 0; i < 4; i++) {
		evrec_broadcaster_poll(w.sides[1].b);
	}
	alloc_failure_disarm();
	alloc_failure_ignore();
	assert_int_equal(record(&w.sides[1], "a"), 0);
	assert_int_equal(evrec_broadcaster_flush(w.sides[1].b, SOON, NULL), 0);
	assert_int_equal(stats(&w.sides[1]).created + stats(&w.sides[1]).patched, 1);
	close_both(&w);
}

static void test_no_memory_to_hand_over(void **state)
{
	memory_path = tmpdir_path(*state, "events");
	alloc_failure_run(hand_over, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_drops_are_told_where_the_event_was_recorded),
		TMPDIR_TEST(test_owner_that_ends_leaves_what_it_cannot_write),
		TMPDIR_TEST(test_process_with_other_options_is_refused),
		TMPDIR_TEST(test_refused_process_that_is_shut_down_writes),
		TMPDIR_TEST(test_limits_of_a_sink_bound_a_worker),
		TMPDIR_TEST(test_share_is_the_name_of_a_broadcaster_without_one),
		TMPDIR_TEST(test_worker_shut_down_alone_drops_and_tells),
		TMPDIR_TEST(test_child_of_an_owner_is_a_worker),
		TMPDIR_TEST(test_recording_calls_do_not_wait_for_those_of_workers),
		TMPDIR_TEST(test_series_goes_on_through_two_workers),
		TMPDIR_TEST(test_no_memory),
		TMPDIR_TEST(test_worker_that_ends_tells_what_is_not_acknowledged),
		TMPDIR_TEST(test_worker_that_exits_hands_over_first),
		TMPDIR_TEST(test_refused_process_that_ends_writes),
		TMPDIR_TEST(test_lone_process_that_ends_writes),
		TMPDIR_TEST(test_no_memory_to_hand_over),
		TMPDIR_TEST(test_the_next_owner_counts_on),
		TMPDIR_TEST(test_the_next_owner_has_no_new_tokens),
		TMPDIR_TEST(test_children_of_an_owner_with_a_thread_are_workers),
		/* The last one, as a thread goes on after it, which allocates. */
		TMPDIR_TEST(test_owner_freed_while_its_state_is_to_be_written),
	};

	return cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}
