-- Shared by the Lua programs of the benchmark. It makes the objects that events are about, opens evrec with a sink that
-- accepts every write immediately, and measures the CPU time of batches of events.
local bench = {
	BATCH = 1000, -- events between two polls of the broadcaster
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

-- An event with the fields that a recorder sets.
function bench.event_of(object, message)
	return require "evrec".event {
		metadata = { name = "web-7d4b9c6f5b-00000.17a2b3c4d5e6f708", namespace = object.namespace },
		involvedObject = object, type = bench.TYPE, reason = bench.REASON, message = message, count = 1,
		firstTimestamp = "2023-11-14T22:13:20Z", lastTimestamp = "2023-11-14T22:13:20Z",
		source = { component = COMPONENT, host = HOST }, reportingComponent = COMPONENT, reportingInstance = HOST,
	}
end

function bench.baseline()
	return require "baseline" (COMPONENT, HOST)
end

local function accept() return true end

-- Returns a recorder, a function that polls its broadcaster, and a function that returns how many events were created,
-- patched and skipped.
function bench.recorder(options)
	local evrec = require "evrec"
	local broadcaster = evrec.broadcaster { correlator = options, on_error = false }
	broadcaster:start_recording_to_sink(evrec.sink.lua { create = accept, patch = accept })
	local function outcome()
		local stats = broadcaster:stats()
		return stats.created, stats.patched + stats.coalesced, stats.rate_limited
	end
	return broadcaster:new_recorder { component = COMPONENT, host = HOST }, function() broadcaster:poll() end, outcome
end

-- Runs batches until they had at least `least` events and took at least `ms` milliseconds of CPU time. Returns the
-- number of events and their CPU seconds.
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

-- Runs as many batches as `amount` says: a number of events; or of milliseconds ("80ms"), after a warm-up that takes at
-- least half as long and has at least `different` events, the workload's number of different events. Returns the number
-- of events and their CPU seconds.
function bench.measure(batch, amount, different)
	local ms = tonumber(amount:match "^(%d+)ms$")
	if not ms then
		return run(batch, tonumber(amount), 0)
	end
	run(batch, different, ms / 2)
	return run(batch, 0, ms)
end

return bench
