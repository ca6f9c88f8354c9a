/* The table of an event's fields: each member of evrec_fields has one row, and no object has two of one name. */
#include "unit.h"

#include "event/schema.h"

/* The number of rows that each byte of a struct belongs to. */
struct cover {
	unsigned char rows[sizeof(evrec_fields)];
};

static const size_t sizes[] = {
	[EVREC_FIELD_STRING] = sizeof(evrec_str),
	[EVREC_FIELD_TIME] = sizeof(int64_t),
	[EVREC_FIELD_MICROTIME] = sizeof(int64_t),
	[EVREC_FIELD_INTEGER] = sizeof(int32_t),
	[EVREC_FIELD_TRISTATE] = sizeof(int),
	[EVREC_FIELD_MAP] = sizeof(evrec_map),
	[EVREC_FIELD_OWNERS] = offsetof(evrec_fields, owners_len) + sizeof(size_t) - offsetof(evrec_fields, owners),
};

static const char *cover_rows(struct cover *cover, const evrec_field *table, size_t base);

static bool is_covered(const struct cover *cover, size_t size)
{
	return memchr(cover->rows, 0, size) == NULL;
}

static const char *flaw_of_owner(const evrec_field *table)
{
	struct cover cover = { { 0 } };
	const char *flaw = cover_rows(&cover, table, 0);

	return flaw != NULL || is_covered(&cover, sizeof(evrec_owner)) ? flaw : "a member of evrec_owner has no row";
}

static const char *cover_row(struct cover *cover, const evrec_field *field, size_t base)
{
	size_t i;

	if (field->type == EVREC_FIELD_CONSTANT) {
		return field->constant[0] != NULL && field->constant[1] != NULL ? NULL : "a constant without a value";
	}
	if (field->type == EVREC_FIELD_OBJECT) {
		return cover_rows(cover, field->fields, base + field->offset);
	}
	for (i = base + field->offset; i < base + field->offset + sizes[field->type]; i++) {
		if (i >= sizeof(cover->rows) || cover->rows[i]++ != 0) {
			return "two rows for one byte, or a row beyond the struct";
		}
	}
	return field->type == EVREC_FIELD_OWNERS ? flaw_of_owner(field->fields) : NULL;
}

static const char *cover_rows(struct cover *cover, const evrec_field *table, size_t base)
{
	const evrec_field *field, *other;
	const char *flaw = NULL;

	for (field = table; flaw == NULL && field->name[0] != NULL; field++) {
		if (field->name[1] == NULL) {
			return "a row that only one API names";
		}
		for (other = table; other != field; other++) {
			if (strcmp(field->name[0], other->name[0]) == 0 ||
			    strcmp(field->name[1], other->name[1]) == 0) {
				return "two rows of one name";
			}
		}
		flaw = cover_row(cover, field, base);
	}
	return flaw;
}

/*
 * The first flaw of the table; NULL if each member of evrec_fields has one row, whose type has the member's size, and no
 * object has two members of one name.
 */
static const char *flaw_of(const evrec_field *table)
{
	struct cover cover = { { 0 } };
	const char *flaw = cover_rows(&cover, table, 0);

	return flaw != NULL || is_covered(&cover, sizeof(evrec_fields)) ? flaw : "a member of evrec_fields has no row";
}

static void test_table_has_no_flaw(void **state)
{
	(void)state;
	assert_null(flaw_of(evrec_event_schema));
}

typedef void spoil(evrec_field *table);

static void spoil_offset(evrec_field *table)
{
	table[SCHEMA_NOTE].offset = table[SCHEMA_ACTION].offset;
}

static void spoil_type(evrec_field *table)
{
	table[SCHEMA_COUNT].type = EVREC_FIELD_TIME;
}

static void spoil_type_to_a_smaller(evrec_field *table)
{
	table[SCHEMA_LAST].type = EVREC_FIELD_INTEGER;
}

static void spoil_object(evrec_field *table)
{
	table[SCHEMA_RELATED].fields = table[SCHEMA_SOURCE].fields;
}

static void spoil_name(evrec_field *table)
{
	table[SCHEMA_NOTE].name[EVREC_EVENTS_V1] = "action";
}

static void spoil_end(evrec_field *table)
{
	table[SCHEMA_INSTANCE].name[EVREC_CORE_V1] = NULL;
}

static void spoil_constant(evrec_field *table)
{
	table[SCHEMA_KIND].constant[EVREC_EVENTS_V1] = NULL;
}

static void test_wrong_row_is_found(void **state)
{
	static spoil *const ways[] = {
		spoil_offset, spoil_type, spoil_type_to_a_smaller, spoil_object, spoil_name, spoil_end, spoil_constant,
	};
	evrec_field table[SCHEMA_ROWS + 1];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		memcpy(table, evrec_event_schema, sizeof(table));
		assert_null(flaw_of(table));
		ways[i](table);
		assert_non_null(flaw_of(table));
	}
}

/* Both APIs have all rows, each once. */
static void test_both_orders_have_each_row_once(void **state)
{
	int api;

	(void)state;
	for (api = EVREC_CORE_V1; api <= EVREC_EVENTS_V1; api++) {
		bool seen[SCHEMA_ROWS] = { false };
		size_t i;

		for (i = 0; i < SCHEMA_ROWS; i++) {
			const evrec_field *field = schema_field((enum evrec_api)api, i);

			assert_false(seen[field - evrec_event_schema]);
			seen[field - evrec_event_schema] = true;
		}
	}
}

static void test_api_versions_select_the_api(void **state)
{
	enum evrec_api api;

	(void)state;
	assert_true(evrec_api_parse(EVREC_STR("events.k8s.io/v1"), &api) && api == EVREC_EVENTS_V1);
	assert_true(evrec_api_parse(EVREC_STR("v1"), &api) && api == EVREC_CORE_V1);
	assert_false(evrec_api_parse(EVREC_STR("v1\0"), &api));
	assert_false(evrec_api_parse(EVREC_STR(""), &api));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_has_no_flaw),
		cmocka_unit_test(test_wrong_row_is_found),
		cmocka_unit_test(test_both_orders_have_each_row_once),
		cmocka_unit_test(test_api_versions_select_the_api),
	};

	return cmocka_run_group_tests_name("event: schema", tests, NULL, NULL);
}
