/*
 * Random lives of a process that writes the series of others, and its own, with a state file. Each ends in order, or by
 * SIGKILL: when it writes to a file, or when the server has just carried out a write. The others keep what was not
 * acknowledged, and the next life gets it again, as from a share's workers. An event has one name for ever; at the end its
 * count is that of all occurrences, but for those that were acknowledged too late, which may be counted twice.
 *
 * The lives are forked children. `world` must outlive them: it is in shared memory.
 */
#define _GNU_SOURCE

#include "correlations.h"
#include "tmpdir.h"

#include "recorder/pipeline.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORLDS 60
#define LIVES 8
#define STEPS 60
#define OBJECTS 4 /* the last one is the process's own, the others are of two workers each */
#define WORKERS 2
#define OWN (OBJECTS - 1)

/* The occurrences of an event that a worker keeps. */
struct node {
	char name[64];
	uint32_t kept;
	bool sent; /* to an owner, under the name */
};

struct world {
	uint64_t random;
	int64_t now;
	/* The server's event of an object. */
	char names[OBJECTS][64];
	uint32_t counts[OBJECTS];
	uint32_t recorded[OBJECTS];
	/* Of the process's own occurrences in this life and in all lives: those that a file has. */
	uint32_t safe, safe_before;
	uint32_t twice[OBJECTS];
	uint32_t settled[OBJECTS][WORKERS]; /* and not acknowledged yet, in this life */
	struct node nodes[OBJECTS][WORKERS];
	unsigned kills, again;
};

static struct world *w;

static unsigned below(unsigned n)
{
	return (unsigned)(unit_random(&w->random) % n);
}

/* ---- the moment of death ---- */

static unsigned calls_left; /* the last one kills; 0: no bound */

static bool is_last_call(void)
{
	return calls_left != 0 && --calls_left == 0;
}

static void die(void)
{
	(void)kill(getpid(), SIGKILL);
}

ssize_t write(int fd, const void *data, size_t len)
{
	const bool last = is_last_call();
	ssize_t n = syscall(SYS_write, fd, data, last ? below((unsigned)len + 1) : len);

	if (last) {
		die();
	}
	return n;
}

/* ---- the server ---- */

static bool is_down;

static void copy_name(char to[64], evrec_str name)
{
	(void)snprintf(to, 64, "%.*s", (int)name.len, name.data);
}

static unsigned object_of(const evrec_fields *event)
{
	return (unsigned)(event->regarding.name.data[0] - 'a');
}

static uint32_t count_of(const evrec_fields *event)
{
	return event->series_count > 1 ? (uint32_t)event->series_count : 1;
}

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	const evrec_fields *fields = evrec_event_fields(event);
	const unsigned i = object_of(fields);
	char name[64];

	(void)ctx;
	copy_name(name, fields->name);
	if (is_down) {
		answer->status = 503;
		return;
	}
	if (w->names[i][0] == '\0') {
		memcpy(w->names[i], name, sizeof(name));
		w->counts[i] = count_of(fields);
		answer->status = 201;
	} else {
		/* No event gets a second name. */
		assert_string_equal(name, w->names[i]);
		answer->status = 409;
		w->again++;
	}
	if (is_last_call()) {
		die();
	}
}

static void patch(void *ctx, const evrec_event *event, evrec_str patch, evrec_answer *answer)
{
	const evrec_fields *fields = evrec_event_fields(event);
	const unsigned i = object_of(fields);
	char name[64];

	(void)ctx;
	assert_true(patch.len != 0);
	copy_name(name, fields->name);
	if (is_down) {
		answer->status = 503;
	} else if (w->names[i][0] == '\0') {
		answer->status = 404;
	} else {
		assert_string_equal(name, w->names[i]);
		w->counts[i] = count_of(fields);
		answer->status = 200;
	}
	if (is_last_call()) {
		die();
	}
}

/* ---- a process ---- */

struct owner {
	evrec_clock *clock;
	struct pipeline *pipeline;
	struct pipeline_listener listener;
	struct keys keys;
	/* Once the file has so many changes, the marked occurrences are acknowledged. */
	uint64_t changes;
	uint32_t marked[OBJECTS][WORKERS];
	uint64_t own_changes;
	uint32_t own, own_recorded; /* of this life; the first is what the file has once it has own_changes */
};

static void on_dropped(void *ctx, const struct pipeline_drop *drop)
{
	(void)ctx;
	assert_int_equal(drop->cause, EVREC_CAUSE_CLOSED);
}

static void on_series(void *ctx, const struct pipeline *pipeline, const evrec_fields *event)
{
	(void)ctx;
	(void)pipeline;
	assert_int_not_equal(event->series_state.len, 0);
}

static void on_error(void *ctx, const char *message, const char *name, const char *sink)
{
	(void)ctx;
	(void)sink;
	if (strcmp(name, "state") == 0) {
		unit_check_contains(message, "cut off");
	}
}

static void on_settled(void *ctx, const struct pipeline *pipeline, const struct pipeline_settled *settled)
{
	(void)ctx;
	(void)pipeline;
	if (settled->as != SETTLED_DROPPED) {
		w->settled[settled->receipt.node][settled->receipt.source] += settled->n;
	}
}

static void begin(struct owner *p, const char *path)
{
	static const evrec_sink_ops ops = { .create = create, .patch = patch };
	evrec_sink_options options;
	evrec_sink *sink;

	*p = (struct owner){ .listener = { on_dropped, NULL, on_series, on_error, on_settled, p, true, false },
		             .clock = evrec_clock_fake(w->now) };
	evrec_sink_options_init(&options);
	options.api = EVREC_SINK_EVENTS_V1;
	options.state_file = str_from(path);
	options.series.finish_time = 7200 * EVREC_SECOND;
	options.series.refresh_interval = 20 * EVREC_SECOND;
	sink = evrec_sink_new(&ops, p, &options, NULL);
	p->pipeline = pipeline_new(sink,
	                           &(struct pipeline_options){
					   .clock = p->clock,
					   .listener = &p->listener,
					   .max_message_bytes = 1024,
					   .drive = EVREC_DRIVE_AUTO,
				   },
	                           NULL);
	evrec_sink_release(sink);
	assert_non_null(p->pipeline);
	assert_true(pipeline_open_state(p->pipeline, false));
	pipeline_write_state_ahead(p->pipeline);
}

static void record(struct owner *p, unsigned object, unsigned worker, bool named)
{
	const char name[] = { (char)('a' + object), '\0' };
	struct node *node = &w->nodes[object][worker];
	const struct receipt_id receipt = { worker, object };
	evrec_fields event = pod_event(name, "R", "m", w->now);

	if (named) {
		event.name = str_from(node->name);
	}
	assert_true(keys_make(&p->keys, &event));
	assert_true(pipeline_record_for(p->pipeline, &event, &p->keys, w->now, object == OWN ? NULL : &receipt, NULL,
	                                named && node->sent));
	node->sent = node->sent || named;
}

/* A worker gives the name for an event of which the owner has nothing by it. */
static void record_for_worker(struct owner *p, unsigned object, unsigned worker, uint32_t n)
{
	struct node *node = &w->nodes[object][worker];

	if (node->name[0] == '\0') {
		(void)snprintf(node->name, sizeof(node->name), "%c.by-worker-%u", 'a' + (int)object, worker);
	}
	for (uint32_t i = 0; i < n; i++) {
		record(p, object, worker, i == 0);
	}
}

/* An owner that has just begun gets again what is kept. */
static void resend(struct owner *p)
{
	for (unsigned i = 0; i < OWN; i++) {
		const unsigned first = below(WORKERS);

		for (unsigned j = 0; j < WORKERS; j++) {
			const unsigned worker = (first + j) % WORKERS;

			/* Settled, but the acknowledgement did not come. */
			w->twice[i] += w->settled[i][worker];
			w->settled[i][worker] = 0;
			record_for_worker(p, i, worker, w->nodes[i][worker].kept);
		}
	}
}

static void record_any(struct owner *p)
{
	const unsigned i = below(OBJECTS), worker = below(WORKERS);

	w->recorded[i]++;
	if (i == OWN) {
		p->own_recorded++;
		record(p, i, 0, false);
		return;
	}
	w->nodes[i][worker].kept++;
	record(p, i, worker, w->nodes[i][worker].kept == 1 && w->nodes[i][worker].name[0] != '\0');
}

static void acknowledge(struct owner *p)
{
	if (pipeline_state_has(p->pipeline, p->own_changes)) {
		w->safe = p->own;
		p->own = p->own_recorded;
		p->own_changes = pipeline_state_changes(p->pipeline);
	}
	if (!pipeline_state_has(p->pipeline, p->changes)) {
		return;
	}
	for (unsigned i = 0; i < OWN; i++) {
		for (unsigned j = 0; j < WORKERS; j++) {
			w->nodes[i][j].kept -= p->marked[i][j];
			w->settled[i][j] -= p->marked[i][j];
			p->marked[i][j] = w->settled[i][j];
		}
	}
	p->changes = pipeline_state_changes(p->pipeline);
}

static void poll(struct owner *p, int64_t ns)
{
	w->now += ns;
	evrec_clock_set(p->clock, w->now);
	pipeline_poll(p->pipeline, INT64_MAX);
	acknowledge(p);
}

static void end(struct owner *p)
{
	pipeline_end(p->pipeline);
	pipeline_join(p->pipeline, unit_mono() + (is_down ? EVREC_SECOND / 50 : SOON));
	/* All that was settled by now is in the file. */
	for (unsigned n = 0; n < 2; n++) {
		p->changes = p->own_changes = 0;
		acknowledge(p);
	}
	pipeline_free(p->pipeline);
	keys_free(&p->keys);
	evrec_clock_release(p->clock);
}

static void live(const char *path, bool last)
{
	struct owner p;

	w->safe_before += w->safe;
	w->safe = 0;
	is_down = !last && below(4) == 0;
	begin(&p, path);
	calls_left = last || below(4) == 0 ? 0 : 1 + below(40);
	resend(&p);
	poll(&p, 0);
	for (unsigned steps = last ? 0 : below(STEPS); steps > 0; steps--) {
		record_any(&p);
		if (below(3) == 0) {
			poll(&p, below(3) * EVREC_SECOND);
		}
		if (below(6) == 0) {
			pipeline_write_state(p.pipeline);
		}
		if (below(20) == 0) {
			pipeline_release(p.pipeline);
		}
	}
	if (!last && below(2) == 0) {
		die();
	}
	end(&p);
	_exit(0);
}

static void check_world(void)
{
	for (unsigned i = 0; i < OWN; i++) {
		for (unsigned j = 0; j < WORKERS; j++) {
			assert_int_equal(w->nodes[i][j].kept, 0);
		}
		if (w->recorded[i] != 0) {
			assert_in_range(w->counts[i], w->recorded[i], w->recorded[i] + w->twice[i]);
		}
	}
	assert_in_range(w->counts[OWN], w->safe_before + w->safe, w->recorded[OWN]);
}

static void run_world(const char *path)
{
	*w = (struct world){ .now = T0, .random = w->random, .kills = w->kills, .again = w->again };
	for (unsigned i = 0; i < LIVES; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			live(path, i == LIVES - 1);
		}
		status = unit_wait(child);
		assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
		w->kills += WIFSIGNALED(status);
		/* Not longer than finish_time: no series ends. */
		w->now += below(60) * EVREC_SECOND;
	}
	check_world();
	(void)unlink(path);
}

static void test_killed_at_any_moment(void **state)
{
	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(w, MAP_FAILED);
	w->random = unit_seed();
	for (unsigned i = 0; i < WORLDS; i++) {
		run_world(tmpdir_path(*state, "state"));
	}
	printf("%u kills; %u names were created before\n", w->kills, w->again);
	assert_true(w->kills > WORLDS && w->again > 0);
	(void)munmap(w, sizeof(*w));
}

int main(void)
{
	const struct CMUnitTest tests[] = { TMPDIR_TEST(test_killed_at_any_moment) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
