#include "http/retry_after.h"

#include <stdio.h>
#include <time.h>

#define SECONDS_MAX (365 * 24 * 3600)

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

int64_t retry_after_parse(evrec_str value, int64_t now)
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
