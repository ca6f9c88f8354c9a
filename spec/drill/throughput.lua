-- Measures unique events a second into the API server, recorded in one loop; and the requests a second of h2load on one
-- connection, with as many streams, and with one request at a time, as client-go works.
--
-- usage: luajit throughput.lua (see rates.lua)
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local process = require "process"
local rates = require "rates"

local streams = 32
local reference = 660 -- client-go's events a second, measured on two idle cores

local function stored(namespace)
	local list = cjson.decode(cluster.kubectl("get", "--raw", "/api/v1/namespaces/" .. namespace .. "/events?limit=1"))
	return #list.items + (tonumber(list.metadata.remainingItemCount) or 0)
end

local function by_evrec(events)
	local namespace = cluster.namespace()
	local options = cluster.connection()
	options.max_pending, options.max_in_flight = events, streams
	local b = evrec.broadcaster { on_error = false }
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

local function by_h2load(n, at_once)
	local namespace = cluster.namespace()
	local path, connection = cluster.scratch .. "/event.json", cluster.connection()
	cluster.write(path, body(namespace))
	local output, ok = cluster.run {
		"h2load", "-n", n, "-c", 1, "-m", at_once, "-d", path, "-H", "authorization: Bearer " .. connection.token,
		"-H", "content-type: application/json", "-H", "accept: application/json",
		connection.server .. "/api/v1/namespaces/" .. namespace .. "/events",
	}
	local rate = tonumber(output:match "finished in [%d.]+%a+, ([%d.]+) req/s")
	local there = stored(namespace)
	-- The server refuses a request if the name that it generates exists already.
	assert(ok and rate and there > n * 0.99, output)
	return rate * there / n
end

local function medians(median_of, ratio_of)
	local own, other, single = median_of "evrec", median_of "h2load", median_of "single"
	print(("medians: evrec %d, h2load with %d streams %d, one at a time %d"):format(own, streams, other, single))
	rates.goal("evrec / h2load", ratio_of("evrec", "h2load"), 0.9)
	rates.goal("evrec / client-go's 660 on idle cores", own / reference, 4)
	print(("%-46s %6.2f"):format("evrec / one request at a time", ratio_of("evrec", "single")))
end

rates.main(arg, {
	{ name = "evrec", run = by_evrec },
	{ name = "h2load", run = function(events) return by_h2load(events, streams) end },
	{ name = "single", run = function(events) return by_h2load(math.ceil(events / 10), 1) end },
}, medians)
