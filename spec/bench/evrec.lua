-- Runs one workload through evrec, or through the floor, and prints what came of it.
--
-- usage: evrec.lua WAY WORKLOAD AMOUNT    (README.md says which there are)
local bench = require "bench"

local OBJECTS, MESSAGES = 8192, 4096
local way, workload, amount = ...

local objects, messages = { bench.object_of(0) }, { bench.MESSAGE }
if workload == "similar" then
	for i = 1, MESSAGES do
		messages[i] = ("Readiness probe failed: HTTP probe failed with statuscode: 503, try %04d"):format(i - 1)
	end
elseif workload == "unique" then
	for i = 1, OBJECTS do
		objects[i] = bench.object_of(i - 1)
	end
end

local options = { burst_size = workload ~= "limited" and 1000000000 or nil }

-- Objects and messages in turn, by a method that is called as recorder:event is.
local function recording(recorder, poll)
	local object, message = 0, 0
	return function()
		local o, m, os, ms = object, message, #objects, #messages
		for _ = 1, bench.BATCH do
			o = o == os and 1 or o + 1
			m = m == ms and 1 or m + 1
			recorder:event(objects[o], bench.TYPE, bench.REASON, messages[m])
		end
		object, message = o, m
		poll()
	end
end

-- Each gives a function that runs a batch, and one that tells how many were created, patched and skipped.
local ways = {}

function ways.floor()
	return recording(bench.floor(), function() end), function() return 0, 0, 0 end
end

function ways.recorder()
	local recorder, poll, outcome = bench.recorder(options)
	return recording(recorder, poll), outcome
end

function ways.reference()
	local evrec = require "evrec"
	for i, object in ipairs(objects) do
		objects[i] = evrec.reference(object)
	end
	return ways.recorder()
end

function ways.correlator()
	local correlator = require "evrec".correlator(options)
	local events, event = {}, 0
	for i = 1, math.max(#objects, #messages) do
		events[i] = bench.event_of(objects[math.min(i, #objects)], messages[math.min(i, #messages)])
	end
	local created, patched, skipped = 0, 0, 0
	return function()
		for _ = 1, bench.BATCH do
			event = event == #events and 1 or event + 1
			local result = correlator:correlate(events[event])
			if result.skip then
				skipped = skipped + 1
			elseif result.patch then
				patched = patched + 1
			else
				created = created + 1
			end
		end
	end, function() return created, patched, skipped end
end

local batch, outcome = ways[way]()
-- LuaJIT's memory does not come from malloc, where that of the others is counted.
local bytes = "-"
local before = collectgarbage "count"
if jit and tonumber(amount) then
	collectgarbage "stop"
end
local events, seconds = bench.measure(batch, amount, math.max(#objects, #messages))
if jit and tonumber(amount) then
	bytes = ("%.0f"):format((collectgarbage "count" - before) * 1024)
end
local created, patched, skipped = outcome()
print(("%d\t%.9f\t%d\t%d\t%d\t-\t%s"):format(events, seconds, created, patched, skipped, bytes))
