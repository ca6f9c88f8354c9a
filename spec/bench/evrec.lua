-- Runs one workload through evrec or through the baseline, and prints the line that README.md describes.
--
-- usage: evrec.lua VARIANT WORKLOAD AMOUNT    (README.md lists them)
local bench = require "bench"

local OBJECTS, MESSAGES = 8192, 4096
local variant, workload, amount = ...

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

-- Returns a function that runs a batch: objects and messages in turn, through the method `event` of `recorder`.
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

-- Each variant returns a function that runs a batch, and one that returns how many events were created, patched and
-- skipped.
local variants = {}

function variants.baseline()
	return recording(bench.baseline(), function() end), function() return 0, 0, 0 end
end

function variants.recorder()
	local recorder, poll, outcome = bench.recorder(options)
	return recording(recorder, poll), outcome
end

function variants.reference()
	local evrec = require "evrec"
	for i, object in ipairs(objects) do
		objects[i] = evrec.reference(object)
	end
	return variants.recorder()
end

function variants.correlator()
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

local batch, outcome = variants[variant]()
-- LuaJIT does not allocate by malloc, so bench.sh cannot count its bytes, and this program does.
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
