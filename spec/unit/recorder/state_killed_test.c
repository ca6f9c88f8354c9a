/*
 * Random lives of a process with a state file, under a fake clock. Each ends in good order, or by SIGKILL at any moment,
 * be that in the middle of a write. An event stays one event, whose count is no smaller than it was when the process last
 * had the time to write, 1 s before it died at most, and never too big.
 *
 * The lives are forked children. `world` must outlive them: it is in shared memory. The functions by which evrec changes
 * files are replaced: one of their calls may be the life's last one.
 */
#define _GNU_SOURCE

#include "state_life.h"
#include "tmpdir.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define WORLDS 30
#define LIVES 15
#define STEPS 60
#define OBJECTS 5
#define COUNTS (LIVES * STEPS)

struct world {
	int64_t now;
	uint64_t random;
	unsigned count[OBJECTS];     /* what the event was written with last */
	int64_t at[OBJECTS][COUNTS]; /* when it had this count */
	unsigned safe[OBJECTS];      /* what the file must have */
	char names[OBJECTS][64];     /* of the events */
	unsigned kills, cuts, lost;
};

static struct world *w;

static unsigned below(unsigned n)
{
	return (unsigned)(unit_random(&w->random) % n);
}

/* ---- the moment of death ---- */

static unsigned calls_left; /* 0: no bound */

static bool is_last_call(void)
{
	return calls_left != 0 && --calls_left == 0;
}

static void die(void)
{
	w->kills++;
	(void)kill(getpid(), SIGKILL);
}

ssize_t write(int fd, const void *data, size_t len)
{
	const bool last = is_last_call();
	const size_t part = last ? below((unsigned)len + 1) : len;
	ssize_t n = syscall(SYS_write, fd, data, part);

	if (last) {
		w->cuts += part != 0 && part != len;
		die();
	}
	return n;
}

int rename(const char *from, const char *to)
{
	if (is_last_call()) {
		die();
	}
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlink(const char *path)
{
	if (is_last_call()) {
		die();
	}
	return unlinkat(AT_FDCWD, path, 0);
}

int fdatasync(int fd)
{
	(void)fd;
	if (is_last_call()) {
		die();
	}
	return 0;
}

/* ---- a life ---- */

static unsigned number_of(evrec_str object)
{
	assert_int_equal(object.len, 1);
	return (unsigned)(object.data[0] - 'a');
}

static void written(const evrec_fields *event)
{
	const unsigned i = number_of(event->regarding.name), count = (unsigned)event->count;
	char name[64];

	assert_in_range(count, w->safe[i] + 1, w->count[i] + 1);
	(void)snprintf(name, sizeof(name), "%.*s", (int)event->name.len, event->name.data);
	if (count == 1) {
		/* Only if no file has it can it be a new event. */
		assert_int_equal(w->safe[i], 0);
		memcpy(w->names[i], name, sizeof(name));
	}
	assert_string_equal(name, w->names[i]);
	w->lost += w->count[i] + 1 - count;
	w->count[i] = count;
	w->at[i][count] = w->now;
	for (unsigned known = w->safe[i] + 1; known < count; known++) {
		w->at[i][known] = w->at[i][known] < w->now ? w->at[i][known] : w->now;
	}
}

/* Counts that the last life had no time to write may be lost, until this life has written a later one. */
static void forget_unsafe(void)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		for (unsigned n = w->safe[i] + 1; n <= w->count[i]; n++) {
			w->at[i][n] = INT64_MAX;
		}
	}
}

/* The events that this life recorded before `time` are written. */
static void is_written(int64_t time)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		while (w->safe[i] < w->count[i] && w->at[i][w->safe[i] + 1] <= time) {
			w->safe[i]++;
		}
	}
}

static void poll(struct state_life *life)
{
	evrec_broadcaster_poll(life->b);
	is_written(w->now - EVREC_SECOND);
}

static void live(const char *path)
{
	const unsigned steps = below(STEPS);
	struct state_life life;
	char object[] = "a";

	forget_unsafe();
	state_life_begin(&life, path, w->now);
	life.written = written;
	calls_left = below(3) == 0 ? 0 : 1 + below(40);
	for (unsigned i = 0; i < steps; i++) {
		object[0] = (char)('a' + below(OBJECTS));
		state_life_record(&life, object);
		poll(&life);
		w->now += below(EVREC_SECOND);
		evrec_clock_set(life.clock, w->now);
		poll(&life);
	}
	if (below(2) == 0) {
		die();
	}
	state_life_end(&life);
	is_written(w->now);
	_exit(0);
}

static void run_world(const char *path)
{
	const uint64_t random = w->random;

	*w = (struct world){ .now = T0, .random = random, .kills = w->kills, .cuts = w->cuts, .lost = w->lost };
	for (unsigned i = 0; i < LIVES; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			live(path);
		}
		status = unit_wait(child);
		assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
		w->now += below(3600) * EVREC_SECOND;
	}
	assert_int_equal(unlinkat(AT_FDCWD, path, 0), 0);
}

static void test_killed_at_any_moment(void **state)
{
	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(w, MAP_FAILED);
	w->random = unit_seed();
	for (unsigned i = 0; i < WORLDS; i++) {
		run_world(tmpdir_path(*state, "state"));
	}
	printf("%u kills, %u of them in a write; %u occurrences lost\n", w->kills, w->cuts, w->lost);
	assert_true(w->kills > WORLDS && w->cuts > WORLDS / 2 && w->lost > 0);
	(void)munmap(w, sizeof(*w));
}

int main(void)
{
	const struct CMUnitTest tests[] = { TMPDIR_TEST(test_killed_at_any_moment) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
