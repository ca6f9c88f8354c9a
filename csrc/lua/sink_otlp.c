#include "evrec_otlp.h"

#include "lua/drive.h"
#include "lua/options.h"
#include "lua/sink.h"
#include "lua/sink_options.h"

#define AT(member) offsetof(evrec_otlp_options, member)

static const struct option encoding_words[] = {
	{ "protobuf", OPTION_VALUE, EVREC_OTLP_PROTOBUF, 0, 0, NULL, false },
	{ "json", OPTION_VALUE, EVREC_OTLP_JSON, 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

static const struct option compression_words[] = {
	{ "gzip", OPTION_VALUE, EVREC_OTLP_GZIP, 0, 0, NULL, false },
	{ "none", OPTION_VALUE, EVREC_OTLP_NONE, 0, 0, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

/* Offsets from the struct, as batch is no struct of its own. */
static const struct option batch_rows[] = {
	{ "max", OPTION_SIZE, AT(batch_max), 1, 65536, NULL, false },
	{ "bytes", OPTION_SIZE, AT(batch_bytes), 1024, 16 << 20, NULL, false },
	{ "delay", OPTION_DURATION, AT(batch_delay), 0, 3600, NULL, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

/* ca_file, client_certificate and client_key are the texts of the files here: lua/evrec/otlp.lua has read them. */
static const struct option otlp_rows[] = {
	{ "endpoint", OPTION_STRING, AT(endpoint), 1, 0, NULL, false },
	{ "headers", OPTION_MAP, AT(headers), 0, 0, NULL, false },
	{ "encoding", OPTION_WORD, AT(encoding), 0, 0, encoding_words, false },
	{ "compression", OPTION_WORD, AT(compression), 0, 0, compression_words, false },
	{ "timeout", OPTION_DURATION, AT(timeout), 0, 3600, NULL, false },
	{ "batch", OPTION_TABLE, 0, 0, 0, batch_rows, false },
	{ "min_interval", OPTION_DURATION, AT(min_interval), 0, 1e9, NULL, false },
	{ "resource", OPTION_MAP, AT(resource), 0, 0, NULL, false },
	{ "ca_file", OPTION_STRING, AT(ca), 0, 0, NULL, false },
	{ "client_certificate", OPTION_STRING, AT(client_certificate), 0, 0, NULL, false },
	{ "client_key", OPTION_STRING, AT(client_key), 0, 0, NULL, false },
	{ "insecure_skip_tls_verify", OPTION_BOOLEAN, AT(insecure_skip_tls_verify), 0, 0, NULL, false },
	{ "common", OPTION_ROWS, AT(common), 0, 0, sink_common_rows, false },
	{ NULL, OPTION_ROWS, 0, 0, 0, NULL, false },
};

int sink_new_otlp(lua_State *L)
{
	const char *function = "evrec.sink.otlp";
	evrec_otlp_options options;
	evrec_sink **slot;
	evrec_error err;

	lua_settop(L, 2);
	evrec_otlp_options_init(&options);
	options.resolve_early = lua_toboolean(L, 2) != 0;
	drive_refuse_thread(L, function, "sinks have none; use the option 'drive' of evrec.broadcaster");
	options_read(L, 1, function, otlp_rows, &options, 0);
	sink_check_series(L, function, &options.common);
	slot = sink_push(L);
	*slot = evrec_sink_otlp(&options, &err);
	return *slot != NULL ? 1 : options_refused(L, function, &err);
}
