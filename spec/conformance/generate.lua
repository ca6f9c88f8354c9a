-- Generates random traces. They prefer inputs on which a correlator's decision changes: small caches, few tokens,
-- events that come within a nanosecond of the end of an interval, and messages that repeat. The same seed gives the
-- same trace.
--
-- A trace that is generated `for_lua` can be run through evrec's Lua interface too: every object has a kind, no answer
-- is by handle, and every time is a multiple of 250 ms, which a double holds exactly.

local choose = require "choose"
local trace = require "trace"

local SECOND = 1000000000
local T0 = 1700000000 * SECOND
local YEAR = 365 * 86400 * SECOND
local END = 8000000000 * SECOND -- the latest time of an event; 64 bits hold 9223372036 s

local chance, pick, random, set, words = choose.chance, choose.pick, math.random, choose.set, choose.words

local function random_options()
	return {
		lru_cache_size = pick { 1, 2, 2, 2, 3, 4, 5, 8, 8, 16, 64, 256, 4096 },
		burst_size = pick { 1, 2, 3, 5, 25, 25, 1000 },
		-- A qps that is a power of two gives a wait of whole nanoseconds.
		qps = pick { 1 / 300, 1 / 300, 1 / 3, 1 / 64, 0.125, 0.25, 0.01, 0.1, 1.0, 7.0, 10.0, 1e3, 1e9, 1e-9 },
		max_events = pick { 1, 2, 3, 4, 5, 10, 10 },
		max_interval_in_seconds = pick { 1, 2, 10, 60, 600, 600 },
		key_func = chance(10),
		message_func = chance(10),
		spam_key_func = chance(10),
	}
end

-- Messages with unusual characters, or that look like the message of an aggregate.
local strange = {
	"", " ", "<a & b>", '"quoted" \\ and \t', "caf\u{e9} \u{2028} \u{1f600}", "a\0b", "a\0c", ("long"):rep(20),
	"(combined from similar events): m1", "(combined from similar events): m2", "together: m1",
}

-- The values from which each field of a trace's events is picked.
local function random_vocabulary(objects, filling)
	if not filling and chance(10) then
		-- Joined without a separator, these values often give equal keys.
		local few = { "", "a", "b", "ab", "ba", "aa" }
		return setmetatable({ kind = { "a", "b", "ab" } }, { __index = function() return few end })
	end
	local v = {
		name = words("pod-", objects),
		namespace = words("ns-", pick { 1, 1, 2 }),
		kind = words("Kind", pick { 1, 1, 2 }),
		uid = pick { { "" }, words("uid-", 2), { "", "uid" } },
		apiVersion = pick { { "v1" }, { "v1", "apps/v1" } },
		fieldPath = pick { { "" }, { "", "spec.containers{a}", "spec.containers{b}" } },
		type = pick { { "Normal" }, { "Normal", "Warning" } },
		reason = words("Reason", pick { 1, 1, 2, 3 }),
		message = words("m", pick { 1, 2, 3, 5, 12, 30 }),
		component = words("component-", pick { 1, 1, 2 }),
		host = pick { { "" }, words("host-", 2) },
		controller = pick { { "" }, { "c" }, { "c", "d" } },
		instance = pick { { "" }, { "i" }, { "i", "j" } },
		action = pick { { "" }, { "Act" } },
	}
	if chance(20) then
		for _ = 1, random(4) do
			table.insert(v.message, pick(strange))
		end
	end
	return v
end

local function random_event(v)
	local object, source, event = {}, {}, {}
	for _, key in ipairs { "kind", "namespace", "name", "uid", "apiVersion", "fieldPath" } do
		set(object, key, pick(v[key]))
	end
	set(source, "component", pick(v.component))
	set(source, "host", pick(v.host))
	for _, key in ipairs { "type", "reason", "message", "action" } do
		set(event, key, pick(v[key]))
	end
	set(event, "reportingComponent", pick(v.controller))
	set(event, "reportingInstance", pick(v.instance))
	event.involvedObject, event.source = object, source
	return event
end

-- An occurrence of an event at the time `now`. Occurrences for Lua have fewer fields, which keeps the vectors short.
local function occurrence_of(template, id, now, for_lua)
	local event = {}
	for key, value in pairs(template) do
		event[key] = value
	end
	event.metadata = { namespace = template.involvedObject.namespace or "default" }
	if not chance(2) then
		event.metadata.name = "n" .. id
	end
	if chance(2) then
		event.metadata.resourceVersion = "given-" .. id
	end
	if chance(for_lua and 20 or 98) then
		event.count = chance(for_lua and 80 or 96) and 1 or random(2, 1000)
	end
	if chance(for_lua and 60 or 90) then
		event.firstTimestamp, event.lastTimestamp = trace.time(now), trace.time(now)
	elseif chance(60) then
		event.firstTimestamp = trace.time(now - random(0, 7200) * SECOND)
		event.lastTimestamp = trace.time(now // SECOND * SECOND)
	end
	return event
end

-- The fields by which the spam filter counts an event, and with the reason those by which the aggregator does. This
-- approximates both keys well enough to find the time at which an interval ends or a token comes.
local function key_of(event, with_reason)
	local o, s = event.involvedObject, event.source
	return table.concat({ o.kind or "", o.name or "", o.namespace or "", o.uid or "", s.component or "",
		event.type or "", with_reason and event.reason or "" }, "\1")
end

-- The time of the next event. A clock is { options =, now =, unit =, last = }. All times are multiples of `unit`, and
-- `last` maps a key of key_of to the time of its last event.
local function tick(clock, event)
	local spam_key, aggregate_key, unit = key_of(event), key_of(event, true), clock.unit
	local interval, p = clock.options.max_interval_in_seconds * SECOND, random(100)
	local now = clock.now
	if p <= 10 then
		now = now + unit
	elseif p <= 25 then
		now = now + random(0, SECOND // unit) * unit
	elseif p <= 39 then
		now = now + random(0, 5) * SECOND
	elseif p <= 44 then
		now = now + random(0, 2 * interval // unit) * unit
	elseif p <= 54 then
		now = (clock.last[aggregate_key] or now) + interval + random(-1, 1) * unit
	elseif p <= 64 then
		local wait = math.min(random(3) / clock.options.qps * 1e9, 1e18)
		now = (clock.last[spam_key] or now) + math.floor(wait) // unit * unit + random(-1, 2) * unit
	elseif p <= 69 then
		now = now - pick { unit, random(0, SECOND // unit) * unit, random(0, 10) * SECOND, interval, interval + unit }
	elseif p <= 70 and chance(20) then
		now = now + pick { -YEAR, YEAR, 86400 * SECOND }
	end -- else the time stays
	clock.now = math.max(-END, math.min(now, END))
	clock.last[spam_key], clock.last[aggregate_key] = clock.now, clock.now
	return clock.now
end

local Builder = {}
Builder.__index = Builder

function Builder:add(now, step)
	step.id, step.t = #self.steps + 1, ("%d"):format(now)
	self.steps[step.id] = step
end

function Builder:add_answer(to, now)
	self:add(now, {
		answer = to,
		handle = chance(self.by_handle),
		resourceVersion = tostring(1000 + to),
		name = chance(5) and "renamed-" .. #self.steps or nil,
	})
end

-- Each of the following functions returns an iterator over a trace's events.

-- New events, and in 40 % of the steps one of the last nine events again.
local function often_repeated(v)
	local seen = {}
	return function()
		local repeated = #seen > 0 and chance(40)
		seen[#seen + 1] = repeated and seen[random(math.max(1, #seen - 8), #seen)] or random_event(v)
		return seen[#seen]
	end
end

-- A few events, in random order.
local function one_of_a_few(v)
	local all = {}
	for i = 1, pick { 3, 6, 9, 12, 15 } do
		all[i] = random_event(v)
	end
	return function() return pick(all) end
end

-- As many events as just fill a cache, in turn. After a while one further event comes, which evicts an entry.
local function filling_a_cache(v, capacity)
	local all, step, turn = {}, 0, capacity + capacity // 8 + 1
	return function()
		step = step + 1
		local i = step == turn and capacity + 1 or (step - (step < turn and 1 or 2)) % capacity + 1
		all[i] = all[i] or random_event(v)
		all[i].involvedObject.name = v.name[i]
		return all[i]
	end
end

local generate = {}

--- The trace of a seed. for_lua: whether evrec's Lua interface must be able to run it.
function generate.trace(seed, for_lua)
	math.randomseed(seed)
	local options = random_options()
	-- A random choice of events does not fill a large cache. Only one seed in 250 fills the largest, as that is slow.
	local largest = not for_lua and seed % 250 == 0
	options.lru_cache_size = largest and 4096 or options.lru_cache_size
	local capacity = options.lru_cache_size
	local filling = largest or (not for_lua and capacity >= 64 and capacity < 4096 and chance(15))
	local objects = filling and capacity + 1 or pick { 1, 1, 2, 3, 5, 10, math.min(capacity + 1, 64) }
	local length = filling and capacity + capacity // 4 or pick(for_lua and { 20, 25, 30, 35 } or { 12, 40, 100, 300 })
	local v = random_vocabulary(objects, filling)
	local next_event = (filling and filling_a_cache or for_lua and one_of_a_few or often_repeated)(v, capacity)
	local clock = {
		options = options, last = {}, unit = for_lua and SECOND // 4 or 1,
		now = for_lua and T0 or pick { T0, T0, T0, T0, T0 + 1, T0, T0, 0, -T0 // 2 },
	}
	local answers, updates = pick { "none", "none", "at once", "late" }, not filling and chance(30)
	local t = setmetatable({ options = options, steps = {}, by_handle = for_lua and 0 or pick { 0, 50, 100 } }, Builder)
	for _ = 1, length do
		local event, id = next_event(), #t.steps + 1
		local now = tick(clock, event)
		t:add(now, { event = occurrence_of(event, id, now, for_lua) })
		if answers == "at once" and chance(80) then
			t:add_answer(id, now)
		elseif answers == "late" and chance(30) then
			t:add_answer(random(math.max(1, id - 20), id), now)
		end
		if updates and chance(5) then
			local update = occurrence_of(for_lua and next_event() or random_event(v), #t.steps + 1, now, for_lua)
			update.metadata.name = "n" .. #t.steps + 1
			t:add(now, { update = update })
		end
	end
	return { options = options, steps = t.steps }
end

return generate
