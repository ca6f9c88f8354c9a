#include "read/selector.h"

struct selector_field {
	const char *name;
	size_t offset; /* of the string in evrec_fields */
};

#define FIELD(name, member)                                                                                            \
	{                                                                                                              \
		name, offsetof(evrec_fields, member)                                                                   \
	}

/* An event without a source component has its reporting controller as the field `source`. */
static const struct selector_field fields[] = {
	FIELD("metadata.name", name),
	FIELD("metadata.namespace", ns),
	FIELD("involvedObject.kind", regarding.kind),
	FIELD("involvedObject.namespace", regarding.ns),
	FIELD("involvedObject.name", regarding.name),
	FIELD("involvedObject.uid", regarding.uid),
	FIELD("involvedObject.apiVersion", regarding.api_version),
	FIELD("involvedObject.resourceVersion", regarding.resource_version),
	FIELD("involvedObject.fieldPath", regarding.field_path),
	FIELD("reason", reason),
	FIELD("reportingComponent", controller),
	FIELD("source", component),
	FIELD("type", type),
};

/* ---- parsing ---- */

/* The length of the first term of `text`: up to a comma that has no backslash before it. */
static size_t term_length(evrec_str text)
{
	bool escaped = false;
	size_t i;

	for (i = 0; i < text.len && (escaped || text.data[i] != ','); i++) {
		escaped = !escaped && text.data[i] == '\\';
	}
	return i;
}

/* Finds the operator: the number of bytes before it, and its length. False: there is none. */
static bool find_operator(evrec_str term, size_t *before, size_t *len, bool *equal)
{
	for (size_t i = 0; i < term.len; i++) {
		const bool next = i + 1 < term.len && term.data[i + 1] == '=';

		if (term.data[i] == '=' || (term.data[i] == '!' && next)) {
			*before = i;
			*equal = term.data[i] == '=';
			*len = next ? 2 : 1;
			return true;
		}
	}
	return false;
}

static const struct selector_field *find_field(evrec_str name)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (str_eq(name, str_from(fields[i].name))) {
			return &fields[i];
		}
	}
	return NULL;
}

/* Removes the escapes. False: there is one that is unknown, or a comma or equals sign without one. */
static bool unescape(evrec_str text, struct buf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		const char c = text.data[i];

		if (c == '\\') {
			i++;
			if (i == text.len || strchr("\\,=", text.data[i]) == NULL) {
				return false;
			}
		} else if (c == '=') {
			return false;
		}
		buf_put(out, &text.data[i], 1);
	}
	return true;
}

static int shown(evrec_str text)
{
	return text.len < 80 ? (int)text.len : 80;
}

static int parse_term(struct selector_term *term, evrec_str text, evrec_error *err)
{
	struct buf value = { 0 };
	size_t before, len;
	evrec_str name;

	if (!find_operator(text, &before, &len, &term->equal)) {
		return error_set(err, EVREC_EINVALID,
		                 "field_selector: expected FIELD=VALUE or FIELD!=VALUE, got '%.*s'", shown(text),
		                 text.data);
	}
	name = (evrec_str){ text.data, before };
	term->field = find_field(name);
	if (term->field == NULL) {
		return error_set(err, EVREC_EINVALID, "field_selector: events cannot be selected by the field '%.*s'",
		                 shown(name), text.data);
	}
	text = (evrec_str){ text.data + before + len, text.len - before - len };
	if (!unescape(text, &value)) {
		buf_free(&value);
		return error_set(
			err, EVREC_EINVALID,
			"field_selector: in a value, write \\\\ \\, \\= for a backslash, a comma, an equals sign");
	}
	(void)buf_cstr(&value);
	if (value.failed) {
		buf_free(&value);
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	term->value = value.data;
	return 0;
}

int selector_parse(struct selector *selector, evrec_str text, evrec_error *err)
{
	size_t max = 1, len;
	int code = 0;

	*selector = (struct selector){ 0 };
	if (text.len != 0 && memchr(text.data, '\0', text.len) != NULL) {
		return error_set(err, EVREC_EINVALID, "field_selector: has a NUL in it");
	}
	for (size_t i = 0; i < text.len; i++) {
		max += text.data[i] == ',';
	}
	selector->terms = mem_zalloc(max * sizeof(*selector->terms));
	if (selector->terms == NULL) {
		return error_set(err, EVREC_ENOMEM, "no memory");
	}
	while (code == 0 && text.len != 0) {
		len = term_length(text);
		if (len != 0) {
			code = parse_term(&selector->terms[selector->len], (evrec_str){ text.data, len }, err);
			selector->len += code == 0;
		}
		len += len < text.len;
		text = (evrec_str){ text.data + len, text.len - len };
	}
	return code;
}

void selector_free(struct selector *selector)
{
	for (size_t i = 0; i < selector->len; i++) {
		mem_free(selector->terms[i].value);
	}
	mem_free(selector->terms);
	*selector = (struct selector){ 0 };
}

/* ---- matching ---- */

static bool term_holds(const struct selector_term *term, const evrec_fields *event)
{
	evrec_str value = *(const evrec_str *)(const void *)((const char *)event + term->field->offset);

	if (value.len == 0 && term->field->offset == offsetof(evrec_fields, component)) {
		value = event->controller;
	}
	return str_eq(value, str_from(term->value)) == term->equal;
}

bool selector_matches(const struct selector *selector, const evrec_fields *event)
{
	for (size_t i = 0; i < selector->len; i++) {
		if (!term_holds(&selector->terms[i], event)) {
			return false;
		}
	}
	return true;
}

/* ---- writing ---- */

void selector_put_term(struct buf *out, const char *field, bool equal, evrec_str value)
{
	buf_printf(out, "%s%s%s", out->len == 0 ? "" : ",", field, equal ? "=" : "!=");
	for (size_t i = 0; i < value.len; i++) {
		if (value.data[i] == '\\' || value.data[i] == ',' || value.data[i] == '=') {
			buf_put(out, "\\", 1);
		}
		buf_put(out, &value.data[i], 1);
	}
}

void selector_put(const struct selector *selector, struct buf *out)
{
	for (size_t i = 0; i < selector->len; i++) {
		const struct selector_term *term = &selector->terms[i];

		selector_put_term(out, term->field->name, term->equal, str_from(term->value));
	}
}
