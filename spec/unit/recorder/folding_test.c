/* While the server is away, memory grows with events, not with occurrences, and no count is lost. */
#include "counting_allocator.h"
#include "stats_invariants.h"

#include "correlate/observed.h"
#include "sink/write.h"

#define EVENTS 100
#define ROUNDS 10000

struct server {
	bool away;
	unsigned tries, creates, patches;
	int64_t first, last;
};

static void create(void *ctx, const evrec_event *event, evrec_answer *answer)
{
	const evrec_fields *fields = evrec_event_fields(event);
	struct server *server = ctx;

	server->tries++;
	if (server->away) {
		return;
	}
	server->creates++;
	assert_int_equal(fields->count, ROUNDS);
	assert_int_equal(fields->first, server->first);
	assert_int_equal(fields->last, server->last);
	answer->status = 201;
}

static void patch(void *ctx, const evrec_event *event, evrec_str body, evrec_answer *answer)
{
	(void)event;
	(void)body;
	((struct server *)ctx)->patches++;
	answer->status = 200;
}

static void record_all(evrec_recorder *recorder)
{
	char name[16];
	evrec_reference pod = { .kind = EVREC_STR("Pod"), .ns = EVREC_STR("shop") };
	evrec_emit emit = { .regarding = &pod,
		            .type = EVREC_STR("Warning"),
		            .reason = EVREC_STR("BackOff"),
		            .note = EVREC_STR("Back-off restarting failed container"),
		            .timestamp = EVREC_UNSET };

	for (unsigned i = 0; i < EVENTS; i++) {
		snprintf(name, sizeof(name), "web-%u", i);
		pod.name = str_from(name);
		assert_int_equal(evrec_recorder_emit(recorder, &emit, NULL), 0);
	}
}

static void test_outage_of_a_million_occurrences_takes_constant_memory(void **state)
{
	static const evrec_sink_ops ops = { .create = create, .patch = patch };
	struct counting_allocator allocator = { 0 }, before;
	struct server server = { .away = true, .first = T0 };
	evrec_broadcaster_options options;
	evrec_correlator_options correlator;
	evrec_broadcaster *b;
	evrec_recorder *recorder;
	evrec_sink *sink;
	evrec_sink_stats stats;
	int64_t now = T0;

	(void)state;
	evrec_set_allocator(counting_realloc, &allocator);
	evrec_broadcaster_options_init(&options);
	options.clock = evrec_clock_fake(now);
	evrec_correlator_options_init(&correlator);
	correlator.burst_size = 1000000000;
	b = evrec_broadcaster_new(&options, NULL);
	recorder = evrec_recorder_new(
		b, &(evrec_recorder_options){ .component = EVREC_STR("kubelet"), .host = EVREC_STR("node-1") }, NULL);
	sink = evrec_sink_new(&ops, &server, NULL, NULL);
	evrec_watch_free(evrec_broadcaster_start_recording_to_sink(b, sink, &correlator, NULL));

	/* Twice, so that all tables have their final size; each write is tried in vain. */
	record_all(recorder);
	evrec_broadcaster_poll(b);
	record_all(recorder);
	evrec_broadcaster_poll(b);
	before = allocator;
	for (unsigned round = 3; round <= ROUNDS; round++) {
		evrec_clock_set(options.clock, now += EVREC_SECOND / 10);
		record_all(recorder);
		if (round % 1000 == 0) {
			size_t calls = allocator.calls;

			assert_int_equal(calls, before.calls);
			evrec_broadcaster_poll(b); /* a try allocates its request */
			before.calls = allocator.calls;
			stats = stats_check_equations(b);
			assert_int_equal(stats.pending, (uint64_t)round * EVENTS);
			assert_int_equal(stats.pending_writes, EVENTS);
		}
	}
	/* It may give back what was made ready for more. */
	assert_true(allocator.live <= before.live);
	/* During an outage each poll tries one write, not all. */
	assert_in_range(server.tries, ROUNDS / 1000, EVENTS / 2);

	server.away = false;
	server.last = now;
	evrec_clock_set(options.clock, now + 60 * EVREC_SECOND);
	evrec_broadcaster_poll(b);
	assert_int_equal(server.creates, EVENTS);
	assert_int_equal(server.patches, 0);
	stats = stats_check_equations(b);
	assert_int_equal(stats.received, (uint64_t)EVENTS * ROUNDS);
	assert_int_equal(stats.created, EVENTS);
	assert_int_equal(stats.coalesced, (uint64_t)EVENTS * (ROUNDS - 1));
	assert_int_equal(stats.pending, 0);
	assert_int_equal(stats.pending_bytes, 0);

	evrec_broadcaster_free(b);
	evrec_recorder_free(recorder);
	evrec_sink_release(sink);
	evrec_clock_release(options.clock);
	assert_int_equal(allocator.live, 0);
	evrec_set_allocator(NULL, NULL);
}

static void get_event(const void *source, evrec_fields *event)
{
	*event = *(const evrec_fields *)source;
}

/* pending_bytes is within a tenth of the allocated bytes. */
static void test_pending_bytes_match_allocated_bytes(void **state)
{
	struct counting_allocator allocator = { 0 };
	evrec_sink_options common;
	struct outbox *ob;
	struct outbox_stats stats;
	enum evrec_cause cause;
	evrec_fields fields;
	struct write_draft draft;
	char note[2048];

	(void)state;
	memset(note, 'x', sizeof(note));
	evrec_set_allocator(counting_realloc, &allocator);
	evrec_sink_options_init(&common);
	ob = outbox_new(&write_ops, &common.limits, 1);
	allocator.live = 0;
	for (unsigned i = 1; i <= 4000; i++) {
		const struct occurrence occurrence = {
			.id = i, .verb = VERB_CREATE, .important = false, .now = 0, .draft = &draft
		};

		evrec_fields_init(&fields);
		fields.name = EVREC_STR("web-0.17a0b1c2d3e4f506");
		fields.regarding.name = EVREC_STR("web-0");
		fields.note = (evrec_str){ note, i % 2 == 0 ? 40 : sizeof(note) };
		draft = (struct write_draft){
			.note = fields.note, .note_changes = true, .get_event = get_event, .source = &fields
		};
		assert_true(outbox_submit(ob, &occurrence, &cause));
		/* A longer message for a waiting aggregate. */
		if (i % 4 == 0) {
			draft.note = (evrec_str){ note, sizeof(note) };
			assert_true(outbox_submit(ob, &occurrence, &cause));
		}
	}
	outbox_get_stats(ob, &stats);
	assert_int_equal(stats.writes, 4000);
	print_message("%llu bytes counted, %zu allocated\n", (unsigned long long)stats.bytes, allocator.live);
	assert_true(stats.bytes > allocator.live / 10 * 9 && stats.bytes < allocator.live / 10 * 11);
	outbox_free(ob);
	evrec_set_allocator(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outage_of_a_million_occurrences_takes_constant_memory),
		cmocka_unit_test(test_pending_bytes_match_allocated_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
