-- Measures how many unique events a second evrec delivers to the collector; and how many h2load, which sends one of
-- evrec's bodies again and again, by as many connections: in each encoding, compressed or not. The events are recorded
-- while the collector is frozen, as h2load has its body before it begins.
--
-- usage: luajit throughput_otlp.lua (see rates.lua)
local cluster = require "cluster"
local collector = require "collector"
local evrec = require "evrec"
local process = require "process"
local rates = require "rates"
local socket = require "socket"

local batch = 512
local connections = 4 -- of a sink at most

local function record(recorder, n)
	for i = 1, n do
		local pod = { kind = "Pod", apiVersion = "v1", namespace = "shop", name = "pod-" .. i }
		assert(recorder:event(pod, "Normal", "Created", "one of many"))
	end
end

-- A broadcaster with a sink for bodies of a kind: an encoding and a compression.
local function broadcaster_to(endpoint, kind, n)
	local broadcaster = evrec.broadcaster { on_error = false }
	broadcaster:start_recording_to_sink(evrec.sink.otlp {
		endpoint = endpoint, encoding = kind.encoding, compression = kind.compression, min_interval = 0, max_pending = n,
		max_pending_bytes = 2e9,
	})
	return broadcaster, broadcaster:new_recorder { component = "throughput", host = "here" }
end

--- How many records were received since a mark.
local function received(from)
	local _, requests = collector.received(from)
	local sum = 0
	for _, request in ipairs(requests) do
		sum = sum + request.records
	end
	return sum
end

local function by_evrec(kind, n)
	local from = collector.mark()
	local broadcaster, recorder = broadcaster_to(collector.endpoint "PLAIN", kind, n)
	collector.control("freeze", "collector")
	record(recorder, n)
	local begun = process.time()
	collector.control("thaw", "collector")
	local ok = broadcaster:flush(600)
	local seconds = process.time() - begun
	broadcaster:shutdown(0)
	assert(ok and received(from) == n, "not all events are there")
	return n / seconds
end

--- The headers and the body of a request of evrec's.
local function request_of(kind)
	local server = assert(socket.bind("127.0.0.1", 0))
	local _, port = server:getsockname()
	local broadcaster, recorder = broadcaster_to(("http://127.0.0.1:%d/v1/logs"):format(port), kind, batch)
	record(recorder, batch)
	server:settimeout(30)
	local connection = assert(server:accept())
	local headers = {}
	for line in function() return assert(connection:receive "*l") end do
		if line == "" then
			break
		end
		local name, value = line:match "^([%w-]+): (.*)$"
		if name then
			headers[name:lower()] = value
		end
	end
	if headers.expect then
		connection:send "HTTP/1.1 100 Continue\r\n\r\n"
	end
	local body = assert(connection:receive(tonumber(headers["content-length"])))
	connection:send "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	broadcaster:shutdown(10)
	connection:close()
	server:close()
	return headers, body
end

local function by_h2load(kind, n)
	local path, from = cluster.scratch .. "/logs", collector.mark()
	local headers, body = request_of(kind)
	for _ = 1, 5 do -- the first one may have a part of the batch
		local _, other = request_of(kind)
		body = #other > #body and other or body
	end
	cluster.write(path, body)
	local words = { "h2load", "--h1", "-n", math.ceil(n / batch), "-c", connections, "-d", path,
		"-H", "content-type: " .. headers["content-type"] }
	if headers["content-encoding"] then
		words[#words + 1], words[#words + 2] = "-H", "content-encoding: " .. headers["content-encoding"]
	end
	words[#words + 1] = collector.endpoint "PLAIN"
	local output, ok = cluster.run(words)
	local rate = tonumber(output:match "finished in [%d.]+%a+, ([%d.]+) req/s")
	assert(ok and rate, output)
	return rate * received(from) / math.ceil(n / batch)
end

local kinds, ways = {}, {}
for _, encoding in ipairs { "protobuf", "json" } do
	for _, compression in ipairs { "gzip", "none" } do
		local kind = { name = encoding .. "-" .. compression, encoding = encoding, compression = compression }
		table.insert(kinds, kind)
		table.insert(ways, { name = "evrec-" .. kind.name, run = function(n) return by_evrec(kind, n) end })
		table.insert(ways, { name = "h2load-" .. kind.name, run = function(n) return by_h2load(kind, n) end })
	end
end

rates.main(arg, ways, function(median_of, ratio_of)
	for _, kind in ipairs(kinds) do
		local own, other = "evrec-" .. kind.name, "h2load-" .. kind.name
		print(("medians, %s: evrec %d, h2load with %d connections %d"):format(kind.name, median_of(own), connections,
			median_of(other)))
		rates.goal("evrec / h2load", ratio_of(own, other), 0.9)
	end
end)
