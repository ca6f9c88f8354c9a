#include "deliver/answer.h"

#include "base/utf8.h"

#include <jansson.h>
#include <stdio.h>
#include <time.h>

/* How much of a text can end up in answer->message, so that no megabyte is cleaned for 255 bytes. */
#define TEXT_MAX 1024
#define SECONDS_MAX (365 * 24 * 3600)

/* Sets the message: valid UTF-8, on one line, without space at the ends, cut on a character boundary. */
static void set_message(evrec_answer *answer, evrec_str text)
{
	struct buf clean = { 0 };
	size_t start = 0, end;

	if (text.len > TEXT_MAX) {
		text.len = TEXT_MAX;
	}
	utf8_clean(&clean, text);
	if (clean.failed) {
		clean.len = 0;
	}
	for (size_t i = 0; i < clean.len; i++) {
		if ((unsigned char)clean.data[i] < ' ' || clean.data[i] == 0x7f) {
			clean.data[i] = ' ';
		}
	}
	while (start < clean.len && clean.data[start] == ' ') {
		start++;
	}
	end = start;
	if (start < clean.len) {
		end += utf8_floor((evrec_str){ clean.data + start, clean.len - start }, sizeof(answer->message) - 1);
	}
	while (end > start && clean.data[end - 1] == ' ') {
		end--;
	}
	if (end > start) {
		memcpy(answer->message, clean.data + start, end - start);
	}
	answer->message[end - start] = '\0';
	buf_free(&clean);
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

static void copy_if_fits(char *to, size_t size, const char *from)
{
	if (from != NULL && strlen(from) < size) {
		memcpy(to, from, strlen(from) + 1);
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
	buf_put_str(&message, str_from(text));
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

/* An object that says of itself nothing else is as good: what stands in for an API server may say no more than {}. */
static bool read_event(evrec_answer *answer, const json_t *event)
{
	const json_t *metadata = json_object_get(event, "metadata");
	const char *kind = member(event, "kind");

	if (!json_is_object(event) || (kind != NULL && strcmp(kind, "Event") != 0)) {
		return false;
	}
	copy_if_fits(answer->name, sizeof(answer->name), member(metadata, "name"));
	copy_if_fits(answer->resource_version, sizeof(answer->resource_version), member(metadata, "resourceVersion"));
	return true;
}

void answer_read_body(evrec_answer *answer, evrec_str body)
{
	bool success = answer->status >= 200 && answer->status <= 299;
	json_t *json = body.len == 0 ? NULL : json_loadb(body.data, body.len, JSON_ALLOW_NUL, NULL);

	if (success) {
		if (!read_event(answer, json)) {
			answer->status = 0;
			set_text_message(answer, "not an API server's answer", body);
		}
	} else if (json_is_object(json)) {
		read_status(answer, json);
	} else {
		set_text_message(answer, "", body);
	}
	json_decref(json);
}

/* The last year of these two digits that is at most 50 years ahead of `now`. */
static int whole_year(int year, int64_t now)
{
	time_t seconds = (time_t)(now / EVREC_SECOND);
	struct tm tm = { 0 };
	int last = gmtime_r(&seconds, &tm) == NULL ? 2050 : tm.tm_year + 1900 + 50;

	year += last / 100 * 100;
	return year > last ? year - 100 : year;
}

/* An HTTP date in any of the three forms of RFC 9110, 5.6.7; not strptime, whose names follow the locale. */
static bool parse_date(const char *text, int64_t now, time_t *seconds)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct tm tm = { 0 };
	char month[4];
	const char *at;
	int end = 0;

	if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &tm.tm_mday, month, &tm.tm_year,
	           &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &end) == 6 ||
	    sscanf(text, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%n", month, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
	           &tm.tm_sec, &tm.tm_year, &end) == 6) {
		;
	} else if (sscanf(text, "%*9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n", &tm.tm_mday, month, &tm.tm_year,
	                  &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &end) == 6) {
		tm.tm_year = whole_year(tm.tm_year, now);
	}
	if (end == 0 || text[end] != '\0') {
		return false;
	}
	at = strstr(months, month);
	if (at == NULL || strlen(month) != 3 || (at - months) % 3 != 0) {
		return false;
	}
	tm.tm_mon = (int)(at - months) / 3;
	tm.tm_year -= 1900;
	*seconds = timegm(&tm);
	return true;
}

int64_t answer_retry_after(evrec_str value, int64_t now)
{
	char text[64];
	size_t len = value.len;
	int64_t seconds = 0;
	time_t date;

	while (len != 0 && value.data[len - 1] == ' ') {
		len--;
	}
	while (len != 0 && *value.data == ' ') {
		value.data++;
		len--;
	}
	if (len == 0 || len >= sizeof(text)) {
		return 0;
	}
	memcpy(text, value.data, len);
	text[len] = '\0';
	if (strspn(text, "0123456789") == len) {
		for (size_t i = 0; i < len && seconds < SECONDS_MAX; i++) {
			seconds = seconds * 10 + (text[i] - '0');
		}
		return (seconds < SECONDS_MAX ? seconds : SECONDS_MAX) * EVREC_SECOND;
	}
	if (!parse_date(text, now, &date) || date <= now / EVREC_SECOND) {
		return 0;
	}
	seconds = (int64_t)date - now / EVREC_SECOND;
	return (seconds < SECONDS_MAX ? seconds : SECONDS_MAX) * EVREC_SECOND;
}
