#include "lua/sink_options.h"

#include <stdint.h>

#define COMMON(member) offsetof(evrec_sink_options, member)

/* Offsets from the member `spool`. */
static const struct option spool_rows[] = {
	{ "path", OPTION_STRING, 0, 1, 0, NULL, true },
	{ "after", OPTION_DURATION, COMMON(spool_after) - COMMON(spool), 0, 1e9, NULL, false },
	{ "journal", OPTION_BOOLEAN, COMMON(spool_journal) - COMMON(spool), 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

static const struct option full_words[] = {
	{ "drop_newest", OPTION_VALUE, EVREC_DROP_NEWEST, 0, 0, NULL, false },
	{ "drop_oldest", OPTION_VALUE, EVREC_DROP_OLDEST, 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

static const struct option api_words[] = {
	{ "v1", OPTION_VALUE, EVREC_SINK_CORE_V1, 0, 0, NULL, false },
	{ "events.k8s.io/v1", OPTION_VALUE, EVREC_SINK_EVENTS_V1, 0, 0, NULL, false },
	{ "auto", OPTION_VALUE, EVREC_SINK_AUTO, 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

static const struct option correlate_words[] = {
	{ "record", OPTION_VALUE, EVREC_CORRELATE_RECORD, 0, 0, NULL, false },
	{ "series", OPTION_VALUE, EVREC_CORRELATE_SERIES, 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

const struct option sink_common_rows[] = {
	{ "max_pending", OPTION_SIZE, COMMON(limits.max_pending), 1, 1e7, NULL, false },
	{ "max_pending_bytes", OPTION_SIZE, COMMON(limits.max_pending_bytes), 1, (double)(SIZE_MAX / 2), NULL, false },
	{ "max_age", OPTION_DURATION, COMMON(limits.max_age), 0, 1e9, NULL, false },
	{ "max_tries", OPTION_UNSIGNED, COMMON(limits.max_tries), 0, 1e9, NULL, false },
	{ "full", OPTION_WORD, COMMON(limits.full), 0, 0, full_words, false },
	{ "spool", OPTION_STRING_OR_TABLE, COMMON(spool), 1, 0, spool_rows, false },
	{ "state_file", OPTION_STRING, COMMON(state_file), 1, 0, NULL, false },
	{ "name", OPTION_STRING, COMMON(name), 0, 0, NULL, false },
	{ "api", OPTION_WORD, COMMON(api), 0, 0, api_words, false },
	{ "correlate", OPTION_WORD, COMMON(correlate), 0, 0, correlate_words, false },
	{ "refresh_interval", OPTION_DURATION, COMMON(series.refresh_interval), 1, 1e9, NULL, false },
	{ "finish_time", OPTION_DURATION, COMMON(series.finish_time), 1, 1e9, NULL, false },
	{ "max_series", OPTION_SIZE, COMMON(series.max_series), 1, 1 << 24, NULL, false },
	{ "note_in_key", OPTION_BOOLEAN, COMMON(series.note_in_key), 0, 0, NULL, false },
	{ "rate_limit", OPTION_BOOLEAN, COMMON(series.rate_limit), 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

void sink_check_series(lua_State *L, const char *function, const evrec_sink_options *options)
{
	static const char *const names[] = { "refresh_interval", "finish_time", "max_series", "note_in_key",
		                             "rate_limit" };
	size_t i;

	if (options->correlate == EVREC_CORRELATE_SERIES ||
	    (options->correlate == EVREC_CORRELATE_BY_API && options->api != EVREC_SINK_CORE_V1)) {
		return;
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		lua_getfield(L, 1, names[i]);
		if (!is_unset(L, -1)) {
			luaL_error(L, "%s: option '%s': only with correlate = \"series\"", function, names[i]);
		}
		lua_pop(L, 1);
	}
}
