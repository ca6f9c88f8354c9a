-- evrec.testing: a recorder for specs, which lists what was recorded. The recorder, its broadcaster and their checks
-- are the real ones; only the clock is fake, and nothing is written anywhere.
local core = require "evrec.core"
local refuse_colon = require "evrec.options".refuse_colon

local testing = {}

local start = 1700000000 -- 2023-11-14T22:13:20Z

---@class evrec.testing.Recorder
local Recorder = {}

local function plain(event)
	local metadata, source = event.metadata, event.source or {}
	return {
		type = event.type, reason = event.reason, message = event.message or "", action = event.action,
		object = event.involvedObject, related = event.related,
		labels = metadata.labels, annotations = metadata.annotations,
		component = source.component, host = source.host,
		instance = event.reportingInstance ~= source.host and event.reportingInstance or nil,
		series = event.series,
		timestamp = core.event_time(event),
	}
end

function Recorder:strings()
	local strings = {}
	for i, event in ipairs(self.events) do
		local series = event.series
		strings[i] = ("%s %s %s%s"):format(event.type, event.reason, event.message,
			series and series.state and (" (series %s, %d)"):format(series.state, series.count) or "")
	end
	return strings
end

function Recorder:clear()
	self.events = {}
end

-- Returns a method of the recorder as one of `t`. With another self it refuses the call, as the recorder's own method
-- does.
local function forwarded(t, method)
	return function(self, ...)
		return method(rawequal(self, t) and t.recorder or self, ...)
	end
end

local function index(t, key)
	if Recorder[key] then
		return Recorder[key]
	end
	local method = t.recorder[key]
	if type(method) == "function" then
		rawset(t, key, forwarded(t, method))
	end
	return rawget(t, key)
end

-- Returns a copy of a table of options, or of none.
local function copy(options, what)
	local all = {}
	if options ~= nil and type(options) ~= "table" then
		error(("%sexpected a table of options, got %s"):format(what, type(options)), 0)
	end
	for key, value in next, options or {} do
		all[key] = value
	end
	return all
end

-- Calls a function of the core. Its messages then name no position inside of this file.
local function call(f, ...)
	local ok, result = pcall(f, ...)
	if not ok then
		error(result, 0)
	end
	return result
end

local function make(options)
	refuse_colon(options)
	local of_recorder = copy(options, "")
	local of_broadcaster = copy(of_recorder.broadcaster, "option 'broadcaster': ")
	of_recorder.broadcaster = nil
	of_broadcaster.clock = of_broadcaster.clock or core.fake_clock(start)
	local t = { clock = of_broadcaster.clock, broadcaster = call(core.broadcaster, of_broadcaster), events = {} }
	t.recorder = assert(call(t.broadcaster.new_recorder, t.broadcaster, of_recorder))
	assert(t.broadcaster:start_event_watcher(function(event) t.events[#t.events + 1] = plain(event) end))
	return setmetatable(t, { __index = index })
end

--- Makes the recorder. Raises on misuse.
---@param options? evrec.testing.Options
---@return evrec.testing.Recorder
function testing.recorder(options)
	local ok, result = pcall(make, options)
	if not ok then
		error("evrec.testing.recorder: " .. tostring(result), 2)
	end
	return result
end

return testing
