-- Measures unique events a second into the API server, recorded in one loop, with 32 requests under way, as many as by
-- default, and with 128; and the requests a second of h2load on one connection, with 16 to 128 streams, and with one
-- request at a time, as client-go works.
--
-- usage: luajit throughput.lua (see rates.lua)
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local process = require "process"
local rates = require "rates"

local default, most = 32, 128 -- requests under way
local reference = 660 -- client-go's events a second, measured on two idle cores

local function stored(namespace)
	local list = cjson.decode(cluster.kubectl("get", "--raw", "/api/v1/namespaces/" .. namespace .. "/events?limit=1"))
	return #list.items + (tonumber(list.metadata.remainingItemCount) or 0)
end

local function by_evrec(events, at_once)
	local namespace = cluster.namespace()
	local options = cluster.connection()
	options.max_pending, options.max_in_flight = events, at_once
	local b = evrec.broadcaster { on_error = false }
	b:start_recording_to_sink(evrec.sink.kubernetes(options))
	local r = b:new_recorder { component = "throughput", host = "here" }
	local begun, computed = process.time(), os.clock()
	for i = 1, events do
		local pod = { kind = "Pod", apiVersion = "v1", namespace = namespace, name = "pod-" .. i }
		assert(r:event(pod, "Normal", "Created", "one of many"))
	end
	local ok = b:flush(600)
	local seconds, processor = process.time() - begun, os.clock() - computed
	b:shutdown(0)
	assert(ok and stored(namespace) == events, "not all events are there")
	return events / seconds, processor / events * 1e9
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

local ways = {
	{ name = "evrec", run = function(events) return by_evrec(events, default) end },
	{ name = "evrec-128", run = function(events) return by_evrec(events, most) end },
	{ name = "single", run = function(events) return by_h2load(math.ceil(events / 10), 1) end },
}
local others = {}
for _, n in ipairs { 16, default, 64, most } do
	local name = ("h2load-%d"):format(n)
	others[#others + 1] = name
	ways[#ways + 1] = { name = name, run = function(events) return by_h2load(events, n) end }
end

local function medians(median_of, ratio_of)
	local own = median_of "evrec"
	print(("medians: evrec %d, evrec with 128 under way %d, one request at a time %d"):format(own,
		median_of "evrec-128", median_of "single"))
	for _, name in ipairs(others) do
		print(("medians: %s (streams) %d"):format(name, median_of(name)))
	end
	rates.goal("evrec with 128 / the best of h2load, by rounds", ratio_of("evrec-128", unpack(others)), 0.95)
	print(("%-46s %6.2f"):format("evrec / h2load, 32 both", ratio_of("evrec", "h2load-32")))
	print(("%-46s %6.2f"):format("evrec / the best of h2load", ratio_of("evrec", unpack(others))))
	rates.goal("evrec / client-go's 660 on idle cores", own / reference, 4)
	rates.bound("us of processor time an event, script included", median_of "evrec-processor" / 1000, 60)
	print(("%-46s %6.2f"):format("evrec / one request at a time", ratio_of("evrec", "single")))
end

rates.main(arg, ways, medians)
