-- Thirty days by a fake clock: Lua's memory is the same every evening. spec/unit/recorder/soak_test.c checks the memory
-- of the core.
local evrec = require "evrec"
local fixtures = require "fixtures"

local DAYS, WARM, STEP, EVENTS = 30, 7, 1200, 4
local hour, day = 3600, 86400

-- Answers of the server, each for three hours.
local answers = {
	function(event) return event end,
	function() return nil, 503, 5 end,
	function(event) return { metadata = { name = event.metadata.name, resourceVersion = "7" } } end,
	function() return nil, 422 end,
	function() end,
	function() return nil, 403 end,
	function() error "boo" end,
	function() return true end,
}

local function start_sink(s)
	local function answer(event)
		s.writes = s.writes + 1
		return s.answer(event)
	end
	return s.broadcaster:start_recording_to_sink(
		evrec.sink.lua { create = answer, patch = answer, max_pending = 50, max_age = 1800 },
		{ correlator = { lru_cache_size = 100, key_func = function(event)
			return event.involvedObject.name, event.message
		end } })
end

local function begin()
	local s = { random = fixtures.random(), clock = evrec.fake_clock(fixtures.now), pod = 0, answer = answers[1],
		writes = 0, drops = 0, errors = 0, seen = 0 }
	s.broadcaster = evrec.broadcaster {
		clock = s.clock,
		on_drop = function(event, why) s.drops = s.drops + #why * #event.message end,
		on_error = function() s.errors = s.errors + 1 end,
	}
	s.recorder = s.broadcaster:new_recorder { component = "spec", host = "node-1" }
	start_sink(s)
	s.queue = s.broadcaster:watch { queue_length = 20 }
	return s
end

local function record(s)
	if s.random(10) == 1 then
		s.pod = s.pod + 1
	end
	local reason = s.random(2) == 1 and "BackOff" or "Unhealthy"
	assert.is_true(s.recorder:eventf(fixtures.pod(("web-%06d"):format(s.pod)), "Warning", reason, "%s, the %03dth",
		"probe failed", s.random(999)))
end

local function step(s)
	for _ = 1, EVENTS do
		record(s)
	end
	s.clock:advance(STEP)
	s.broadcaster:poll()
	assert.is_nil(fixtures.fault(s.broadcaster:stats()))
end

-- Ends a day: writes all events, reads the queue, and replaces the watcher. Returns the kilobytes of Lua's memory.
local function end_day(s)
	s.answer = answers[1]
	for _ = 1, 5 do
		s.clock:advance(hour)
		s.broadcaster:poll()
	end
	for _, sink in ipairs(s.broadcaster:stats().sinks) do
		assert.equal(0, sink.pending)
	end
	assert.truthy(#s.broadcaster:explain()[1].suppressed > 0)
	assert.truthy(#s.broadcaster:metrics() > 0)
	while s.queue:next() do
		s.seen = s.seen + 1
	end
	if s.watcher then
		s.watcher:stop()
	end
	s.watcher = s.broadcaster:start_event_watcher(function(event) s.seen = s.seen + #event.message end)
	s.broadcaster:poll()
	collectgarbage()
	collectgarbage()
	return collectgarbage "count"
end

describe("thirty days of events", function()
	before_each(fixtures.interpret)

	it("do not let Lua's memory grow", function()
		local s, counts = begin(), {}
		for i = 1, DAYS do
			for at = 0, day - 1, STEP do
				s.answer = answers[math.floor(at / hour / 3) % #answers + 1]
				step(s)
			end
			counts[i] = end_day(s)
		end
		local grown = counts[DAYS] - counts[WARM]
		assert.truthy(grown < 4, ("grown by %.1f KB"):format(grown))
		assert.truthy(s.writes > 1000 and s.drops > 1000 and s.errors > 10 and s.seen > 1000)
		s.broadcaster:shutdown(0)
	end)
end)
