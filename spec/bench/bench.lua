-- What the Lua programs of the benchmark share: the objects that events are about, evrec with a sink that accepts at
-- once, and the time that batches take.
local bench = {
	BATCH = 1000, -- events from one poll of the host to the next
	TYPE = "Warning", REASON = "BackOff",
	MESSAGE = "Back-off restarting failed container web in pod web-7d4b9c6f5b-00000",
}

local COMPONENT, HOST = "kubelet", "node-1"

function bench.name_of(i) return ("web-7d4b9c6f5b-%05d"):format(i) end
function bench.uid_of(i) return ("3f2c6a1e-58b0-4c1d-9e7f-%012d"):format(i) end

function bench.object_of(i)
	return {
		kind = "Pod", apiVersion = "v1", namespace = "shop", name = bench.name_of(i), uid = bench.uid_of(i),
		resourceVersion = "81224",
	}
end

-- As a recorder would have made it.
function bench.event_of(object, message)
	return require "evrec".event {
		metadata = { name = "web-7d4b9c6f5b-00000.17a2b3c4d5e6f708", namespace = object.namespace },
		involvedObject = object, type = bench.TYPE, reason = bench.REASON, message = message, count = 1,
		firstTimestamp = "2023-11-14T22:13:20Z", lastTimestamp = "2023-11-14T22:13:20Z",
		source = { component = COMPONENT, host = HOST }, reportingComponent = COMPONENT, reportingInstance = HOST,
	}
end

function bench.floor()
	return require "floor" (COMPONENT, HOST)
end

local function accept() return true end

-- A recorder, a function that polls, and one that tells how many were created, patched and skipped.
function bench.recorder(options)
	local evrec = require "evrec"
	local broadcaster = evrec.broadcaster { correlator = options }
	broadcaster:start_recording_to_sink(evrec.sink.lua { create = accept, patch = accept })
	local function outcome()
		local stats = broadcaster:stats()
		return stats.created, stats.patched + stats.coalesced, stats.rate_limited
	end
	return broadcaster:new_recorder { component = COMPONENT, host = HOST }, function() broadcaster:poll() end, outcome
end

-- Runs batches until there were at least so many events, and so many milliseconds of CPU time: returns both.
local function run(batch, least, ms)
	local started, events = os.clock(), 0
	while true do
		batch()
		events = events + bench.BATCH
		local spent = (os.clock() - started) * 1000
		if events >= least and spent >= ms then
			return events, spent / 1000
		end
	end
end

-- `amount` is a number of events; or of milliseconds ("80ms"), after half as many, and all of the workload's
-- `different` events, to warm up. Returns how many events there were, and in how many seconds of CPU time.
function bench.measure(batch, amount, different)
	local ms = tonumber(amount:match "^(%d+)ms$")
	if not ms then
		return run(batch, tonumber(amount), 0)
	end
	run(batch, different, ms / 2)
	return run(batch, 0, ms)
end

return bench
