rockspec_format = "3.0"
package = "evrec"
version = "scm-1"
-- For `luarocks make` in a checkout.
source = {
	url = ".",
}
description = {
	summary = "Kubernetes event recorder",
	detailed = [[
Records Kubernetes Events from Lua as client-go does from Go: counts duplicates, combines similar events, limits what one
object may emit, and writes to the API server in the background. A recording call never blocks and never raises.]],
	license = "MIT",
}
dependencies = {
	"lua >= 5.1",
	"lua-cjson",
}
external_dependencies = {
	-- Debian's curl headers lie where LuaRocks does not look; the compiler does.
	CURL = { library = "curl" },
	JANSSON = { header = "jansson.h", library = "jansson" },
	XXHASH = { header = "xxhash.h" },
}
build = {
	type = "builtin",
	modules = {
		evrec = "lua/evrec/init.lua",
		["evrec.kubeconfig"] = "lua/evrec/kubeconfig.lua",
		["evrec.kubernetes"] = "lua/evrec/kubernetes.lua",
		["evrec.logging"] = "lua/evrec/logging.lua",
		["evrec.meta"] = "lua/evrec/meta.lua",
		["evrec.metrics"] = "lua/evrec/metrics.lua",
		["evrec.core"] = {
			sources = {
				"csrc/base/bucket.c",
				"csrc/base/buf.c",
				"csrc/base/clock.c",
				"csrc/base/error.c",
				"csrc/base/lru.c",
				"csrc/base/memory.c",
				"csrc/base/rfc3339.c",
				"csrc/base/utf8.c",
				"csrc/base/wait.c",
				"csrc/event/check.c",
				"csrc/event/fields.c",
				"csrc/event/json.c",
				"csrc/event/key.c",
				"csrc/event/name.c",
				"csrc/event/visit.c",
				"csrc/correlate/aggregator.c",
				"csrc/correlate/correlator.c",
				"csrc/correlate/logger.c",
				"csrc/deliver/answer.c",
				"csrc/deliver/credentials.c",
				"csrc/deliver/entry_list.c",
				"csrc/deliver/file.c",
				"csrc/deliver/heap.c",
				"csrc/deliver/http.c",
				"csrc/deliver/http_options.c",
				"csrc/deliver/http_transfer.c",
				"csrc/deliver/outbox.c",
				"csrc/deliver/outbox_answer.c",
				"csrc/deliver/outbox_limits.c",
				"csrc/deliver/outbox_take.c",
				"csrc/deliver/places.c",
				"csrc/deliver/reports.c",
				"csrc/deliver/retry.c",
				"csrc/deliver/sender.c",
				"csrc/deliver/sender_list.c",
				"csrc/deliver/sender_round.c",
				"csrc/deliver/table.c",
				"csrc/flow/broadcaster.c",
				"csrc/flow/call.c",
				"csrc/flow/ending.c",
				"csrc/flow/lane.c",
				"csrc/flow/recorder.c",
				"csrc/flow/sink.c",
				"csrc/flow/stats.c",
				"csrc/flow/watch.c",
				"csrc/flow/write.c",
				"csrc/lua/box.c",
				"csrc/lua/broadcaster.c",
				"csrc/lua/callback.c",
				"csrc/lua/clock.c",
				"csrc/lua/correlator.c",
				"csrc/lua/event.c",
				"csrc/lua/event_read.c",
				"csrc/lua/module.c",
				"csrc/lua/options.c",
				"csrc/lua/recorder.c",
				"csrc/lua/recording.c",
				"csrc/lua/reference.c",
				"csrc/lua/sink.c",
				"csrc/lua/stats.c",
				"csrc/lua/watch.c",
			},
			libraries = { "curl", "jansson", "pthread" },
			libdirs = { "$(CURL_LIBDIR)", "$(JANSSON_LIBDIR)" },
			incdirs = { "csrc", "$(JANSSON_INCDIR)", "$(XXHASH_INCDIR)" },
		},
	},
}
