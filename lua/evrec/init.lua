-- The module evrec, a Kubernetes event recorder. lua/evrec/meta.lua documents it.
local core = require "evrec.core"

local version = "0.1.0"

-- Checked before the other Lua files are loaded, as they may call functions that another library lacks.
if core.version ~= version then
	error(("evrec: the Lua files are of version %s, the library evrec.core is of version %s. A process keeps the "
		.. "library that it has loaded: restart it, a reload is not enough"):format(version, tostring(core.version)), 0)
end

local host = require "evrec.host"
local logging = require "evrec.logging"
local metrics = require "evrec.metrics"
local options = require "evrec.options"
local polling = require "evrec.polling"
local testing = require "evrec.testing"

-- A function that loads its file at the first call. Not for functions that are called while requests are served: the
-- process may be in a chroot by then.
local function lazy(file, name)
	return function(...)
		return require(file)[name](...)
	end
end

local function reading(name)
	return lazy("evrec.reading", name)
end

local logger = host.logger()
if logger then
	core.set_logger(logger)
end
local take_over = polling.of(host.name())
if take_over then
	core.set_host(take_over)
end

local methods = core.broadcaster_methods
methods.start_logging = logging.start
methods.start_structured_logging = logging.start_structured
methods.metrics = metrics.one

core.source_methods.query = reading "query"
core.source_methods.watch = reading "watch"
core.source_methods.suppressions = reading "suppressions"
core.source_methods.occurrences = reading "occurrences"

local function on_signal(signals)
	local program = host.name()
	local ok, result, message, name = pcall(core.on_signal, signals, program ~= "lua" and program or nil)
	if not ok then
		error(result, 2)
	end
	return result, message, name
end

local evrec = {
	_VERSION = version,
	host = host.name,
	reference = core.reference,
	event = core.event,
	clock = core.clock,
	fake_clock = core.fake_clock,
	correlator = core.correlator,
	replay = core.replay,
	broadcaster = core.broadcaster,
	on_signal = on_signal,
	metrics = metrics.all,
	store = reading "store",
	lines = reading "lines",
	cluster = reading "cluster",
	testing = testing,
	sink = {
		kubernetes = lazy("evrec.kubernetes", "sink"),
		file = core.sink_file,
		store = core.sink_store,
		otlp = lazy("evrec.otlp", "sink"),
		lua = core.sink_lua,
	},
}

options.set_modules { evrec, evrec.sink, evrec.testing }

return evrec
