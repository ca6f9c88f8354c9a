/*
 * Random batches, with fields of up to some ten thousand bytes: both encodings say what the events say, no more and no
 * less; all lengths are exact; the size that is told is the body's; jansson writes a body of JSON in the same way.
 */
#include <inttypes.h>
#include <jansson.h>

#include "otlp/batch.h"
#include "otlp_reader.h"

#define TEXT_MAX 40000

struct random {
	uint64_t state;
	char text[TEXT_MAX];
};

static uint64_t below(struct random *r, uint64_t limit)
{
	return unit_random(&r->state) % limit;
}

/* The bytes at a random place of r->text, which is ASCII without ';', '=', '\n': a text that the readers' text can hold. */
static evrec_str some(struct random *r)
{
	static const size_t most[] = { 1, 1, 4, 20, 20, 120, 140, 300 };
	const size_t len = below(r, 200) == 0 ? below(r, TEXT_MAX) : below(r, most[below(r, 8)]);

	return (evrec_str){ r->text + below(r, TEXT_MAX - len), len };
}

static int64_t some_time(struct random *r)
{
	return below(r, 4) == 0 ? EVREC_UNSET : T0 + (int64_t)below(r, UINT64_C(1) << 61);
}

static evrec_fields random_event(struct random *r)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.name = some(r);
	f.note = some(r);
	f.reason = some(r);
	f.action = some(r);
	f.component = some(r);
	f.instance = some(r);
	f.type = below(r, 2) == 0 ? EVREC_STR("Normal") : EVREC_STR("Warning");
	f.count = (int32_t)(below(r, UINT64_C(1) << below(r, 32)));
	f.last = some_time(r);
	return f;
}

static void change_resource(struct random *r, evrec_fields *f, evrec_reference *regarding)
{
	if (below(r, 3) == 0) {
		*regarding = (evrec_reference){ some(r), some(r), some(r), some(r), some(r), some(r), some(r) };
	}
	f->regarding = *regarding;
}

static void expect(struct buf *out, const char *name, evrec_str value)
{
	if (value.len != 0) {
		buf_printf(out, "%s=%.*s;", name, (int)value.len, value.data);
	}
}

static void expect_resource(struct buf *out, const evrec_reference *object)
{
	buf_printf(out, "resource service.name=shop;");
	expect(out, "k8s.namespace.name", object->ns);
	expect(out, "k8s.object.kind", object->kind);
	expect(out, "k8s.object.name", object->name);
	expect(out, "k8s.object.uid", object->uid);
	expect(out, "k8s.object.fieldpath", object->field_path);
	expect(out, "k8s.object.api_version", object->api_version);
	expect(out, "k8s.object.resource_version", object->resource_version);
	buf_printf(out, "\n");
}

static void expect_log(struct buf *out, const evrec_fields *f, int64_t observed)
{
	buf_printf(out, "log");
	if (f->last != EVREC_UNSET) {
		buf_printf(out, " time=%" PRId64, f->last);
	}
	buf_printf(out, " observed=%" PRId64 " severity=%d text=%.*s", observed, f->type.data[0] == 'N' ? 9 : 13,
	           (int)f->type.len, f->type.data);
	if (f->note.len != 0) {
		buf_printf(out, " body=%.*s", (int)f->note.len, f->note.data);
	}
	buf_printf(out, " ");
	expect(out, "k8s.event.reason", f->reason);
	expect(out, "k8s.event.action", f->action);
	expect(out, "k8s.event.name", f->name);
	buf_printf(out, "k8s.event.count=#%d;", f->count != 0 ? f->count : 1);
	expect(out, "reporting_controller", f->component);
	expect(out, "reporting_instance", f->instance);
	buf_printf(out, "\n");
}

static bool is_same(const evrec_reference *a, const evrec_reference *b)
{
	return str_eq(a->kind, b->kind) && str_eq(a->api_version, b->api_version) && str_eq(a->name, b->name) &&
	       str_eq(a->ns, b->ns) && str_eq(a->uid, b->uid) && str_eq(a->resource_version, b->resource_version) &&
	       str_eq(a->field_path, b->field_path);
}

/* What jansson makes of the body, in the order that it has, is the body. */
static void check_canonical(evrec_str body)
{
	json_t *json = json_loadb(body.data, body.len, 0, NULL);
	char *again = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER);

	assert_non_null(again);
	assert_int_equal(strlen(again), body.len);
	assert_memory_equal(again, body.data, body.len);
	free(again);
	json_decref(json);
}

static void check_body(struct otlp_batch *batch, enum otlp_encoding encoding, struct buf *expected)
{
	const size_t size = otlp_batch_size(batch);
	struct buf text = { 0 };
	evrec_str body;

	body.data = otlp_batch_finish(batch, &body.len);
	assert_non_null(body.data);
	assert_int_equal(body.len, size);
	(encoding == OTLP_JSON ? otlp_read_json : otlp_read_protobuf)(body, &text);
	assert_string_equal(buf_cstr(&text), buf_cstr(expected));
	if (encoding == OTLP_JSON) {
		check_canonical(body);
	}
	buf_free(&text);
	mem_free((void *)(uintptr_t)body.data);
}

static void random_batch(struct random *r, struct otlp_batch *const batches[OTLP_ENCODINGS])
{
	const size_t records = 1 + below(r, 1 + below(r, 60));
	struct buf expected = { 0 };
	evrec_reference regarding = { 0 }, last = { 0 };

	for (size_t i = 0; i < records; i++) {
		evrec_fields f = random_event(r);
		const int64_t observed = T0 + (int64_t)below(r, 1000);
		const struct otlp_record record = { &f, observed };

		change_resource(r, &f, &regarding);
		for (int encoding = 0; encoding < OTLP_ENCODINGS; encoding++) {
			assert_true(otlp_batch_add(batches[encoding], &record));
		}
		if (i == 0 || !is_same(&last, &regarding)) {
			expect_resource(&expected, &regarding);
		}
		expect_log(&expected, &f, observed);
		last = regarding;
	}
	for (int encoding = 0; encoding < OTLP_ENCODINGS; encoding++) {
		check_body(batches[encoding], (enum otlp_encoding)encoding, &expected);
	}
	buf_free(&expected);
}

static void both_encodings_say_what_the_events_say(void **state)
{
	static const evrec_pair service = { { "service.name", 12 }, { "shop", 4 } };
	static struct random r;
	struct otlp_batch *batches[OTLP_ENCODINGS];

	(void)state;
	r.state = unit_seed();
	for (size_t i = 0; i < TEXT_MAX; i++) {
		const uint64_t c = below(&r, 64);

		/* Some quotes and control characters, and mostly letters. */
		r.text[i] = c == 0 ? '"' : c == 1 ? '\\' : c == 2 ? '\t' : c == 3 ? 0x1F : (char)('?' + c);
	}
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		const struct otlp_options options = { .encoding = (enum otlp_encoding)i, .resource = { &service, 1 } };

		batches[i] = otlp_batch_new(&options);
		assert_non_null(batches[i]);
	}
	for (int round = 0; round < 500; round++) {
		random_batch(&r, batches);
	}
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		otlp_batch_free(batches[i]);
	}
}

/* One record more each time: the lengths of the shared ResourceLogs grow from one byte to four. */
static void lengths_of_a_shared_resource_grow(void **state)
{
	static char note[5000];
	static const size_t lens[] = { 1, 30, 126, 127, 128, 5000 };
	const struct otlp_options options = { .encoding = OTLP_PROTOBUF };
	struct otlp_batch *batch = otlp_batch_new(&options);
	evrec_fields f;

	(void)state;
	memset(note, 'x', sizeof(note));
	evrec_fields_init(&f);
	f.type = EVREC_STR("Normal");
	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		/* All batches of few records, and one of 2 MiB and more. */
		for (size_t records = 1; records <= 600; records += records < 40 ? 1 : 560) {
			struct buf expected = { 0 };
			const struct otlp_record record = { &f, T0 };

			f.note = (evrec_str){ note, lens[i] };
			buf_printf(&expected, "resource \n");
			for (size_t j = 0; j < records; j++) {
				assert_true(otlp_batch_add(batch, &record));
				expect_log(&expected, &f, T0);
			}
			check_body(batch, OTLP_PROTOBUF, &expected);
			buf_free(&expected);
		}
	}
	otlp_batch_free(batch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_encodings_say_what_the_events_say),
		cmocka_unit_test(lengths_of_a_shared_resource_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
