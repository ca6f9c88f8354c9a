/* A packed event: it has all fields of its event, in as many bytes as planned, and survives being copied or stored. */
#include "event_fields.h"

#include "event/packed.h"

static evrec_fields minimal(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	return f;
}

/*
 * Packs an event into exactly the bytes that were planned: a sanitizer sees one more, and a byte that is not written
 * keeps one of two values. Freed with free.
 */
static evrec_packed *pack(const evrec_fields *fields, const struct keys *keys)
{
	const struct packing packing = packed_plan(fields, keys);
	void *memory = malloc(packing.size), *first = malloc(packing.size);
	evrec_packed *packed;

	memset(memory, 0, packing.size);
	memcpy(first, packed_make(memory, &packing), packing.size);
	memset(memory, 0xFF, packing.size);
	packed = packed_make(memory, &packing);
	assert_memory_equal(memory, first, packing.size);
	free(first);
	assert_ptr_equal(packed, memory);
	assert_int_equal(packed_size(packed), packing.size);
	return packed;
}

/* All bytes of the fields that unpacking does not set would be these. */
#define UNSET_BYTE 0x5A

static void check_has(const evrec_packed *packed, const evrec_fields *fields)
{
	evrec_fields got;

	memset(&got, UNSET_BYTE, sizeof(got));
	evrec_packed_read(packed, &got);
	event_fields_check_same(&got, fields);
	event_fields_check_within(&got, packed, packed_size(packed));
	assert_int_equal((uintptr_t)got.labels.pairs % _Alignof(evrec_pair), 0);
	assert_int_equal((uintptr_t)got.annotations.pairs % _Alignof(evrec_pair), 0);
	assert_int_equal((uintptr_t)got.owners % _Alignof(evrec_owner), 0);
	assert_true(str_eq(packed_namespace(packed), fields->ns));
	assert_true(str_eq(packed_note(packed), fields->note));
	assert_int_equal(packed_has_version(packed), fields->resource_version.len != 0);
}

/* Frees the packed event once it is copied, and the copy once that is stored as bytes. */
static void check_copies(evrec_packed *packed, const evrec_fields *fields)
{
	const size_t size = packed_size(packed);
	evrec_packed *copy = packed_copy(malloc(size), packed), *again;
	struct buf bytes = { 0 };
	char *exactly;
	void *memory;

	memset(packed, UNSET_BYTE, size);
	free(packed);
	assert_int_equal(packed_size(copy), size);
	check_has(copy, fields);
	packed_put_bytes(&bytes, copy);
	assert_false(bytes.failed);
	memset(copy, UNSET_BYTE, size);
	free(copy);
	assert_int_equal(packed_bytes_size(buf_str(&bytes)), size);
	exactly = malloc(bytes.len);
	memcpy(exactly, bytes.data, bytes.len);
	memory = malloc(size);
	again = packed_from_bytes(memory, (evrec_str){ exactly, bytes.len });
	free(exactly);
	assert_ptr_equal(again, memory);
	check_has(again, fields);
	free(memory);
	buf_free(&bytes);
}

/* Packs without keys, with the event's keys, and with keys that differ by the note alone. */
static void check_packs(const evrec_fields *fields)
{
	evrec_fields other = *fields;
	struct keys keys = { 0 };
	evrec_packed *packed = pack(fields, NULL);

	check_has(packed, fields);
	check_copies(packed, fields);
	assert_true(keys_make(&keys, fields));
	packed = pack(fields, &keys);
	check_has(packed, fields);
	check_copies(packed, fields);
	other.note = EVREC_STR("the note of the keys");
	assert_true(keys_make(&keys, &other));
	packed = pack(fields, &keys);
	check_has(packed, fields);
	check_copies(packed, fields);
	keys_free(&keys);
}

static void test_full_event(void **state)
{
	const evrec_fields f = event_fields_full();

	(void)state;
	check_packs(&f);
}

static void test_empty_event(void **state)
{
	evrec_fields f = minimal();

	(void)state;
	check_packs(&f);
	memset(&f, 0, sizeof(f)); /* times of 1970 */
	check_packs(&f);
}

/* Each string alone is set, then all others are. */
static void test_each_string_is_packed_by_itself(void **state)
{
	(void)state;
	for (size_t i = 0; i < EVENT_STRINGS; i++) {
		evrec_fields f = minimal();
		evrec_str *strings[EVENT_STRINGS];

		event_fields_strings(&f, strings);
		*strings[i] = EVREC_STR("the only one");
		check_packs(&f);
		f = event_fields_full();
		*strings[i] = (evrec_str){ NULL, 0 };
		check_packs(&f);
	}
}

static void test_each_array_is_packed_by_itself(void **state)
{
	const evrec_fields full = event_fields_full();
	evrec_fields f = minimal();

	(void)state;
	f.labels = full.labels;
	check_packs(&f);
	f = minimal();
	f.annotations = full.annotations;
	check_packs(&f);
	f = minimal();
	f.owners = full.owners;
	f.owners_len = full.owners_len;
	check_packs(&f);
}

static void test_limits_of_numbers(void **state)
{
	evrec_fields f = minimal();

	(void)state;
	f.first = INT64_MIN;
	f.last = INT64_MAX;
	f.event_time = -1;
	f.series_last = 0;
	f.count = INT32_MAX;
	f.series_count = INT32_MIN;
	check_packs(&f);
}

/* A namespace that is the object's takes no bytes of its own, nor does a note that is the keys'. */
static void test_common_strings_are_packed_once(void **state)
{
	evrec_fields f = minimal();
	struct keys keys = { 0 };
	size_t alone, size;

	(void)state;
	f.regarding.ns = EVREC_STR("a-namespace");
	f.note = EVREC_STR("a note of some length");
	f.ns = EVREC_STR("b-namespace");
	size = packed_plan(&f, NULL).size;
	f.ns = f.regarding.ns;
	alone = packed_plan(&f, NULL).size;
	assert_true(alone + f.ns.len <= size);
	assert_true(keys_make(&keys, &f));
	assert_int_equal(packed_plan(&f, &keys).size, alone);
	f.note = EVREC_STR("A note of some length");
	assert_true(packed_plan(&f, &keys).size >= alone + f.note.len);
	keys_free(&keys);
}

/* ---- random events ---- */

#define TEXTS 1000
#define ELEMENTS 4

struct random_event {
	evrec_pair labels[ELEMENTS], annotations[ELEMENTS];
	evrec_owner owners[ELEMENTS];
	evrec_fields fields;
};

static char texts[TEXTS];

static uint64_t begin_random(void)
{
	uint64_t random = unit_seed();

	for (size_t i = 0; i < sizeof(texts); i++) {
		texts[i] = (char)unit_random(&random);
	}
	return random;
}

/* Of random bytes. Most strings are short; many are empty. */
static evrec_str random_text(uint64_t *random)
{
	const uint64_t kind = unit_random(random) % 20;
	const size_t len = kind < 7 ? 0 : unit_random(random) % (kind == 7 ? TEXTS : 20);

	return (evrec_str){ texts + unit_random(random) % (TEXTS - len), len };
}

static evrec_map random_map(uint64_t *random, evrec_pair pairs[ELEMENTS])
{
	for (size_t i = 0; i < ELEMENTS; i++) {
		pairs[i] = (evrec_pair){ random_text(random), random_text(random) };
	}
	return (evrec_map){ pairs, unit_random(random) % (ELEMENTS + 1) };
}

static void make_random(uint64_t *random, struct random_event *e)
{
	evrec_fields *f = &e->fields;
	evrec_str *strings[EVENT_STRINGS];

	evrec_fields_init(f);
	event_fields_strings(f, strings);
	for (size_t i = 0; i < EVENT_STRINGS; i++) {
		*strings[i] = random_text(random);
	}
	if (unit_random(random) % 2 == 0) {
		f->ns = f->regarding.ns;
	}
	if (unit_random(random) % 2 == 0) {
		f->related = minimal().related;
	}
	if (unit_random(random) % 2 == 0) {
		f->labels = random_map(random, e->labels);
		f->annotations = random_map(random, e->annotations);
		f->owners_len = unit_random(random) % (ELEMENTS + 1);
		f->owners = e->owners;
	}
	for (size_t i = 0; i < f->owners_len; i++) {
		e->owners[i] = (evrec_owner){ random_text(random),
			                      random_text(random),
			                      random_text(random),
			                      random_text(random),
			                      (int)(unit_random(random) % 3) - 1,
			                      (int)(unit_random(random) % 3) - 1 };
	}
	f->first = (int64_t)unit_random(random);
	f->count = (int32_t)unit_random(random);
	f->series_count = (int32_t)unit_random(random);
	f->series_last = (int64_t)unit_random(random);
}

static void test_random_events(void **state)
{
	uint64_t random = begin_random();
	struct random_event e;

	(void)state;
	for (unsigned n = 0; n < 5000; n++) {
		make_random(&random, &e);
		check_packs(&e.fields);
	}
}

/* ---- bytes that are none of a packed event ---- */

static evrec_packed *parse(evrec_str bytes, void **memory)
{
	const size_t size = packed_bytes_size(bytes);

	*memory = size == 0 ? NULL : malloc(size);
	return size == 0 ? NULL : packed_from_bytes(*memory, bytes);
}

static void put_bytes(struct buf *bytes, const evrec_fields *fields)
{
	evrec_packed *packed = pack(fields, NULL);

	buf_clear(bytes);
	packed_put_bytes(bytes, packed);
	free(packed);
}

static void test_cut_bytes_are_no_event(void **state)
{
	const evrec_fields f = event_fields_full();
	struct buf bytes = { 0 };
	void *memory;

	(void)state;
	put_bytes(&bytes, &f);
	for (size_t len = 0; len < bytes.len; len++) {
		char *exactly = malloc(len + 1);

		memcpy(exactly, bytes.data, len);
		exactly[len] = 'x';
		assert_null(parse((evrec_str){ exactly, len }, &memory));
		free(memory);
		free(exactly);
	}
	buf_put(&bytes, "x", 1);
	assert_null(parse(buf_str(&bytes), &memory));
	free(memory);
	buf_free(&bytes);
}

/* A changed byte may be one of a text. If not, the bytes are refused, or all strings lie among them still. */
static void test_changed_bytes_lead_nowhere_else(void **state)
{
	uint64_t random = begin_random();
	struct random_event e;
	struct buf bytes = { 0 };
	unsigned refused = 0;

	(void)state;
	for (unsigned n = 0; n < 20000; n++) {
		evrec_packed *packed;
		evrec_fields got;
		void *memory;

		make_random(&random, &e);
		put_bytes(&bytes, &e.fields);
		for (uint64_t changes = 1 + unit_random(&random) % 3; changes != 0; changes--) {
			/* Most are among the numbers at the beginning. */
			const size_t most = unit_random(&random) % 4 != 0 ? 80 : bytes.len;

			bytes.data[unit_random(&random) % (most < bytes.len ? most : bytes.len)] =
				(char)unit_random(&random);
		}
		packed = parse(buf_str(&bytes), &memory);
		if (packed != NULL) {
			evrec_packed_read(packed, &got);
			event_fields_check_within(&got, packed, packed_size(packed));
			event_fields_check_same(&got, &got); /* reads all bytes */
		}
		refused += packed == NULL;
		free(memory);
	}
	assert_true(refused > 1000);
	buf_free(&bytes);
}

static void test_bytes_need_memory(void **state)
{
	struct unit_allocator memory = { .fail_at = 1 };
	const evrec_fields f = event_fields_full();
	evrec_packed *packed = pack(&f, NULL);
	struct buf bytes = { 0 };

	(void)state;
	evrec_set_allocator(unit_realloc, &memory);
	packed_put_bytes(&bytes, packed);
	evrec_set_allocator(NULL, NULL);
	assert_true(bytes.failed);
	buf_free(&bytes);
	free(packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_event),
		cmocka_unit_test(test_empty_event),
		cmocka_unit_test(test_each_string_is_packed_by_itself),
		cmocka_unit_test(test_each_array_is_packed_by_itself),
		cmocka_unit_test(test_limits_of_numbers),
		cmocka_unit_test(test_common_strings_are_packed_once),
		cmocka_unit_test(test_random_events),
		cmocka_unit_test(test_cut_bytes_are_no_event),
		cmocka_unit_test(test_changed_bytes_lead_nowhere_else),
		cmocka_unit_test(test_bytes_need_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
