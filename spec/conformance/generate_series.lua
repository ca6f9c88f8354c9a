-- Generates random traces of series. They prefer inputs on which a decision changes: few different events, so that
-- series form; events that come within a nanosecond of a tick, or of finish_time before one; events that the server has
-- forgotten, and such that it rejects. The same seed gives the same trace.
--
-- A trace that is generated `for_lua` can be run through evrec's Lua interface too: every time is a multiple of 1/64 s,
-- which a double holds exactly, and RFC 3339 in microseconds does too.

local choose = require "choose"

local SECOND = 1000000000
local FINISH, REFRESH = 360 * SECOND, 1800 * SECOND

local chance, pick, random, set, words = choose.chance, choose.pick, math.random, choose.set, choose.words

-- The values from which each field of a trace's events is picked.
local function random_vocabulary(objects)
	return {
		name = words("pod-", objects),
		namespace = pick { { "ns-1" }, { "ns-1", "ns-2" }, { "" } },
		kind = words("Kind", pick { 1, 1, 2 }),
		uid = pick { { "" }, { "", "uid" }, words("uid-", 2) },
		apiVersion = pick { { "v1" }, { "v1", "apps/v1" } },
		fieldPath = pick { { "" }, { "", "spec.containers{a}" } },
		resourceVersion = pick { { "" }, words("", 9) },
		type = pick { { "Normal" }, { "Normal", "Warning" } },
		reason = words("Reason", pick { 1, 1, 2, 3 }),
		action = pick { { "Act" }, { "Act1", "Act2" }, { "", "Act" }, { "", "Reason1" } },
		note = words("note ", pick { 1, 2, 12 }),
		reportingController = words("example.com/controller-", pick { 1, 1, 2 }),
		reportingInstance = pick { { "" }, { "i" }, { "", "i", "j" } },
		related = pick { 0, 0, 50, 100 },
	}
end

local function random_reference(v)
	local object = {}
	for _, key in ipairs { "kind", "namespace", "name", "uid", "apiVersion", "fieldPath", "resourceVersion" } do
		set(object, key, pick(v[key]))
	end
	return object
end

local function random_event(v)
	local event = { regarding = random_reference(v), related = chance(v.related) and random_reference(v) or nil }
	for _, key in ipairs { "type", "reason", "action", "reportingController", "reportingInstance" } do
		set(event, key, pick(v[key]))
	end
	return event
end

-- An occurrence of an event: its note, and what of the objects is no part of a series' key.
local function occurrence_of(template, v)
	local event = {}
	for key, value in pairs(template) do
		event[key] = value
	end
	event.note = pick(v.note)
	if chance(20) then
		local regarding = {}
		for key, value in pairs(template.regarding) do
			regarding[key] = value
		end
		regarding.fieldPath, regarding.resourceVersion = nil, nil
		set(regarding, "fieldPath", pick(v.fieldPath))
		set(regarding, "resourceVersion", pick(v.resourceVersion))
		event.regarding = regarding
	end
	return event
end

-- The time of the next step, later than `now`. `last` is when the step's event was seen last.
local function later(now, last, unit)
	local p, t = random(100), now
	if p <= 30 then
		t = now + random(SECOND // unit) * unit
	elseif p <= 50 then
		t = now + random(60) * SECOND
	elseif p <= 65 then
		t = now + random(FINISH // unit) * unit
	elseif p <= 75 then -- about a tick
		t = (now // FINISH + random(3)) * FINISH + random(-1, 1) * unit
	elseif p <= 80 then -- about a heartbeat
		t = (now // REFRESH + 1) * REFRESH + random(-1, 1) * unit
	elseif p <= 83 then -- about finish_time after the event was seen
		t = last + FINISH + random(-1, 1) * unit
	elseif p <= 86 then -- about when a rejected create may be made again
		t = last + 30 * SECOND + random(-1, 1) * unit
	elseif p <= 88 then
		t = now + random(3 * REFRESH // unit) * unit
	end
	return math.max(t, now + unit)
end

local generate = {}

--- The trace of a seed. for_lua: whether evrec's Lua interface must be able to run it.
function generate.trace(seed, for_lua)
	math.randomseed(seed)
	local unit = for_lua and SECOND // 64 or 1
	local few, steps, made, seen = {}, {}, {}, {}
	local options = { max_series = pick { 1, 2, 3, 5, 4096, 4096, 4096 } }
	local v = random_vocabulary(pick { 1, 2, 3, 8 })
	for i = 1, pick { 1, 2, 2, 3, 5, 8 } do
		few[i] = random_event(v)
	end
	local now, forgets, flushes, rejects = 0, pick { 0, 0, 5, 20 }, pick { 0, 0, 5 }, pick { 0, 0, 0, 5 }
	local rejecting = false
	local function add(step)
		step.id, step.t = #steps + 1, ("%d"):format(now)
		steps[step.id] = step
	end
	for _ = 1, pick(for_lua and { 15, 25 } or { 10, 40, 100, 200 }) do
		local event = pick(few)
		now = later(now, seen[event] or now, unit)
		local p = random() * 100
		if p < forgets and #made > 0 then
			add { forget = made[random(math.max(1, #made - 4), #made)] }
		elseif p > 100 - flushes then
			add { flush = true }
		elseif p > 100 - flushes - (rejecting and 30 or rejects) then
			rejecting = not rejecting
			add { reject = rejecting }
		elseif p > 85 then -- only time passes
			add {}
		else
			add { event = occurrence_of(event, v) }
			made[#made + 1], seen[event] = #steps, now
		end
	end
	now = (now // REFRESH + 1) * REFRESH
	add {}
	return { options = options, steps = steps }
end

return generate
