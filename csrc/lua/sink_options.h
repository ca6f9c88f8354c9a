/*
 * sink_options.h - the options that all sinks have (evrec_sink_options), as rows of options.h.
 */
#ifndef EVREC_LUA_SINK_OPTIONS_H
#define EVREC_LUA_SINK_OPTIONS_H

#include "lua/options.h"

#pragma GCC visibility push(hidden)

/* For an OPTION_ROWS of a sink's own rows, at the offset of its evrec_sink_options. */
extern const struct option sink_common_rows[];

/*
 * Raises if the sink makes no series, and the copy of its options at stack index 1, which options_read left there, has
 * an option of series. `function` names the constructor in the message.
 */
void sink_check_series(lua_State *L, const char *function, const evrec_sink_options *options);

#pragma GCC visibility pop

#endif
