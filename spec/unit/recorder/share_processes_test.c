/* Processes that share one recorder: what they write together, and what is left of it if the one that writes is killed. */
#include "tmpdir.h"

#include <jansson.h>
#include <poll.h>

#define WORKERS 8
#define KILLS 30
#define EACH 25 /* as many as there are tokens */

/* A process's answer to 'f': the result of its flush, and the counters of its sink. */
struct told {
	int code; /* of the flush */
	evrec_sink_stats stats;
};

/* A process that the test commands by a byte: 'r' to record `n` occurrences, 'f' to flush and tell, 'e' to end. */
struct process {
	pid_t pid;
	int commands, answers;
};

struct world {
	char name[64];
	char path[256], state[256];
	struct process processes[WORKERS];
};

static evrec_broadcaster *open_broadcaster(const struct world *w, evrec_watch **watch, bool threadless)
{
	evrec_broadcaster_options options;
	evrec_sink_options common;
	evrec_error err = { 0 };
	evrec_broadcaster *b;
	evrec_sink *sink;

	evrec_broadcaster_options_init(&options);
	evrec_sink_options_init(&common);
	options.share = str_from(w->name);
	options.drive = threadless ? EVREC_DRIVE_POLL : EVREC_DRIVE_AUTO;
	options.on_error = evrec_log_stderr;
	common.state_file = str_from(w->state);
	b = evrec_broadcaster_new(&options, &err);
	sink = evrec_sink_file(str_from(w->path), &common, &err);
	*watch = b == NULL || sink == NULL ? NULL : evrec_broadcaster_start_recording_to_sink(b, sink, NULL, &err);
	if (*watch == NULL) {
		(void)fprintf(stderr, "%s\n", err.message);
		_exit(2);
	}
	evrec_sink_release(sink);
	return b;
}

static void record(evrec_recorder *r, const char *note)
{
	const evrec_reference service = { .kind = EVREC_STR("Service"),
		                          .name = EVREC_STR("web"),
		                          .ns = EVREC_STR("shop"),
		                          .api_version = EVREC_STR("v1") };
	evrec_error err = { 0 };
	evrec_emit emit;

	evrec_emit_init(&emit);
	emit.regarding = &service;
	emit.type = EVREC_STR("Warning");
	emit.reason = EVREC_STR("Failed");
	emit.note = str_from(note);
	if (evrec_recorder_emit(r, &emit, &err) != 0) {
		_exit(3);
	}
}

static void live(const struct world *w, int commands, int answers, bool threadless)
{
	const evrec_recorder_options source = { .component = EVREC_STR("lb") };
	evrec_watch *watch;
	evrec_broadcaster *b = open_broadcaster(w, &watch, threadless);
	evrec_recorder *r = evrec_recorder_new(b, &source, NULL);
	struct pollfd polled = { .fd = commands, .events = POLLIN };
	struct told told;
	char command;

	for (;;) {
		if (threadless) {
			evrec_broadcaster_poll(b);
			if (poll(&polled, 1, 1) == 0) {
				continue;
			}
		}
		if (read(commands, &command, 1) != 1 || command == 'e') {
			break;
		}
		if (command == 'r') {
			for (int i = 0; i < EACH; i++) {
				record(r, "no server is up");
			}
		} else {
			told.code = evrec_broadcaster_flush(b, SOON, NULL);
			(void)evrec_broadcaster_get_sink_stats(b, 1, &told.stats);
			(void)!write(answers, &told, sizeof(told));
		}
	}
	(void)evrec_broadcaster_shutdown(b, SOON, NULL);
	evrec_watch_free(watch);
	evrec_recorder_free(r);
	evrec_broadcaster_free(b);
	_exit(0);
}

static void start(struct world *w, size_t i, bool threadless)
{
	struct process *p = &w->processes[i];
	int commands[2], answers[2];

	assert_int_equal(pipe(commands), 0);
	assert_int_equal(pipe(answers), 0);
	p->pid = fork();
	if (p->pid == 0) {
		(void)close(commands[1]);
		(void)close(answers[0]);
		for (size_t j = 0; j < i; j++) {
			(void)close(w->processes[j].commands);
		}
		live(w, commands[0], answers[1], threadless);
	}
	(void)close(commands[0]);
	(void)close(answers[1]);
	p->commands = commands[1];
	p->answers = answers[0];
}

static void command(const struct world *w, size_t i, char what)
{
	assert_int_equal(write(w->processes[i].commands, &what, 1), 1);
}

static struct told ask(const struct world *w, size_t i)
{
	struct told told;

	command(w, i, 'f');
	assert_int_equal(read(w->processes[i].answers, &told, sizeof(told)), sizeof(told));
	return told;
}

static void stop(struct world *w, size_t i, int by)
{
	struct process *p = &w->processes[i];

	if (by != 0) {
		(void)kill(p->pid, by);
	} else {
		command(w, i, 'e');
	}
	assert_int_equal(unit_wait(p->pid), by);
	(void)close(p->commands);
	(void)close(p->answers);
	p->pid = 0;
}

static struct world *make(void **state)
{
	static unsigned number;
	struct world *w = calloc(1, sizeof(*w));

	(void)snprintf(w->name, sizeof(w->name), "@evrec-processes-%ld-%u", (long)getpid(), number++);
	(void)snprintf(w->path, sizeof(w->path), "%s", tmpdir_path(*state, "events"));
	(void)snprintf(w->state, sizeof(w->state), "%s", tmpdir_path(*state, "state"));
	return w;
}

/* Sums over the file that the sink wrote, lines of JSON. */
struct written {
	size_t names; /* different names */
	json_int_t count;
};

static struct written read_written(const struct world *w)
{
	FILE *file = fopen(w->path, "r");
	json_t *names = json_object();
	struct written written = { 0, 0 };
	char line[8192];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		json_t *event = json_loads(line, 0, NULL);
		const json_int_t count = json_integer_value(json_object_get(event, "count"));

		assert_non_null(event);
		(void)json_object_set(names,
		                      json_string_value(json_object_get(json_object_get(event, "metadata"), "name")),
		                      json_true());
		written.count = count > written.count ? count : written.count;
		json_decref(event);
	}
	written.names = json_object_size(names);
	json_decref(names);
	(void)fclose(file);
	return written;
}

static uint64_t ended(const evrec_sink_stats *s)
{
	return s->created + s->patched + s->coalesced + s->forwarded;
}

/* Eight workers of a proxy see one Service fail: one event, which takes the tokens of one. */
static void check_one_event(void **state, bool threadless)
{
	struct world *w = make(state);
	uint64_t own = 0, forwarded = 0;
	struct written written;

	for (size_t i = 0; i < WORKERS; i++) {
		start(w, i, threadless);
	}
	for (size_t i = 0; i < WORKERS; i++) {
		command(w, i, 'r');
	}
	for (size_t i = 0; i < WORKERS; i++) {
		const struct told told = ask(w, i);

		assert_int_equal(told.code, 0);
		assert_int_equal(told.stats.pending, 0);
		own += told.stats.created + told.stats.patched + told.stats.coalesced;
		forwarded += told.stats.forwarded;
	}
	written = read_written(w);
	assert_int_equal(written.names, 1);
	assert_int_equal(written.count, 25);
	/* The owner's counters have the events of all; the workers' have their own. */
	assert_int_equal(own, 25);
	assert_true(forwarded <= 25);
	for (size_t i = 0; i < WORKERS; i++) {
		stop(w, i, 0);
	}
	free(w);
}

static void test_eight_processes_write_one_event(void **state)
{
	check_one_event(state, false);
}

static void test_eight_processes_without_threads_write_one_event(void **state)
{
	check_one_event(state, true);
}

/* The process that writes is killed, at any moment: the others go on with its name and count. */
static void check_killed(void **state, bool settled_before)
{
	struct world *w = make(state);
	struct told told;

	start(w, 0, false);
	command(w, 0, 'r');
	told = ask(w, 0);
	assert_int_equal(told.stats.created, 1);
	start(w, 1, false);
	start(w, 2, false);
	if (settled_before) {
		assert_int_equal(ask(w, 1).code, 0);
	}
	command(w, 1, 'r');
	command(w, 2, 'r');
	stop(w, 0, SIGKILL);
	for (size_t i = 1; i <= 2; i++) {
		told = ask(w, i);
		assert_int_equal(told.code, 0);
		assert_int_equal(told.stats.pending, 0);
		assert_true(ended(&told.stats) + told.stats.rate_limited >= EACH);
	}
	assert_int_equal(read_written(w).names, 1);
	stop(w, 1, 0);
	stop(w, 2, 0);
	free(w);
}

static void test_killed_owner_leaves_its_names_to_the_next(void **state)
{
	check_killed(state, true);
	(void)unlink(tmpdir_path(*state, "events"));
	(void)unlink(tmpdir_path(*state, "state"));
	check_killed(state, false);
}

/* The owner is killed again and again, at random moments: no name twice, nothing lost, and what is counted too often is told. */
static void test_owners_killed_at_random_moments(void **state)
{
	uint64_t random = unit_seed(), kept = 0;
	struct world *w = make(state);
	struct told told;

	start(w, 0, false);
	(void)ask(w, 0);
	for (size_t i = 1; i <= KILLS; i++) {
		start(w, i % WORKERS, false);
		for (uint64_t n = unit_random(&random) % 4; n > 0; n--) {
			command(w, i % WORKERS, 'r');
		}
		if (unit_random(&random) % 2 == 0) {
			told = ask(w, i % WORKERS);
			assert_int_equal(told.code, 0);
		}
		stop(w, (i - 1) % WORKERS, SIGKILL);
		command(w, i % WORKERS, 'r');
		told = ask(w, i % WORKERS);
		assert_int_equal(told.code, 0);
		assert_int_equal(told.stats.pending, 0);
		kept += told.stats.received;
		assert_int_equal(told.stats.received % EACH, 0);
	}
	assert_int_equal(read_written(w).names, 1);
	assert_true(kept >= KILLS * EACH);
	/* The tokens of one: a killed owner may have written a second of the others' occurrences that no state file knows. */
	assert_in_range(read_written(w).count, 25, 25 + EACH);
	stop(w, KILLS % WORKERS, 0);
	free(w);
}

static void test_owner_that_ends_leaves_its_names_to_the_next(void **state)
{
	struct world *w = make(state);
	struct told told;

	start(w, 0, false);
	command(w, 0, 'r');
	(void)ask(w, 0);
	start(w, 1, false);
	command(w, 1, 'r');
	told = ask(w, 1);
	assert_int_equal(told.stats.received, EACH);
	assert_int_equal(told.stats.rate_limited, EACH);
	stop(w, 0, 0);
	command(w, 1, 'r');
	told = ask(w, 1);
	assert_int_equal(told.code, 0);
	/* No new tokens. */
	assert_int_equal(told.stats.received, 2 * EACH);
	assert_int_equal(told.stats.rate_limited, 2 * EACH);
	assert_int_equal(read_written(w).names, 1);
	stop(w, 1, 0);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_eight_processes_write_one_event),
		TMPDIR_TEST(test_eight_processes_without_threads_write_one_event),
		TMPDIR_TEST(test_killed_owner_leaves_its_names_to_the_next),
		TMPDIR_TEST(test_owners_killed_at_random_moments),
		TMPDIR_TEST(test_owner_that_ends_leaves_its_names_to_the_next),
	};

	return cmocka_run_group_tests_name("share_processes", tests, NULL, NULL);
}
