/* RFC 3339 formatted and parsed, and the seconds that a script gives. */
#include "fuzz.h"

#include <math.h>
#include <time.h>

/* Compares with the calendar of the C library. */
static void check_format(int64_t ns)
{
	char text[EVREC_RFC3339_SIZE], expected[EVREC_RFC3339_SIZE];
	int64_t rest = (ns % EVREC_SECOND + EVREC_SECOND) % EVREC_SECOND, parsed;
	int64_t seconds = ns / EVREC_SECOND - (ns % EVREC_SECOND < 0);
	unsigned micro = (unsigned)(rest / 1000);
	time_t t = (time_t)seconds;
	struct tm tm;

	CHECK(gmtime_r(&t, &tm) != NULL);
	CHECK(strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S", &tm) == 19);
	CHECK(evrec_rfc3339_format(ns, false, text) == 20 && strlen(text) == 20);
	CHECK(memcmp(text, expected, 19) == 0 && text[19] == 'Z');
	/* The parser refuses the first and the last second of the range of 64 bits. */
	if (evrec_rfc3339_parse(str_from(text), &parsed)) {
		CHECK(parsed == ns - rest);
	} else {
		CHECK(seconds < -9223372034 || seconds > 9223372034);
	}
	CHECK(evrec_rfc3339_format(ns, true, text) == 27 && strlen(text) == 27);
	(void)snprintf(expected + 19, sizeof(expected) - 19, ".%06uZ", micro);
	CHECK(strcmp(text, expected) == 0);
	if (evrec_rfc3339_parse(str_from(text), &parsed)) {
		CHECK(parsed == ns - rest % 1000);
	}
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The same time with another offset: its digits, read as UTC, are later by that offset. */
static void check_offset(evrec_str text, int64_t ns)
{
	const char *offset = text.data + text.len - 6;
	int64_t seconds, utc;
	char *as_utc;

	if (text.len < 25 || (*offset != '+' && *offset != '-')) {
		return;
	}
	CHECK(is_digit(offset[1]) && is_digit(offset[2]) && offset[3] == ':' && is_digit(offset[4]) &&
	      is_digit(offset[5]));
	seconds =
		(offset[1] - '0') * 36000 + (offset[2] - '0') * 3600 + (offset[4] - '0') * 600 + (offset[5] - '0') * 60;
	if (*offset == '+') {
		seconds = -seconds;
	}
	as_utc = malloc(text.len - 5);
	CHECK(as_utc != NULL);
	memcpy(as_utc, text.data, text.len - 6);
	as_utc[text.len - 6] = 'Z';
	if (evrec_rfc3339_parse((evrec_str){ as_utc, text.len - 5 }, &utc)) {
		CHECK(ns == utc + seconds * EVREC_SECOND);
	}
	free(as_utc);
}

static void check_text(evrec_str text)
{
	int64_t ns, again;
	char whole[EVREC_RFC3339_SIZE];

	if (!evrec_rfc3339_parse(text, &ns)) {
		return;
	}
	CHECK(text.len >= 20 && text.len <= 35);
	check_format(ns);
	check_offset(text, ns);
	(void)evrec_rfc3339_format(ns, false, whole);
	if (evrec_rfc3339_parse(str_from(whole), &again)) {
		CHECK(ns - again >= 0 && ns - again < EVREC_SECOND);
	}
}

/* The microseconds that are this number; or the nearest nanosecond, if a double is that precise, else as near as it. */
static void check_seconds(double seconds)
{
	const long double exact = (long double)seconds * 1e9L;
	bool is_micro;
	int64_t ns;

	if (!evrec_seconds_to_ns(seconds, &ns)) {
		CHECK(!(fabs(seconds) < 9223372036.0));
		return;
	}
	CHECK(isfinite(seconds) && fabs(seconds) <= 9223372037.0);
	is_micro = ns % 1000 == 0 && (double)((long double)ns / 1e9L) == seconds;
	CHECK(is_micro || fabsl((long double)ns - exact) <= (fabs(seconds) < 4e9 ? 0.501L : 2048));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .left = size };
	uint64_t bits;
	double seconds;
	int64_t ns;

	switch (input_byte(&in)) {
	case 'n':
		bits = input_u64(&in);
		memcpy(&ns, &bits, sizeof(ns));
		check_format(ns);
		break;
	case 's':
		bits = input_u64(&in);
		memcpy(&seconds, &bits, sizeof(seconds));
		check_seconds(seconds);
		break;
	default:
		check_text(input_rest(&in));
		break;
	}
	input_end(&in);
	return 0;
}
