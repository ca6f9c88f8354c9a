/*
 * A state file of a process that acknowledges what it has recorded for others: whoever takes over knows all of that, also
 * if the process is killed.
 */
#define _GNU_SOURCE

#include "receipt_fixture.h"
#include "tmpdir.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define WORLDS 40
#define LIVES 10
#define STEPS 60
#define OBJECTS 5

static const struct receipt_id receipt = { 1, 1 };

/* ---- the moment of death ---- */

static unsigned calls_left; /* the last one kills; 0: no bound */

ssize_t write(int fd, const void *data, size_t len)
{
	const bool last = calls_left != 0 && --calls_left == 0;
	ssize_t n = syscall(SYS_write, fd, data, last ? len / 2 : len);

	if (last) {
		(void)kill(getpid(), SIGKILL);
	}
	return n;
}

/* ---- processes ---- */

static unsigned writes; /* that on_written was told of */

static void count_write(void *ctx)
{
	(void)ctx;
	writes++;
}

/* The file is not opened yet. No event lacks a token. */
static void begin(struct receipt_fixture *f, const char *path)
{
	evrec_sink_options options = receipt_sink_options();
	evrec_correlator_options correlator;

	*f = (struct receipt_fixture){ .status = 201, .listener = { .opens_state = true } };
	options.state_file = str_from(path);
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1000000;
	receipt_fixture_open(f, &options, &correlator);
	assert_non_null(f->pipeline);
	writes = 0;
}

static void take_over(struct receipt_fixture *f)
{
	assert_true(pipeline_open_state(f->pipeline, false));
	pipeline_on_state_written(f->pipeline, count_write, NULL);
}

static void record(struct receipt_fixture *f, const char *object)
{
	receipt_record(f, object, "m", receipt);
	receipt_advance(f, 0);
}

/* Lets an owner live until it is killed. It has recorded three occurrences, and the file has them. */
static pid_t fork_owner(const char *path, int ready)
{
	pid_t child = fork();

	if (child == 0) {
		struct receipt_fixture f;

		/* A test that fails leaves none behind. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		begin(&f, path);
		take_over(&f);
		for (int i = 0; i < 3; i++) {
			record(&f, "a");
		}
		pipeline_write_state(f.pipeline);
		receipt_advance(&f, 0);
		if (pipeline_state_has(f.pipeline, pipeline_state_changes(f.pipeline))) {
			(void)write(ready, "r", 1);
		}
		for (;;) {
			(void)pause();
		}
	}
	return child;
}

static void wait_until_ready(int fd)
{
	char byte;

	assert_int_equal(read(fd, &byte, 1), 1);
	(void)close(fd);
}

static pid_t begin_owner(const char *path)
{
	int ready[2];
	pid_t owner;

	assert_int_equal(pipe(ready), 0);
	owner = fork_owner(path, ready[1]);
	(void)close(ready[1]);
	wait_until_ready(ready[0]);
	return owner;
}

static void test_killed_owner_leaves_lock_and_counts(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	const pid_t owner = begin_owner(path);
	struct receipt_fixture f;

	begin(&f, path);
	assert_false(pipeline_open_state(f.pipeline, false));
	receipt_advance(&f, 0);
	assert_string_equal(f.error, "");
	(void)kill(owner, SIGKILL);
	assert_int_equal(WTERMSIG(unit_wait(owner)), SIGKILL);
	take_over(&f);
	record(&f, "a");
	assert_int_equal(f.last_count, 4);
	assert_string_equal(f.error, "");
	receipt_end(&f);
	receipt_fixture_free(&f);
}

static void test_goes_on_without_the_counts(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	const pid_t owner = begin_owner(path);
	struct receipt_fixture f;

	begin(&f, path);
	assert_true(pipeline_open_state(f.pipeline, true));
	record(&f, "a");
	assert_int_equal(f.last_count, 1);
	unit_check_contains(f.error, "is in use");
	/* Nobody waits for a file that another process has. */
	assert_true(pipeline_state_has(f.pipeline, pipeline_state_changes(f.pipeline)));
	pipeline_write_state(f.pipeline);
	receipt_advance(&f, EVREC_SECOND);
	(void)kill(owner, SIGKILL);
	(void)unit_wait(owner);
	receipt_advance(&f, 3 * EVREC_SECOND);
	assert_int_equal(writes, 0); /* nobody has asked: there was no file yet */
	receipt_end(&f);
	receipt_fixture_free(&f);
}

/* A write within a second of the last one waits, unless it is asked for. */
static void test_a_write_at_once(void **state)
{
	struct receipt_fixture f;
	uint64_t changes;

	begin(&f, tmpdir_path(*state, "state"));
	assert_int_equal(pipeline_state_changes(f.pipeline), 0);
	assert_true(pipeline_state_has(f.pipeline, 0));
	take_over(&f);
	record(&f, "a");
	/* Its answer came after the first write. */
	pipeline_write_state(f.pipeline);
	receipt_advance(&f, 0);
	assert_true(pipeline_state_has(f.pipeline, pipeline_state_changes(f.pipeline)));
	writes = 0;
	record(&f, "a");
	changes = pipeline_state_changes(f.pipeline);
	assert_false(pipeline_state_has(f.pipeline, changes));
	pipeline_write_state(f.pipeline);
	receipt_advance(&f, 0);
	assert_true(pipeline_state_has(f.pipeline, changes));
	assert_int_equal(writes, 1);
	/* By itself, after a second. */
	record(&f, "a");
	receipt_advance(&f, EVREC_SECOND - 1);
	assert_false(pipeline_state_has(f.pipeline, pipeline_state_changes(f.pipeline)));
	receipt_advance(&f, 1);
	assert_true(pipeline_state_has(f.pipeline, pipeline_state_changes(f.pipeline)));
	receipt_end(&f);
	receipt_fixture_free(&f);
}

/* Whoever takes over knows each name that was sent. */
static void test_written_before_it_is_sent(void **state)
{
	struct receipt_fixture f;
	char object[16];
	uint64_t changes;

	begin(&f, tmpdir_path(*state, "state"));
	take_over(&f);
	pipeline_write_state_ahead(f.pipeline);
	for (int i = 0; i < 3; i++) {
		receipt_record(&f, "a", "m", receipt);
		changes = pipeline_state_changes(f.pipeline);
		receipt_advance(&f, 0);
		assert_int_equal(f.last_count, i + 1);
		assert_true(pipeline_state_has(f.pipeline, changes));
	}
	/* More than one part. */
	for (int i = 0; i < 300; i++) {
		(void)snprintf(object, sizeof(object), "b%d", i);
		receipt_record(&f, object, "m", receipt);
	}
	changes = pipeline_state_changes(f.pipeline);
	receipt_advance(&f, 0);
	assert_true(pipeline_state_has(f.pipeline, changes));
	receipt_end(&f);
	receipt_fixture_free(&f);
}

static void test_sent_though_the_file_cannot_be_written(void **state)
{
	struct receipt_fixture f;

	begin(&f, tmpdir_path(*state, "state"));
	take_over(&f);
	pipeline_write_state_ahead(f.pipeline);
	assert_int_equal(mkdir(tmpdir_path(*state, "state.new"), 0700), 0);
	record(&f, "a");
	record(&f, "a");
	assert_int_equal(f.last_count, 2);
	assert_int_equal(writes, 1);
	assert_int_equal(rmdir(tmpdir_path(*state, "state.new")), 0);
	receipt_end(&f);
	receipt_fixture_free(&f);
}

/* A step writes a small part at a time: a write that was asked for goes on in the next steps. */
static void test_a_write_of_many_parts(void **state)
{
	struct receipt_fixture f;
	uint64_t changes;
	char object[16];
	unsigned steps = 0;

	begin(&f, tmpdir_path(*state, "state"));
	take_over(&f);
	record(&f, "a");
	receipt_advance(&f, 0);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(object, sizeof(object), "b%d", i);
		receipt_record(&f, object, "m", receipt);
	}
	receipt_advance(&f, 0);
	pipeline_write_state(f.pipeline);
	writes = 0;
	changes = pipeline_state_changes(f.pipeline);
	receipt_advance(&f, 0);
	assert_int_equal(writes, 0);
	/* A change during the write is left to the next write. */
	receipt_record(&f, "a", "m", receipt);
	while (writes == 0) {
		receipt_advance(&f, 0);
		assert_true(++steps < 100);
	}
	assert_true(pipeline_state_has(f.pipeline, changes));
	assert_false(pipeline_state_has(f.pipeline, pipeline_state_changes(f.pipeline)));
	receipt_end(&f);
	receipt_fixture_free(&f);
}

/* Acknowledgements go on if the disk is full. */
static void test_a_file_that_cannot_be_written(void **state)
{
	const char *path = tmpdir_path(*state, "state");
	struct receipt_fixture f;

	begin(&f, path);
	take_over(&f);
	assert_int_equal(mkdir(tmpdir_path(*state, "state.new"), 0700), 0);
	record(&f, "a");
	receipt_advance(&f, 0);
	unit_check_contains(f.error, "counts are not kept");
	assert_true(pipeline_state_has(f.pipeline, pipeline_state_changes(f.pipeline)));
	assert_int_equal(writes, 1);
	for (int i = 0; i < 10; i++) {
		pipeline_write_state(f.pipeline);
		receipt_advance(&f, 0);
	}
	assert_int_equal(writes, 1); /* it is tried again after 3 s */
	assert_int_equal(rmdir(tmpdir_path(*state, "state.new")), 0);
	receipt_advance(&f, 3 * EVREC_SECOND);
	assert_int_equal(writes, 2);
	receipt_end(&f);
	receipt_fixture_free(&f);
}

/* ---- random lives ---- */

struct world {
	uint64_t random;
	int32_t written[OBJECTS]; /* counts that the server has */
	int32_t acked[OBJECTS];   /* those of them that were acknowledged */
	unsigned kills;
};

static struct world *w;

static unsigned below(unsigned n)
{
	return (unsigned)(unit_random(&w->random) % n);
}

/* Occurrences that a life has recorded. `counts` of them are acknowledged once the file has `changes` changes. */
struct acknowledgement {
	uint64_t changes;
	int32_t counts[OBJECTS], recorded[OBJECTS];
};

static void acknowledge(struct receipt_fixture *f, struct acknowledgement *next)
{
	if (pipeline_state_has(f->pipeline, next->changes)) {
		memcpy(w->acked, next->counts, sizeof(w->acked));
		next->changes = pipeline_state_changes(f->pipeline);
		memcpy(next->counts, next->recorded, sizeof(next->counts));
	}
}

static void live(const char *path)
{
	struct acknowledgement next = { 0 };
	struct receipt_fixture f;
	char object[] = "a";

	memcpy(next.counts, w->acked, sizeof(next.counts));
	memcpy(next.recorded, w->acked, sizeof(next.recorded));
	begin(&f, path);
	take_over(&f);
	calls_left = below(3) == 0 ? 0 : 1 + below(30);
	for (unsigned steps = below(STEPS); steps > 0; steps--) {
		const unsigned i = below(OBJECTS);

		object[0] = (char)('a' + i);
		record(&f, object);
		assert_in_range(f.last_count, w->acked[i] + 1, w->written[i] + 1);
		w->written[i] = next.recorded[i] = f.last_count;
		acknowledge(&f, &next);
		if (below(4) == 0) {
			pipeline_write_state(f.pipeline);
		}
		receipt_advance(&f, below(EVREC_SECOND));
		acknowledge(&f, &next);
	}
	if (below(2) == 0) {
		(void)kill(getpid(), SIGKILL);
	}
	receipt_end(&f);
	memcpy(w->acked, next.recorded, sizeof(w->acked));
	receipt_fixture_free(&f);
	_exit(0);
}

static void test_nothing_acknowledged_is_forgotten(void **state)
{
	const char *path = tmpdir_path(*state, "state");

	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(w, MAP_FAILED);
	w->random = unit_seed();
	for (unsigned world = 0; world < WORLDS; world++) {
		(void)unlink(path);
		memset(w->written, 0, sizeof(w->written));
		memset(w->acked, 0, sizeof(w->acked));
		for (unsigned i = 0; i < LIVES; i++) {
			const pid_t child = fork();
			int status;

			if (child == 0) {
				live(path);
			}
			status = unit_wait(child);
			assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
			w->kills += WIFSIGNALED(status);
		}
	}
	printf("%u kills\n", w->kills);
	assert_true(w->kills > WORLDS);
	(void)munmap(w, sizeof(*w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_killed_owner_leaves_lock_and_counts),
		TMPDIR_TEST(test_goes_on_without_the_counts),
		TMPDIR_TEST(test_a_write_at_once),
		TMPDIR_TEST(test_written_before_it_is_sent),
		TMPDIR_TEST(test_sent_though_the_file_cannot_be_written),
		TMPDIR_TEST(test_a_write_of_many_parts),
		TMPDIR_TEST(test_a_file_that_cannot_be_written),
		TMPDIR_TEST(test_nothing_acknowledged_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
