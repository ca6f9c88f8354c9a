-- Traces at random, weighted towards where a correlator decides: small caches, few tokens, intervals hit to the
-- nanosecond, messages that come back. The same trace from the same seed.
--
-- A tame trace is one that evrec's Lua interface can follow: every object has a kind, no answer comes by a handle, and
-- a double holds every time.

local trace = require "trace"

local SECOND = 1000000000
local T0 = 1700000000 * SECOND
local YEAR = 365 * 86400 * SECOND
local END = 8000000000 * SECOND -- short of what 64 bits hold

local random = math.random

local function chance(percent)
	return random() * 100 < percent
end

local function pick(list)
	return list[random(#list)]
end

local function words(prefix, count)
	local out = {}
	for i = 1, count do
		out[i] = prefix .. i
	end
	return out
end

local function options_of()
	return {
		lru_cache_size = pick { 1, 2, 2, 2, 3, 4, 5, 8, 8, 16, 64, 256, 4096 },
		burst_size = pick { 1, 2, 3, 5, 25, 25, 1000 },
		-- With powers of two the waits are whole nanoseconds.
		qps = pick { 1 / 300, 1 / 300, 1 / 3, 1 / 64, 0.125, 0.25, 0.01, 0.1, 1.0, 7.0, 10.0, 1e3, 1e9, 1e-9 },
		max_events = pick { 1, 2, 3, 4, 5, 10, 10 },
		max_interval_in_seconds = pick { 1, 2, 10, 60, 600, 600 },
		key_func = chance(10),
		message_func = chance(10),
		spam_key_func = chance(10),
	}
end

local strange = {
	"", " ", "<a & b>", '"quoted" \\ and \t', "caf\u{e9} \u{2028} \u{1f600}", "a\0b", "a\0c", ("long"):rep(20),
	"(combined from similar events): m1", "(combined from similar events): m2", "together: m1",
}

-- What the fields of a trace's events are taken from.
local function vocabulary_of(objects, filling)
	if not filling and chance(10) then
		-- Fields that joined without a separator are often the same.
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

-- Fields that are empty are left out.
local function set(object, key, value)
	if value ~= "" then
		object[key] = value
	end
end

local function event_of(v)
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

-- An occurrence of `what` at a time; tame ones are shorter.
local function dress(what, id, now, tame)
	local event = {}
	for key, value in pairs(what) do
		event[key] = value
	end
	event.metadata = { namespace = what.involvedObject.namespace or "default" }
	if not chance(2) then
		event.metadata.name = "n" .. id
	end
	if chance(2) then
		event.metadata.resourceVersion = "given-" .. id
	end
	if chance(tame and 20 or 98) then
		event.count = chance(tame and 80 or 96) and 1 or random(2, 1000)
	end
	if chance(tame and 60 or 90) then
		event.firstTimestamp, event.lastTimestamp = trace.time(now), trace.time(now)
	elseif chance(60) then
		event.firstTimestamp = trace.time(now - random(0, 7200) * SECOND)
		event.lastTimestamp = trace.time(now // SECOND * SECOND)
	end
	return event
end

-- What of an event begins an interval (reason), or takes a token; close enough to aim at the boundaries.
local function subject(event, reason)
	local o, s = event.involvedObject, event.source
	return table.concat({ o.kind or "", o.name or "", o.namespace or "", o.uid or "", s.component or "",
		event.type or "", reason and event.reason or "" }, "\1")
end

-- The time of the next event; a clock is { options =, now =, unit =, last = of what subject() tells }.
local function tick(clock, event)
	local about, similar, unit = subject(event), subject(event, true), clock.unit
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
		now = (clock.last[similar] or now) + interval + random(-1, 1) * unit
	elseif p <= 64 then
		local wait = math.min(random(3) / clock.options.qps * 1e9, 1e18)
		now = (clock.last[about] or now) + math.floor(wait) // unit * unit + random(-1, 2) * unit
	elseif p <= 69 then
		now = now - pick { unit, random(0, SECOND // unit) * unit, random(0, 10) * SECOND, interval, interval + unit }
	elseif p <= 70 and chance(20) then
		now = now + pick { -YEAR, YEAR, 86400 * SECOND }
	end -- else at the same time
	clock.now = math.max(-END, math.min(now, END))
	clock.last[about], clock.last[similar] = clock.now, clock.now
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

-- What happens next: often what did lately.
local function by_chance(v)
	local seen = {}
	return function()
		local lately = #seen > 0 and chance(40)
		seen[#seen + 1] = lately and seen[random(math.max(1, #seen - 8), #seen)] or event_of(v)
		return seen[#seen]
	end
end

-- One of a few.
local function by_choice(v)
	local all = {}
	for i = 1, pick { 3, 6, 9, 12, 15 } do
		all[i] = event_of(v)
	end
	return function() return pick(all) end
end

-- Round and round what just fits into a cache; then there is one more.
local function round_and_round(v, capacity)
	local all, step, turn = {}, 0, capacity + capacity // 8 + 1
	return function()
		step = step + 1
		local i = step == turn and capacity + 1 or (step - (step < turn and 1 or 2)) % capacity + 1
		all[i] = all[i] or event_of(v)
		all[i].involvedObject.name = v.name[i]
		return all[i]
	end
end

local generate = {}

--- The trace of a seed, with options of its own.
function generate.trace(seed, tame)
	math.randomseed(seed)
	local options = options_of()
	-- Large caches are not filled by chance, the largest by no other seeds than these.
	local largest = not tame and seed % 250 == 0
	options.lru_cache_size = largest and 4096 or options.lru_cache_size
	local capacity = options.lru_cache_size
	local filling = largest or (not tame and capacity >= 64 and capacity < 4096 and chance(15))
	local objects = filling and capacity + 1 or pick { 1, 1, 2, 3, 5, 10, math.min(capacity + 1, 64) }
	local length = filling and capacity + capacity // 4 or pick(tame and { 20, 25, 30, 35 } or { 12, 40, 100, 300 })
	local v = vocabulary_of(objects, filling)
	local next_event = (filling and round_and_round or tame and by_choice or by_chance)(v, capacity)
	local clock = {
		options = options, last = {}, unit = tame and SECOND // 4 or 1,
		now = tame and T0 or pick { T0, T0, T0, T0, T0 + 1, T0, T0, 0, -T0 // 2 },
	}
	local answers, updates = pick { "none", "none", "at once", "late" }, not filling and chance(30)
	local t = setmetatable({ options = options, steps = {}, by_handle = tame and 0 or pick { 0, 50, 100 } }, Builder)
	for _ = 1, length do
		local what, id = next_event(), #t.steps + 1
		local now = tick(clock, what)
		t:add(now, { event = dress(what, id, now, tame) })
		if answers == "at once" and chance(80) then
			t:add_answer(id, now)
		elseif answers == "late" and chance(30) then
			t:add_answer(random(math.max(1, id - 20), id), now)
		end
		if updates and chance(5) then
			local event = dress(tame and next_event() or event_of(v), #t.steps + 1, now, tame)
			event.metadata.name = "n" .. #t.steps + 1
			t:add(now, { update = event })
		end
	end
	return { options = options, steps = t.steps }
end

return generate
