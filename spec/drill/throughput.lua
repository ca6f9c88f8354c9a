-- Unique events a second into the API server, recorded in one loop; and what h2load gets there on one connection, with
-- as many streams, and with one request at a time, as client-go has it. In turn, so that all meet the same noise.
--
-- usage: luajit throughput.lua EVENTS ROUNDS
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local process = require "process"

local events, rounds = tonumber(arg[1]), tonumber(arg[2])
local streams = 32
local reference = 660 -- events a second: client-go, measured on two idle cores

local function stored(namespace)
	local list = cjson.decode(cluster.kubectl("get", "--raw", "/api/v1/namespaces/" .. namespace .. "/events?limit=1"))
	return #list.items + (tonumber(list.metadata.remainingItemCount) or 0)
end

local function by_evrec(namespace)
	local options = cluster.connection()
	options.max_pending, options.max_in_flight = events, streams
	local b = evrec.broadcaster {}
	b:start_recording_to_sink(evrec.sink.kubernetes(options))
	local r = b:new_recorder { component = "throughput", host = "here" }
	local begun = process.time()
	for i = 1, events do
		local pod = { kind = "Pod", apiVersion = "v1", namespace = namespace, name = "pod-" .. i }
		assert(r:event(pod, "Normal", "Created", "one of many"))
	end
	local ok = b:flush(600)
	local seconds = process.time() - begun
	b:shutdown(0)
	assert(ok and stored(namespace) == events, "not all events are there")
	return events / seconds
end

local function body(namespace)
	local made = evrec.event {
		metadata = { namespace = namespace },
		involvedObject = { kind = "Pod", apiVersion = "v1", namespace = namespace, name = "pod-12345" },
		reason = "Created", message = "one of many", type = "Normal", count = 1,
		firstTimestamp = "2026-01-01T00:00:00Z", lastTimestamp = "2026-01-01T00:00:00Z",
		source = { component = "throughput", host = "here" },
		reportingComponent = "throughput", reportingInstance = "here",
	}:to_table()
	made.metadata.generateName = "pod-12345."
	return cjson.encode(made)
end

local function by_h2load(namespace, n, at_once)
	local path, connection = cluster.scratch .. "/event.json", cluster.connection()
	cluster.write(path, body(namespace))
	local output, ok = cluster.run {
		"h2load", "-n", n, "-c", 1, "-m", at_once, "-d", path, "-H", "authorization: Bearer " .. connection.token,
		"-H", "content-type: application/json", "-H", "accept: application/json",
		connection.server .. "/api/v1/namespaces/" .. namespace .. "/events",
	}
	local rate = tonumber(output:match "finished in [%d.]+%a+, ([%d.]+) req/s")
	local there = stored(namespace)
	-- A generated name may be taken already.
	assert(ok and rate and there > n * 0.99, output)
	return rate * there / n
end

local ways = {
	{ name = "evrec", run = by_evrec },
	{ name = "h2load, 32 streams", run = function(namespace) return by_h2load(namespace, events, streams) end },
	{ name = "h2load, one at a time", run = function(namespace)
		return by_h2load(namespace, math.ceil(events / 10), 1)
	end },
}

local function median(values)
	local sorted = { unpack(values) }
	table.sort(sorted)
	return sorted[math.ceil(#sorted / 2)]
end

for _ = 1, rounds do
	for _, way in ipairs(ways) do
		local namespace = cluster.namespace()
		way[#way + 1] = way.run(namespace)
		print(("%-24s %7.0f events a second"):format(way.name, way[#way]))
		cluster.delete_namespace(namespace)
	end
end
local own, other, single = median(ways[1]), median(ways[2]), median(ways[3])
local function goal(text, value, wanted)
	print(("%-46s %6.2f, the goal is %.1f: %s"):format(text, value, wanted, value >= wanted and "met" or "NOT met"))
end
print(("medians: evrec %.0f, h2load %.0f, one at a time %.0f"):format(own, other, single))
goal("evrec / h2load", own / other, 0.9)
goal("evrec / client-go's 660 on idle cores", own / reference, 4)
print(("%-46s %6.2f"):format("evrec / one request at a time", own / single))
