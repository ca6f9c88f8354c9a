/* A full ledger drops events by the option `full` of the sinks, and only those of which nothing was sent yet. */
#include "share_pair.h"

#include "event/event.h"
#include "share/ledger.h"

struct fixture {
	struct ledger *l;
	char dropped[64]; /* the objects, in turn; Warnings as capitals */
	uint32_t occurrences;
};

static void begin(struct fixture *f, enum evrec_overflow full, size_t max)
{
	const struct ledger_limits limits = { .max_events = max, .max_bytes = 1 << 20 };

	*f = (struct fixture){ .l = ledger_new(&limits) };
	assert_non_null(f->l);
	ledger_set_sinks(f->l, 1);
	ledger_set_full(f->l, full);
}

static void put_event(struct buf *out, const char *object)
{
	evrec_fields event;

	evrec_fields_init(&event);
	event.ns = EVREC_STR("shop");
	event.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = { object, 1 }, .ns = event.ns };
	event.type = object[0] < 'a' ? EVREC_STR("Warning") : EVREC_STR("Normal");
	event.reason = EVREC_STR("R");
	event.count = 1;
	buf_clear(out);
	frame_event_put(out, &event, NULL, 0);
}

static void note_dropped(struct fixture *f)
{
	struct frame_event event;
	evrec_str bytes;
	uint32_t n;

	while (ledger_next_dropped(f->l, &bytes, &n)) {
		assert_int_equal(frame_event_read(bytes, &event, NULL), 0);
		f->dropped[strlen(f->dropped)] = event.fields.regarding.name.data[0];
		f->occurrences += n;
		frame_event_destroy(&event);
	}
}

/* One occurrence of each object. The new ones that are dropped are told too. */
static void add(struct fixture *f, const char *objects)
{
	struct buf bytes = { 0 };
	enum evrec_cause cause;

	for (; *objects != '\0'; objects++) {
		put_event(&bytes, objects);
		if (!ledger_add(f->l, buf_str(&bytes), T0, &cause)) {
			assert_int_equal(cause, EVREC_CAUSE_QUEUE_FULL);
			f->dropped[strlen(f->dropped)] = *objects;
			f->occurrences++;
		}
		note_dropped(f);
	}
	buf_free(&bytes);
}

static void send(struct fixture *f, unsigned events)
{
	struct ledger_item item;

	while (events-- > 0) {
		assert_true(ledger_next(f->l, &item));
		ledger_sent(f->l);
	}
}

static void end(struct fixture *f, const char *dropped, uint32_t occurrences)
{
	struct ledger_counts counts;

	assert_string_equal(f->dropped, dropped);
	assert_int_equal(f->occurrences, occurrences);
	ledger_count(f->l, 0, &counts);
	assert_int_equal(counts.dropped[EVREC_CAUSE_QUEUE_FULL], occurrences);
	ledger_free(f->l);
}

static void test_newest(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, EVREC_DROP_NEWEST, 3);
	add(&f, "abcde");
	/* Warnings take the place of the newest that is none, with all its occurrences. */
	add(&f, "ccXYZ");
	end(&f, "decba", 7);
	begin(&f, EVREC_DROP_NEWEST, 2);
	add(&f, "XYZa");
	end(&f, "Za", 2);
}

static void test_oldest(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, EVREC_DROP_OLDEST, 3);
	add(&f, "abcadX");
	/* The one that has not happened for longest. */
	end(&f, "bc", 2);
	begin(&f, EVREC_DROP_OLDEST, 2);
	add(&f, "XaYb");
	/* Warnings last, but a Warning for a Warning. */
	add(&f, "Z");
	end(&f, "abX", 3);
}

/* The owner may have written it. */
static void test_what_was_sent_stays(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, EVREC_DROP_OLDEST, 3);
	add(&f, "abc");
	send(&f, 2);
	add(&f, "de");
	add(&f, "a");
	send(&f, 1);
	add(&f, "f");
	end(&f, "cdf", 3);
	begin(&f, EVREC_DROP_OLDEST, 2);
	add(&f, "ab");
	send(&f, 1);
	ledger_disconnect(f.l);
	add(&f, "cd");
	end(&f, "bc", 2);
}

/* The owner has the event from an earlier time, and is told to forget it. */
static void test_event_that_the_owner_knows(void **state)
{
	struct ledger_item item;
	struct fixture f;
	evrec_str bytes;

	(void)state;
	begin(&f, EVREC_DROP_OLDEST, 1);
	add(&f, "a");
	send(&f, 1);
	assert_int_equal(ledger_ack(f.l, &(struct frame_ack){ .n = 1, .end = FRAME_FORWARDED }, &bytes), 1);
	add(&f, "ab");
	assert_true(ledger_next(f.l, &item));
	assert_int_equal(item.times.n, 0);
	ledger_sent(f.l);
	assert_true(ledger_next(f.l, &item));
	assert_int_equal(item.times.n, 1);
	assert_false(item.known);
	end(&f, "a", 1);
}

/* A worker that becomes the owner takes events out of the ledger, one by one, while another thread records. */
static void test_taken_event_outlives_drops(void **state)
{
	struct ledger_item item;
	struct frame_event event;
	struct fixture f;

	(void)state;
	begin(&f, EVREC_DROP_OLDEST, 2);
	add(&f, "ab");
	assert_true(ledger_take(f.l, &item, &event));
	add(&f, "cdef");
	assert_str(event.fields.regarding.name, "a");
	frame_event_destroy(&event);
	end(&f, "bcd", 3);
}

/* Nor is its rest dropped meanwhile. */
static void test_event_that_was_taken_in_part_stays(void **state)
{
	struct ledger_item item;
	struct frame_event event;
	struct fixture f;

	(void)state;
	begin(&f, EVREC_DROP_OLDEST, 1);
	for (unsigned i = 0; i <= LEDGER_SEND_MAX; i++) {
		add(&f, "a");
	}
	assert_true(ledger_take(f.l, &item, &event));
	assert_int_equal(item.times.n, LEDGER_SEND_MAX);
	add(&f, "b");
	assert_str(event.fields.regarding.name, "a");
	frame_event_destroy(&event);
	assert_true(ledger_take(f.l, &item, &event));
	assert_int_equal(item.times.n, 1);
	frame_event_destroy(&event);
	end(&f, "b", 1);
}

/* A worker is told of what was dropped for a new event. */
static void test_share_gives_what_was_dropped(void **state)
{
	struct share_options options;
	struct share_side *side;
	struct share_pair p;
	evrec_event *event;
	uint32_t n;

	(void)state;
	share_pair_init(&p);
	options = share_pair_options(&p);
	options.limits.max_events = 1;
	side = share_pair_start(&p, 0, &options);
	share_set_full(side->share, EVREC_DROP_OLDEST);
	assert_int_equal(share_side_add_type(side, "Normal", "a"), SHARE_KEPT);
	assert_int_equal(share_side_add_type(side, "Normal", "a"), SHARE_KEPT);
	assert_null(share_next_dropped(side->share, &n));
	assert_int_equal(n, 0);
	assert_int_equal(share_side_add_type(side, "Normal", "b"), SHARE_KEPT);
	event = share_next_dropped(side->share, &n);
	assert_int_equal(n, 2);
	assert_str(evrec_event_fields(event)->regarding.name, "a");
	evrec_event_release(event);
	assert_int_equal(share_side_counts(side).dropped[EVREC_CAUSE_QUEUE_FULL], 2);
	assert_int_equal(share_side_counts(side).pending, 1);
	share_pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest),
		cmocka_unit_test(test_oldest),
		cmocka_unit_test(test_what_was_sent_stays),
		cmocka_unit_test(test_event_that_the_owner_knows),
		cmocka_unit_test(test_taken_event_outlives_drops),
		cmocka_unit_test(test_event_that_was_taken_in_part_stays),
		cmocka_unit_test(test_share_gives_what_was_dropped),
	};

	return cmocka_run_group_tests_name("ledger_full", tests, NULL, NULL);
}
