#include "write_fixture.h"

evrec_fields write_fixture_event(void)
{
	evrec_fields f;

	evrec_fields_init(&f);
	f.name = EVREC_STR("web-0.1");
	f.ns = EVREC_STR("shop");
	f.resource_version = EVREC_STR("7");
	f.regarding =
		(evrec_reference){ .kind = EVREC_STR("Pod"), .ns = EVREC_STR("shop"), .name = EVREC_STR("web-0") };
	f.type = EVREC_STR("Warning");
	f.reason = EVREC_STR("BackOff");
	f.action = EVREC_STR("Restarting");
	f.note = EVREC_STR("first");
	f.component = EVREC_STR("kubelet");
	f.host = EVREC_STR("node-1");
	f.controller = EVREC_STR("kubelet");
	f.instance = EVREC_STR("kubelet-node-1");
	f.first = f.last = T0 + 123456789;
	f.count = 1;
	return f;
}

static void get_event(const void *source, evrec_fields *event)
{
	*event = *(const evrec_fields *)source;
}

struct write_draft write_fixture_draft(const evrec_fields *event, int32_t count)
{
	return (struct write_draft){
		.new_style = true,
		.note = event->note,
		.last = event->first + (count - 1) * EVREC_SECOND,
		.count = count,
		.get_event = get_event,
		.source = event,
	};
}

void *write_fixture_make(const evrec_fields *event, int32_t count)
{
	const struct write_draft draft = write_fixture_draft(event, count);
	void *item = write_new(&draft);

	assert_non_null(item);
	return item;
}

void write_fixture_check(const void *item, enum body body, enum evrec_api api, enum reader reader, const char *expected)
{
	struct encoded encoded;

	assert_true(write_encode(item, body, api, reader, &encoded));
	assert_string_equal(encoded.body, expected);
	assert_int_equal(encoded.body_len, strlen(expected));
	assert_string_equal(encoded.ns, "shop");
	encoded_free(&encoded);
}

void write_fixture_check_patch(const void *item, enum reader reader, const char *expected)
{
	write_fixture_check(item, BODY_PATCH, EVREC_EVENTS_V1, reader, expected);
	write_fixture_check(item, BODY_PATCH, EVREC_CORE_V1, reader, expected);
}
