/* Bodies: the bytes of small ones, which records share a resource, sizes, common attributes, gzip. */
#include "otlp/batch.h"

#include <zlib.h>

#include "otlp_reader.h"

/* Strings of C99 with bytes between them: hexadecimal escapes would swallow the letters behind them. */
#define SMALL_LOG                                                                                                      \
	"\x09\x02\x01\0\0\0\0\0\0"                                                                                     \
	"\x10\x09"                                                                                                     \
	"\x1A\x06"                                                                                                     \
	"Normal"                                                                                                       \
	"\x2A\x03\x0A\x01"                                                                                             \
	"m"                                                                                                            \
	"\x32\x17\x0A\x10"                                                                                             \
	"k8s.event.reason"                                                                                             \
	"\x12\x03\x0A\x01"                                                                                             \
	"R"                                                                                                            \
	"\x32\x15\x0A\x0E"                                                                                             \
	"k8s.event.name"                                                                                               \
	"\x12\x03\x0A\x01"                                                                                             \
	"e"                                                                                                            \
	"\x32\x15\x0A\x0F"                                                                                             \
	"k8s.event.count"                                                                                              \
	"\x12\x02\x18\x03"                                                                                             \
	"\x59\x04\x03\0\0\0\0\0\0"
#define SMALL_RESOURCE                                                                                                 \
	"\x0A\x18\x0A\x0F"                                                                                             \
	"k8s.object.kind"                                                                                              \
	"\x12\x05\x0A\x03"                                                                                             \
	"Pod"                                                                                                          \
	"\x0A\x16\x0A\x0F"                                                                                             \
	"k8s.object.name"                                                                                              \
	"\x12\x03\x0A\x01"                                                                                             \
	"p"
#define SIZE(literal) (sizeof(literal) - 1)
#define SCOPE_LEN (2 + SIZE("evrec") + 2 + SIZE(EVREC_VERSION))
_Static_assert(SIZE(SMALL_LOG) == 104 && SIZE(SMALL_RESOURCE) == 50 && SCOPE_LEN + 2 + 106 < 128, "counted by hand");

static evrec_fields small(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = EVREC_STR("p") };
	f.type = EVREC_STR("Normal");
	f.reason = EVREC_STR("R");
	f.note = EVREC_STR("m");
	f.name = EVREC_STR("e");
	f.last = 0x0102;
	f.count = 3;
	return f;
}

static struct otlp_batch *batch_of(enum otlp_encoding encoding, bool gzip)
{
	const struct otlp_options options = { .encoding = encoding, .gzip = gzip };
	struct otlp_batch *batch = otlp_batch_new(&options);

	assert_non_null(batch);
	return batch;
}

static void add(struct otlp_batch *batch, const evrec_fields *event)
{
	const struct otlp_record record = { event, 0x0304 };

	assert_true(otlp_batch_add(batch, &record));
}

/* The body, which the caller frees. */
static evrec_str finish(struct otlp_batch *batch)
{
	evrec_str body;

	body.data = otlp_batch_finish(batch, &body.len);
	assert_non_null(body.data);
	return body;
}

static void drop(evrec_str body)
{
	mem_free((void *)(uintptr_t)body.data);
}

static void put_byte(struct buf *out, size_t byte)
{
	const char c = (char)byte;

	buf_put(out, &c, 1);
}

static void put_scope(struct buf *out)
{
	put_byte(out, 0x0A);
	put_byte(out, SCOPE_LEN);
	buf_put_str(out, EVREC_STR("\x0A\x05"
	                           "evrec\x12"));
	put_byte(out, SIZE(EVREC_VERSION));
	buf_put_str(out, EVREC_STR(EVREC_VERSION));
}

static void protobuf_of_one_record_is_these_bytes(void **state)
{
	struct otlp_batch *batch = batch_of(OTLP_PROTOBUF, false);
	const evrec_fields f = small();
	struct buf expected = { 0 };
	evrec_str body;

	(void)state;
	buf_put_str(&expected, EVREC_STR("\x0A"));
	put_byte(&expected, (52 + 2 + 2 + SCOPE_LEN + 106) | 0x80);
	put_byte(&expected, 1);
	buf_put_str(&expected, EVREC_STR("\x0A\x32" SMALL_RESOURCE "\x12"));
	put_byte(&expected, 2 + SCOPE_LEN + 106);
	put_scope(&expected);
	buf_put_str(&expected, EVREC_STR("\x12\x68" SMALL_LOG));
	add(batch, &f);
	body = finish(batch);
	assert_int_equal(body.len, expected.len);
	assert_memory_equal(body.data, expected.data, expected.len);
	drop(body);
	buf_free(&expected);
	otlp_batch_free(batch);
}

static void json_of_two_resources_is_this_text(void **state)
{
	struct otlp_batch *batch = batch_of(OTLP_JSON, false);
	evrec_fields f = small();
	evrec_str body;

	(void)state;
	add(batch, &f);
	add(batch, &f);
	f.regarding = (evrec_reference){ 0 };
	f.type = f.name = f.reason = (evrec_str){ NULL, 0 };
	f.note = EVREC_STR("\"\\/\b\f\n\r\t\x01\x1F\x7F\xC3\xA9 a longer text\n without and with\x02 escapes");
	f.last = EVREC_UNSET;
	f.count = 0;
	add(batch, &f);
	body = finish(batch);
#define LOG                                                                                                            \
	"{\"timeUnixNano\":\"258\",\"observedTimeUnixNano\":\"772\",\"severityNumber\":9,\"severityText\":\"Normal\"," \
	"\"body\":{\"stringValue\":\"m\"},\"attributes\":["                                                            \
	"{\"key\":\"k8s.event.reason\",\"value\":{\"stringValue\":\"R\"}},"                                            \
	"{\"key\":\"k8s.event.name\",\"value\":{\"stringValue\":\"e\"}},"                                              \
	"{\"key\":\"k8s.event.count\",\"value\":{\"intValue\":\"3\"}}]}"
#define SCOPE "\"scopeLogs\":[{\"scope\":{\"name\":\"evrec\",\"version\":\"" EVREC_VERSION "\"},\"logRecords\":["
	assert_str(body, "{\"resourceLogs\":[{\"resource\":{\"attributes\":["
	                 "{\"key\":\"k8s.object.kind\",\"value\":{\"stringValue\":\"Pod\"}},"
	                 "{\"key\":\"k8s.object.name\",\"value\":{\"stringValue\":\"p\"}}]}," SCOPE LOG "," LOG "]}]},"
	                 "{\"resource\":{\"attributes\":[]}," SCOPE
	                 "{\"observedTimeUnixNano\":\"772\",\"body\":{\"stringValue\":"
	                 "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\x7F\xC3\xA9 a longer text\\n without and "
	                 "with\\u0002 escapes\"},\"attributes\":["
	                 "{\"key\":\"k8s.event.count\",\"value\":{\"intValue\":\"1\"}}]}]}]}]}");
	drop(body);
	otlp_batch_free(batch);
}

static void a_body_of_no_record_is_an_empty_request(void **state)
{
	struct otlp_batch *protobuf = batch_of(OTLP_PROTOBUF, false), *json = batch_of(OTLP_JSON, false);
	evrec_str body = finish(protobuf);

	(void)state;
	assert_int_equal(body.len, 0);
	drop(body);
	body = finish(json);
	assert_str(body, "{}");
	drop(body);
	otlp_batch_free(protobuf);
	otlp_batch_free(json);
}

/* Fails unless the records of the batch, which is finished, read as `expected` in both encodings. */
static void check_text(struct otlp_batch *const batches[OTLP_ENCODINGS], const char *expected)
{
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		evrec_str body = finish(batches[i]);
		struct buf text = { 0 };

		(i == OTLP_JSON ? otlp_read_json : otlp_read_protobuf)(body, &text);
		assert_string_equal(buf_cstr(&text), expected);
		buf_free(&text);
		drop(body);
	}
}

static void records_of_one_resource_in_a_row_share_it(void **state)
{
	struct otlp_batch *const batches[] = { batch_of(OTLP_PROTOBUF, false), batch_of(OTLP_JSON, false) };
	evrec_fields f = small();

	(void)state;
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		f.regarding.name = EVREC_STR("p");
		add(batches[i], &f);
		add(batches[i], &f);
		f.regarding.name = EVREC_STR("q");
		add(batches[i], &f);
		f.regarding.name = EVREC_STR("p");
		add(batches[i], &f);
		assert_int_equal(otlp_batch_len(batches[i]), 4);
	}
#define TEXT                                                                                                           \
	"log time=258 observed=772 severity=9 text=Normal body=m "                                                     \
	"k8s.event.reason=R;k8s.event.name=e;k8s.event.count=#3;\n"
	check_text(batches, "resource k8s.object.kind=Pod;k8s.object.name=p;\n" TEXT TEXT
	                    "resource k8s.object.kind=Pod;k8s.object.name=q;\n" TEXT
	                    "resource k8s.object.kind=Pod;k8s.object.name=p;\n" TEXT);
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		otlp_batch_free(batches[i]);
	}
}

static void common_attributes_come_first_but_for_names_of_the_events(void **state)
{
	static const evrec_pair pairs[] = {
		{ { "service.name", 12 }, { "first", 5 } },  { { "empty", 5 }, { NULL, 0 } },
		{ { "service.name", 12 }, { "shop", 4 } },   { { NULL, 0 }, { "v", 1 } },
		{ { "k8s.node.name", 13 }, { "mine", 4 } },  { { "bad\xFF", 4 }, { "\xFF", 1 } },
		{ { "k8s.object.uid", 14 }, { "mine", 4 } }, { { "k8s.namespace.name", 18 }, { "mine", 4 } },
	};
	struct otlp_batch *batches[OTLP_ENCODINGS];
	evrec_fields f = small();

	(void)state;
	f.host = EVREC_STR("theirs");
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		const struct otlp_options options = { .encoding = (enum otlp_encoding)i, .resource = { pairs, 8 } };

		batches[i] = otlp_batch_new(&options);
		assert_non_null(batches[i]);
		for (int round = 0; round < 2; round++) {
			add(batches[i], &f);
		}
	}
#define COMMON "service.name=shop;bad\xEF\xBF\xBD=\xEF\xBF\xBD;"
#define THEIRS                                                                                                         \
	"log time=258 observed=772 severity=9 text=Normal body=m k8s.event.reason=R;k8s.event.name=e;"                 \
	"k8s.event.count=#3;reporting_instance=theirs;\n"
	check_text(batches,
	           "resource " COMMON "k8s.node.name=theirs;k8s.object.kind=Pod;k8s.object.name=p;\n" THEIRS THEIRS);
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		otlp_batch_free(batches[i]);
	}
}

static void strings_that_are_no_utf8_are_cleaned(void **state)
{
	struct otlp_batch *const batches[] = { batch_of(OTLP_PROTOBUF, false), batch_of(OTLP_JSON, false) };
	evrec_fields f = small();

	(void)state;
	f.regarding = (evrec_reference){ .kind = EVREC_STR("P\xC3") };
	f.type = EVREC_STR("N\xFF");
	f.note = EVREC_STR("\xE2\x82 a note of several words, \xC3\xA9");
	f.reason = EVREC_STR("\xED\xA0\x80");
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		add(batches[i], &f);
	}
#define BAD "\xEF\xBF\xBD"
	check_text(batches, "resource k8s.object.kind=P" BAD ";\nlog time=258 observed=772 text=N" BAD " body=" BAD BAD
	                    " a note of several words, \xC3\xA9 k8s.event.reason=" BAD BAD BAD
	                    ";k8s.event.name=e;k8s.event.count=#3;\n");
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		otlp_batch_free(batches[i]);
	}
}

static void a_bound_holds_for_all_but_the_first_record(void **state)
{
	const evrec_fields f = small();
	const struct otlp_record record = { &f, 0 };

	(void)state;
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		struct otlp_batch *batch = batch_of((enum otlp_encoding)i, false);
		size_t size, n;

		assert_int_equal(otlp_batch_add_within(batch, &record, 1), OTLP_ADDED);
		size = otlp_batch_size(batch);
		assert_int_equal(otlp_batch_add_within(batch, &record, 1), OTLP_FULL);
		assert_int_equal(otlp_batch_size(batch), size);
		while (otlp_batch_add_within(batch, &record, 10000) == OTLP_ADDED) {
		}
		/* No more than one record's room is left, with what is around it. */
		assert_in_range(otlp_batch_size(batch), 10000 - size - 300, 10000);
		n = otlp_batch_len(batch);
		assert_true(otlp_batch_add(batch, &record));
		assert_int_equal(otlp_batch_len(batch), n + 1);
		otlp_batch_free(batch);
	}
}

static void a_cleared_batch_is_empty(void **state)
{
	struct otlp_batch *const batches[] = { batch_of(OTLP_PROTOBUF, false), batch_of(OTLP_JSON, false) };
	const evrec_fields f = small();

	(void)state;
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		add(batches[i], &f);
		otlp_batch_clear(batches[i]);
		assert_int_equal(otlp_batch_len(batches[i]), 0);
	}
	check_text(batches, "");
	for (int i = 0; i < OTLP_ENCODINGS; i++) {
		otlp_batch_free(batches[i]);
	}
}

/* Fails unless `compressed` is one gzip member of `bytes`. */
static void check_gzip(evrec_str compressed, evrec_str bytes)
{
	char *inflated = malloc(bytes.len + 1);
	z_stream stream = { 0 };

	assert_non_null(inflated);
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	stream.next_in = (Bytef *)(uintptr_t)compressed.data;
	stream.avail_in = (uInt)compressed.len;
	stream.next_out = (Bytef *)inflated;
	stream.avail_out = (uInt)bytes.len + 1;
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	assert_int_equal(stream.total_out, bytes.len);
	assert_memory_equal(inflated, bytes.data, bytes.len);
	assert_int_equal(inflateEnd(&stream), Z_OK);
	free(inflated);
}

static void gzip_packs_the_body_each_time_anew(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int encoding = 0; encoding < OTLP_ENCODINGS; encoding++) {
		struct otlp_batch *plain = batch_of((enum otlp_encoding)encoding, false);
		struct otlp_batch *packed = batch_of((enum otlp_encoding)encoding, true);

		for (size_t records = 1; records < 3000; records *= 10) {
			evrec_str bytes, compressed;

			for (size_t i = 0; i < records; i++) {
				evrec_fields f = small();
				uint64_t noise[8];

				for (size_t j = 0; j < 8; j++) {
					noise[j] = unit_random(&seed) & UINT64_C(0x7F7F7F7F7F7F7F7F);
				}
				f.note = (evrec_str){ (const char *)noise, sizeof(noise) };
				add(plain, &f);
				add(packed, &f);
			}
			assert_int_equal(otlp_batch_size(packed), otlp_batch_size(plain));
			bytes = finish(plain);
			compressed = finish(packed);
			check_gzip(compressed, bytes);
			drop(bytes);
			drop(compressed);
		}
		otlp_batch_free(plain);
		otlp_batch_free(packed);
	}
}

static void content_types(void **state)
{
	(void)state;
	assert_string_equal(otlp_content_type(OTLP_PROTOBUF), "application/x-protobuf");
	assert_string_equal(otlp_content_type(OTLP_JSON), "application/json");
	otlp_batch_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protobuf_of_one_record_is_these_bytes),
		cmocka_unit_test(json_of_two_resources_is_this_text),
		cmocka_unit_test(a_body_of_no_record_is_an_empty_request),
		cmocka_unit_test(records_of_one_resource_in_a_row_share_it),
		cmocka_unit_test(common_attributes_come_first_but_for_names_of_the_events),
		cmocka_unit_test(strings_that_are_no_utf8_are_cleaned),
		cmocka_unit_test(a_bound_holds_for_all_but_the_first_record),
		cmocka_unit_test(a_cleared_batch_is_empty),
		cmocka_unit_test(gzip_packs_the_body_each_time_anew),
		cmocka_unit_test(content_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
