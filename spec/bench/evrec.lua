-- Runs one workload, and prints what came of it.
--
-- usage: evrec.lua WAY WORKLOAD AMOUNT    (see README.md)
local way, workload, amount = ...

local POLL_EVERY = 1000
local MESSAGES, OBJECTS = 4096, 8192

local function object(i)
	return {
		kind = "Pod", apiVersion = "v1", namespace = "shop", name = ("web-7d4b9c6f5b-%05d"):format(i),
		uid = ("3f2c6a1e-58b0-4c1d-9e7f-%012d"):format(i), resourceVersion = "81224",
	}
end

local correlator = workload ~= "limited" and { burst_size = 1000000000 } or nil
local recorder, poll, stats
local objects, messages = { object(0) }, { "Back-off restarting failed container web in pod web-7d4b9c6f5b-00000" }
if workload == "similar" then
	for i = 1, MESSAGES do
		messages[i] = ("Readiness probe failed: HTTP probe failed with statuscode: 503, try %04d"):format(i)
	end
elseif workload == "unique" then
	for i = 1, OBJECTS do
		objects[i] = object(i)
	end
end

if way == "floor" then
	recorder = require "floor" ("kubelet", "node-1")
	function poll() end
	function stats() return {} end
else
	local evrec = require "evrec"
	local b = evrec.broadcaster { correlator = correlator }
	b:start_recording_to_sink(evrec.sink.lua {
		create = function() return true end,
		patch = function() return true end,
	})
	recorder = b:new_recorder { component = "kubelet", host = "node-1" }
	if way == "reference" then
		for i = 1, #objects do objects[i] = evrec.reference(objects[i]) end
	end
	function poll() b:poll() end
	function stats() return b:stats() end
end

local next_object, next_message = 0, 0
local function batch()
	local o, m, os, ms = next_object, next_message, #objects, #messages
	for _ = 1, POLL_EVERY do
		o = o == os and 1 or o + 1
		m = m == ms and 1 or m + 1
		recorder:event(objects[o], "Warning", "BackOff", messages[m])
	end
	next_object, next_message = o, m
	poll()
end

local function run(seconds)
	local started, now, n = os.clock(), nil, 0
	repeat
		batch()
		n = n + POLL_EVERY
		now = os.clock()
	until now - started >= seconds
	return n, now - started
end
local ms = tonumber(amount:match "^(%d+)ms$")
run(ms / 2000)
local n, seconds = run(ms / 1000)
print(("%s\t%s\t%.1f ns/event"):format(way, workload, seconds / n * 1e9))
