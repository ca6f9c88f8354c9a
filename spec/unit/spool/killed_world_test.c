/*
 * Random lives of processes that share a spool, each with two sinks and a server that comes and goes. A life ends in good
 * order, or by SIGKILL at any moment, be that in the middle of a write. The count that an event had `after` + 0.5 s
 * before its process died is in the server in the end, and nothing twice.
 *
 * The lives are forked children. Their world (killed_world.h) must outlive them: it is in shared memory. The functions by
 * which SQLite and evrec change files are replaced: one of their calls may be the life's last one.
 */
#define _GNU_SOURCE

#include "as_kubernetes.h"
#include "killed_world.h"
#include "spool_file.h"

#include "spool/spooler.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORLDS 40
#define AFTER EVREC_SECOND
#define BOUND (AFTER + EVREC_SECOND / 2)

static struct killed_world *w;
static const char *folder;

static unsigned below(unsigned n)
{
	return killed_world_below(w, n);
}

/* ---- the moment of death ---- */

static unsigned calls_left; /* 0: no bound */

static bool is_last_call(void)
{
	return calls_left != 0 && --calls_left == 0;
}

static void die(void)
{
	(void)kill(getpid(), SIGKILL);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
	const bool last = is_last_call();
	ssize_t n = syscall(SYS_pwrite64, fd, data, last ? len / 2 : len, at);

	if (last) {
		die();
	}
	return n;
}

int ftruncate64(int fd, off64_t len)
{
	if (is_last_call()) {
		die();
	}
	return (int)syscall(SYS_ftruncate, fd, len);
}

int unlink(const char *path)
{
	if (is_last_call()) {
		die();
	}
	return unlinkat(AT_FDCWD, path, 0);
}

int mkdir(const char *path, mode_t mode)
{
	if (is_last_call()) {
		die();
	}
	return mkdirat(AT_FDCWD, path, mode);
}

/* A kill of the process alone does not tell whether the disk has the bytes. */
int fsync(int fd)
{
	(void)fd;
	return 0;
}

int fdatasync(int fd)
{
	(void)fd;
	return 0;
}

/* ---- a life ---- */

struct sink {
	struct outbox *ob;
	struct spooler *sp;
	struct entry *in_flight[IN_FLIGHT];
	int64_t due;
	unsigned first; /* of its events */
	bool quick, is_noted;
};

static void wake(void *ctx)
{
	((struct sink *)ctx)->due = w->now;
}

static void begin_sink(struct sink *sink, unsigned first)
{
	*sink = (struct sink){ .ob = fake_write_outbox(1000), .quick = below(2) == 0, .due = w->now, .first = first };
	sink->sp = spooler_new(str_from(folder), AFTER, &fake_write_codec);
	if (w->journal) {
		spooler_use_journal(sink->sp, 1 << 20);
	}
	outbox_on_work(sink->ob, wake, sink);
	outbox_expect(sink->ob, true);
	outbox_write_rows_after(sink->ob, AFTER);
}

/* The outbox has a journal: what was recorded before is noted too. */
static void note_all(struct sink *sink)
{
	sink->is_noted = sink->is_noted || (w->journal && outbox_has_writes(sink->ob));
	for (unsigned i = 0; sink->is_noted && i < IDS; i++) {
		w->events[sink->first + i].noted = w->events[sink->first + i].n;
	}
}

static void step(struct sink *sink, evrec_clock *clock)
{
	unsigned rounds = 0;

	do {
		spooler_step(sink->sp, sink->ob, clock, sink->quick);
		assert_true(++rounds < 1000);
		sink->due = spooler_next_due(sink->sp, sink->ob, w->now);
		note_all(sink);
	} while (spooler_has_work(sink->sp, sink->ob, w->now) || sink->due <= w->now);
}

/* The driver wakes when the spooler told it to, and for what is submitted only if nothing waited before. */
static void advance(struct sink *sinks, evrec_clock *clock, int64_t time)
{
	const int64_t end = w->now + time;

	for (;;) {
		struct sink *next = sinks[0].due <= sinks[1].due ? &sinks[0] : &sinks[1];

		if (next->due > end) {
			break;
		}
		w->now = next->due > w->now ? next->due : w->now;
		evrec_clock_set(clock, w->now);
		step(next, clock);
	}
	w->now = end;
	evrec_clock_set(clock, w->now);
	killed_world_carry_out_late(w, false);
}

static void submit(struct sink *sink, unsigned n)
{
	struct recorded *event = &w->events[n];
	struct fake_write draft = { .count = event->n + 1, .important = n % 2 == 0 };
	const struct occurrence occurrence = { .id = n + 1,
		                               .verb = event->n == 0 ? VERB_CREATE : VERB_PATCH,
		                               .important = draft.important,
		                               .now = w->now,
		                               .due = below(3) == 0 ? w->now + below(8000) * (EVREC_SECOND / 1000) : 0,
		                               .draft = &draft };
	enum evrec_cause cause;

	if (event->n < OCCURRENCES) {
		(void)snprintf(draft.name, sizeof(draft.name), "e%u", n);
		event->at[event->n++] = w->now;
		assert_true(outbox_submit(sink->ob, &occurrence, &cause));
		if (sink->is_noted) {
			event->noted = event->n;
		}
	}
}

static void collect(struct sink *sink)
{
	struct entry *entry;

	while ((entry = outbox_collect(sink->ob, 1)) != NULL) {
		assert_false(entry->dropped);
		outbox_recycle(sink->ob, entry);
	}
}

static void take(struct sink *sink, unsigned s)
{
	for (unsigned i = 0; i < IN_FLIGHT; i++) {
		const struct fake_write *item;

		if (sink->in_flight[i] == NULL && (sink->in_flight[i] = outbox_take(sink->ob, w->now)) != NULL) {
			item = sink->in_flight[i]->item;
			w->in_flight_is_post[s][i] = sink->in_flight[i]->verb == VERB_CREATE;
			w->in_flight[s][i] = (struct late){ (unsigned)(killed_world_event(w, item) - w->events) + 1,
				                            item->count, 0 };
			return;
		}
	}
}

/* The driver's own doing: it looks at the spool afterwards. */
static void answer(struct sink *sink, evrec_clock *clock, unsigned s, unsigned i)
{
	evrec_answer result = { 0 };

	if (sink->in_flight[i] != NULL) {
		killed_world_try(w, sink->in_flight[i], &result);
		w->in_flight[s][i].event = 0;
		answer_entry_as_kubernetes(sink->ob, sink->in_flight[i], &result, w->now);
		sink->in_flight[i] = NULL;
		collect(sink);
		step(sink, clock);
	}
}

static void act(struct sink *sinks, evrec_clock *clock, unsigned life)
{
	const unsigned s = below(SINKS);
	struct sink *sink = &sinks[s];

	switch (below(9)) {
	case 8:
		if (below(6) == 0) {
			outbox_release_all(sink->ob, w->now);
		}
		break;
	case 0:
	case 1:
		submit(sink, (life * SINKS + s) * IDS + below(IDS));
		break;
	case 2:
		advance(sinks, clock, below(400) * (EVREC_SECOND / 1000));
		break;
	case 3:
		step(sink, clock);
		break;
	case 4:
	case 5:
		take(sink, s);
		break;
	case 6:
		answer(sink, clock, s, below(IN_FLIGHT));
		break;
	default:
		w->away = below(3) == 0 ? !w->away : w->away;
	}
}

/* In flight at the end: some are carried out once the process is gone. */
static void end_life(struct sink *sinks, evrec_clock *clock)
{
	for (unsigned s = 0; s < SINKS; s++) {
		spooler_save(sinks[s].sp, sinks[s].ob, clock);
	}
	_exit(0);
}

static void live(unsigned life)
{
	evrec_clock *clock = evrec_clock_fake(w->now);
	struct sink sinks[SINKS];

	begin_sink(&sinks[0], life * SINKS * IDS);
	begin_sink(&sinks[1], (life * SINKS + 1) * IDS);
	calls_left = below(3) == 0 ? 0 : 1 + below(120);
	for (unsigned n = 20 + below(400); n != 0; n--) {
		act(sinks, clock, life);
	}
	if (below(3) == 0) {
		end_life(sinks, clock);
	}
	die();
}

/* The server recovers, and one process writes all that is left. */
static void live_last(void)
{
	evrec_clock *clock = evrec_clock_fake(w->now);
	struct sink sinks[SINKS];
	unsigned rounds = 0;

	w->away = false;
	begin_sink(&sinks[0], 0);
	begin_sink(&sinks[1], 0);
	do {
		assert_true(++rounds < 10000);
		advance(sinks, clock, EVREC_SECOND / 10);
		for (unsigned i = 0; i < IN_FLIGHT * SINKS; i++) {
			take(&sinks[i % SINKS], i % SINKS);
			answer(&sinks[i % SINKS], clock, i % SINKS, i / SINKS);
		}
	} while (!outbox_empty(sinks[0].ob) || !outbox_empty(sinks[1].ob) || rounds < 50);
	end_life(sinks, clock);
}

/* ---- the world ---- */

static void note_safe(unsigned life, bool killed)
{
	for (unsigned n = life * SINKS * IDS; n < (life + 1) * SINKS * IDS; n++) {
		struct recorded *event = &w->events[n];

		while (event->safe < event->n && (!killed || event->at[event->safe] < w->now - BOUND)) {
			event->safe++;
		}
		event->safe = event->noted > event->safe ? event->noted : event->safe;
	}
}

static void check(unsigned n)
{
	const struct recorded *event = &w->events[n];

	if (event->stored < event->safe || event->stored > event->n) {
		fail_msg("event %u of life %u: %u recorded, %u safe, %u stored", n, n / (SINKS * IDS), event->n,
		         event->safe, event->stored);
	}
	w->lost_most = event->n - event->stored > w->lost_most ? event->n - event->stored : w->lost_most;
}

static void run_world(void)
{
	for (unsigned life = 0; life <= LIVES; life++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			if (life == LIVES) {
				live_last();
			}
			live(life);
		}
		status = unit_wait(child);
		assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL && life < LIVES
		                                : WEXITSTATUS(status) == 0);
		w->kills += WIFSIGNALED(status) ? 1 : 0;
		killed_world_settle_requests(w);
		if (life < LIVES) {
			note_safe(life, WIFSIGNALED(status));
		}
		w->now += below(5) * EVREC_SECOND;
	}
	for (unsigned n = 0; n < EVENTS; n++) {
		check(n);
	}
	/* Nothing is left: no file, and nothing beside one. */
	assert_int_equal(rmdir(folder), 0);
}

static void test_kills_lose_no_more_than_told(void **state)
{
	uint64_t random = unit_seed();
	unsigned lost = 0, kills = 0;

	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	folder = tmpdir_path(*state, "spool");
	for (unsigned n = 0; n < WORLDS; n++) {
		*w = (struct killed_world){ .now = T0, .random = unit_random(&random), .journal = n % 2 == 1 };
		run_world();
		lost = w->lost_most > lost ? w->lost_most : lost;
		kills += w->kills;
	}
	printf("%u worlds, %u kills; an event lost %u occurrences at most\n", WORLDS, kills, lost);
	assert_true(kills > WORLDS);
	(void)munmap(w, sizeof(*w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TMPDIR_TEST(test_kills_lose_no_more_than_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
