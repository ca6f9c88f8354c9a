#include "kubernetes/answer.h"

#include "base/json_tokens.h"
#include "base/utf8.h"
#include "kubernetes/verdict.h"

#include <jansson.h>

/* How much of a text can end up in answer->message, so that no megabyte is cleaned for 255 bytes. */
#define TEXT_MAX 1024
#define NAME_SHOWN 36 /* bytes of it in a message that names two */
#define SECONDS_MAX (365 * 24 * 3600)

static void set_message(evrec_answer *answer, evrec_str text)
{
	utf8_line(answer->message, sizeof(answer->message), text);
}

static void set_text_message(evrec_answer *answer, const char *prefix, evrec_str text)
{
	struct buf message = { 0 };
	const char *end;

	while (text.len != 0 && (*text.data == ' ' || (*text.data >= '\t' && *text.data <= '\r'))) {
		text.data++;
		text.len--;
	}
	if (text.len > TEXT_MAX) {
		text.len = TEXT_MAX;
	}
	end = text.len == 0 ? NULL : memchr(text.data, '\n', text.len);
	if (end != NULL) {
		text.len = (size_t)(end - text.data);
	}
	buf_put_str(&message, str_from(prefix));
	if (*prefix != '\0' && text.len != 0) {
		buf_put_str(&message, EVREC_STR(": "));
	}
	buf_put_str(&message, text);
	set_message(answer, message.failed ? str_from(prefix) : buf_str(&message));
	buf_free(&message);
}

/* A string member, or NULL; also where `object` is none. */
static const char *member(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/*
 * Appends authorization's message, with the ends of long names left out: it names the event and the user before the
 * verb that is not allowed, and must not be cut before that. No other text is shortened, as a secret in it could no
 * longer be found by http_client_hide_secrets.
 */
static void put_with_short_names(struct buf *message, evrec_str text)
{
	const char *end = text.data + text.len;

	for (unsigned quotes = 0; text.len != 0; quotes++) {
		const char *quote = memchr(text.data, '"', text.len);
		const size_t len = (size_t)((quote == NULL ? end : quote) - text.data);
		const bool is_name = quotes == 1 || quotes == 3;

		if (is_name && len > NAME_SHOWN) {
			buf_put(message, text.data, utf8_floor(text, NAME_SHOWN));
			buf_put_str(message, EVREC_STR("..."));
		} else {
			buf_put(message, text.data, len);
		}
		buf_put(message, "\"", quote != NULL);
		text.data += len + (quote != NULL);
		text.len = (size_t)(end - text.data);
	}
}

static void put_text(struct buf *message, const evrec_answer *answer, const char *text)
{
	if (strlen(text) >= sizeof(answer->message) && answer->status == 403 && kubernetes_is_of_authorization(text)) {
		put_with_short_names(message, str_from(text));
	} else {
		buf_put_str(message, str_from(text));
	}
}

/* Field and text of a cause, unless the message says it already, as it does for an invalid object. */
static void put_cause(struct buf *message, const json_t *cause)
{
	const char *field = member(cause, "field"), *text = member(cause, "message");

	if (text == NULL || strstr(buf_cstr(message), text) != NULL) {
		return;
	}
	if (message->len != 0) {
		buf_put_str(message, EVREC_STR("; "));
	}
	if (field != NULL && *field != '\0') {
		buf_printf(message, "%s: ", field);
	}
	buf_put_str(message, str_from(text));
}

static void read_status(evrec_answer *answer, const json_t *status)
{
	const json_t *details = json_object_get(status, "details");
	const json_t *causes = json_object_get(details, "causes");
	json_int_t seconds = json_integer_value(json_object_get(details, "retryAfterSeconds"));
	const char *text = member(status, "message"), *reason = member(status, "reason");
	struct buf message = { 0 };

	if (text == NULL || *text == '\0') {
		text = reason;
	}
	put_text(&message, answer, text == NULL ? "" : text);
	for (size_t i = 0; i < json_array_size(causes); i++) {
		const json_t *cause = json_array_get(causes, i);
		const char *why = member(cause, "reason");

		if (why != NULL && strcmp(why, "NamespaceTerminating") == 0) {
			answer->terminating = answer->status == 403 || answer->status == 404;
		}
		if (message.len < TEXT_MAX) {
			put_cause(&message, cause);
		}
	}
	if (answer->retry_after == 0 && seconds > 0) {
		answer->retry_after = (seconds < SECONDS_MAX ? (int64_t)seconds : SECONDS_MAX) * EVREC_SECOND;
	}
	set_message(answer, buf_str(&message));
	buf_free(&message);
}

/* ---- the Event that a server has stored ---- */

/* The strings that are used. If a member is missing, or no string, its data is NULL. */
struct stored {
	evrec_str kind, name, resource_version;
};

static evrec_str member_str(const json_t *object, const char *key)
{
	const char *text = member(object, key);

	return text == NULL ? (evrec_str){ NULL, 0 } : str_from(text);
}

static void read_tree(const json_t *event, struct stored *stored)
{
	const json_t *metadata = json_object_get(event, "metadata");

	stored->kind = member_str(event, "kind");
	stored->name = member_str(metadata, "name");
	stored->resource_version = member_str(metadata, "resourceVersion");
}

/* Reads the string of a member, if it is the first of this key. */
static bool scan_string(struct json_tokens *t, evrec_str *text)
{
	if (text->data != NULL) {
		return false;
	}
	return json_next_byte(t) == '"' ? json_take_string(t, text) : json_skip_value(t, 0);
}

static evrec_str *metadata_string(struct stored *stored, evrec_str key)
{
	if (str_eq(key, EVREC_STR("name"))) {
		return &stored->name;
	}
	return str_eq(key, EVREC_STR("resourceVersion")) ? &stored->resource_version : NULL;
}

static bool scan_metadata(struct json_tokens *t, struct stored *stored)
{
	enum json_step step;
	evrec_str key;

	if (!json_take(t, '{')) {
		return json_skip_value(t, 0);
	}
	for (bool first = true; (step = json_next_member(t, first, &key)) == JSON_STEP_VALUE; first = false) {
		evrec_str *const text = metadata_string(stored, key);

		if (text != NULL ? !scan_string(t, text) : !json_skip_value(t, 0)) {
			return false;
		}
	}
	return step == JSON_STEP_END;
}

/* The strings may lie in the room. False: jansson has to read the body. */
static bool scan_body(evrec_str body, struct json_room *room, struct stored *stored)
{
	struct json_tokens t = { body.data, body.data + body.len, room };
	bool has_metadata = false;
	enum json_step step;
	evrec_str key;

	if (!json_take(&t, '{')) {
		return false;
	}
	for (bool first = true; (step = json_next_member(&t, first, &key)) == JSON_STEP_VALUE; first = false) {
		bool taken;

		if (str_eq(key, EVREC_STR("kind"))) {
			taken = scan_string(&t, &stored->kind);
		} else if (str_eq(key, EVREC_STR("metadata"))) {
			taken = !has_metadata && scan_metadata(&t, stored);
			has_metadata = true;
		} else {
			taken = json_skip_value(&t, 0);
		}
		if (!taken) {
			return false;
		}
	}
	return step == JSON_STEP_END && json_next_byte(&t) == '\0' && t.at == t.end;
}

static void copy_if_fits(char *to, size_t size, evrec_str from)
{
	if (from.len != 0 && from.len < size) {
		memcpy(to, from.data, from.len);
		to[from.len] = '\0';
	}
}

/* An object without a kind is accepted, too: a mock of an API server may answer {}. */
static bool take_event(evrec_answer *answer, const struct stored *stored)
{
	if (stored->kind.data != NULL && !str_eq(stored->kind, EVREC_STR("Event"))) {
		return false;
	}
	copy_if_fits(answer->name, sizeof(answer->name), stored->name);
	copy_if_fits(answer->resource_version, sizeof(answer->resource_version), stored->resource_version);
	return true;
}

/* Each write has such an answer, and jansson takes more than ten times as many instructions, most of them for its tree. */
static void read_success(evrec_answer *answer, evrec_str body)
{
	struct json_room room = { 0 };
	struct stored stored = { 0 };
	json_t *json = NULL;
	bool read = body.len != 0 && scan_body(body, &room, &stored);

	if (!read && body.len != 0) {
		json = json_loadb(body.data, body.len, JSON_ALLOW_NUL, NULL);
		read = json_is_object(json);
		read_tree(json, &stored);
	}
	if (!read || !take_event(answer, &stored)) {
		answer->status = 0;
		set_text_message(answer, "not an API server's answer", body);
	}
	json_decref(json);
	json_room_free(&room);
}

void answer_read_body(evrec_answer *answer, evrec_str body)
{
	json_t *json;

	if (kubernetes_is_success(answer->status)) {
		read_success(answer, body);
		return;
	}
	json = body.len == 0 ? NULL : json_loadb(body.data, body.len, JSON_ALLOW_NUL, NULL);
	if (json_is_object(json)) {
		read_status(answer, json);
	} else {
		set_text_message(answer, "", body);
	}
	json_decref(json);
}

/* The header of a refusal counts as an answer, even if its body was cut: the server is overloaded. */
static int status_of(const struct http_response *response)
{
	const int cut = response->unauthorized ? 0 : response->cut_status;

	return cut == 429 || cut == 503 ? cut : response->status;
}

/*
 * Whether a gateway, or an API server after its timeout, answers like this while the request may still be carried out.
 */
static bool may_go_on_behind(int status)
{
	return status > 500 && status != 503;
}

/* Whether a failed request may still be carried out later: the server, or one behind a gateway, may only hang. */
static bool may_be_late(const struct http_response *response, int status)
{
	return status == 0 ? !response->unsent : response->sent_again || may_go_on_behind(status);
}

/* Whether the first of two sendings may have succeeded, given this answer to the second. */
static bool leaves_doubt(const struct http_response *response, int status)
{
	return response->sent_again && (status == 409 || status == 429);
}

void answer_read(evrec_answer *answer, const struct http_response *response)
{
	const int status = status_of(response);
	evrec_str body = response->body;

	answer->status = status;
	answer->unsent = response->unsent;
	answer->retry_after = response->retry_after;
	answer->maybe_late = may_be_late(response, status);
	if (response->unauthorized) {
		/* After a 401 the server closes the connection, so this request counts as unauthorized, too. */
		answer->status = 401;
		answer_read_body(answer, body);
	} else if (status == 0) {
		set_message(answer, str_from(response->message));
	} else if (leaves_doubt(response, status)) {
		answer->status = 0;
		set_message(answer, EVREC_STR("the connection was lost while the request was under way"));
	} else if (!kubernetes_is_success(status) || !response->body_cut || *body.data != '{') {
		/*
		 * A longer body of a success is a stored Event that is too long to be read: only its success is known.
		 */
		answer_read_body(answer, body);
	}
	/* Its body may be lost with the connection. The API server says no more than this. */
	if (answer->status == 401 && answer->message[0] == '\0') {
		set_message(answer, EVREC_STR("Unauthorized"));
	}
}

/*
 * kube-apiserver answers by text if it does not have the version, and by a Status without a kind if it does not have the
 * resource. A Status that cannot be read, for want of memory, says nothing.
 */
bool answer_lacks_api(const struct http_response *response)
{
	const evrec_str body = response->body;
	json_t *json;
	const char *kind;
	bool lacks;

	if (response->status != 404) {
		return false;
	}
	if (body.len == 0 || *body.data != '{') {
		return true;
	}
	json = json_loadb(body.data, body.len, JSON_ALLOW_NUL, NULL);
	kind = member(json_object_get(json, "details"), "kind");
	lacks = json != NULL && (kind == NULL || *kind == '\0');
	json_decref(json);
	return lacks;
}
