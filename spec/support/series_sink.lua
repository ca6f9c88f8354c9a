-- Shared by specs of series: a sink in Lua in the new style under a fake clock, and the states that watchers are told.
local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"
local assert = require "luassert"

local series_sink = {}

local pod = fixtures.pod()

--- A broadcaster with a sink of series, which keeps its writes, and a list of what it dropped.
function series_sink.setup(sink_options, options)
	local s = { writes = {}, drops = {}, answers = {}, clock = evrec.fake_clock(fixtures.now) }
	local function keep(verb)
		return function(event, patch)
			s.writes[#s.writes + 1] = { verb = verb, event = event:to_table(), patch = patch and cjson.decode(patch) }
			local answer = table.remove(s.answers, 1)
			if answer then
				return answer()
			end
		end
	end
	local all = { create = keep "create", patch = keep "patch", api = "events.k8s.io/v1" }
	for name, value in pairs(sink_options or {}) do
		all[name] = value
	end
	all.patch = all.patch or nil
	options = options or {}
	options.clock, options.on_error = s.clock, false
	options.on_drop = function(event, why) s.drops[#s.drops + 1] = { event = event:to_table(), why = why } end
	s.broadcaster = evrec.broadcaster(options)
	s.watch = s.broadcaster:start_recording_to_sink(evrec.sink.lua(all))
	s.recorder = s.broadcaster:new_recorder { component = "spec", host = "node-1" }

	-- Records events about the pod, by default one.
	function s.record(n, reason, message)
		for _ = 1, n or 1 do
			assert.is_true(s.recorder:event(pod, "Warning", reason or "BackOff", message or "m"))
		end
	end

	-- Sets the clock to so many seconds after the start, and polls.
	function s.at(seconds)
		s.clock:set(fixtures.now + seconds)
		s.broadcaster:poll()
	end

	-- Returns the counters of the sink. The equations hold.
	function s.stats()
		local stats = s.broadcaster:stats()
		assert.is_nil(fixtures.fault(stats))
		return stats.sinks[1]
	end

	-- Returns the writes since the last call as words: "create", or "patch", the count and the state.
	local seen = 0
	function s.news()
		local words = {}
		while seen < #s.writes do
			seen = seen + 1
			local write = s.writes[seen]
			local series = write.patch and write.patch.series
			words[#words + 1] = series and ("patch %d %s"):format(series.count, series.state) or write.verb
		end
		return words
	end

	return s
end

--- Returns the states of series that a broadcaster tells its watchers, as a list that grows.
function series_sink.states_of(broadcaster)
	local states = {}
	broadcaster:start_event_watcher(function(event)
		local series = event.series
		if series then
			states[#states + 1] = ("%s %s %d"):format(event.reason, series.state, series.count)
		end
	end)
	return states
end

return series_sink
