-- A sink of OTLP before a real OpenTelemetry collector: connections, sizes, counts, and answers of all kinds.
local cluster = require "cluster"
local collector = require "collector"
local evrec = require "evrec"
local fixtures = require "fixtures"
local host_configuration = require "host_configuration"
local quickstart = require "quickstart"

if not collector.dir then
	describe("a collector", function()
		pending("skipped: `make e2e` starts one")
	end)
	return
end

local errors, broadcasters, stops

-- A broadcaster with sinks, which is closed after the test.
local function broadcaster_to(...)
	local broadcaster = evrec.broadcaster {
		correlator = { burst_size = 1000000 },
		on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end,
	}
	for _, sink in ipairs { ... } do
		broadcaster:start_recording_to_sink(sink)
	end
	broadcasters[#broadcasters + 1] = broadcaster
	return broadcaster, broadcaster:new_recorder { component = "spec", host = "node-1" }
end

local function otlp(options)
	options.endpoint = options.endpoint or collector.endpoint "PLAIN"
	options.min_interval = options.min_interval or 0
	return evrec.sink.otlp(options)
end

-- A sink of an endpoint with TLS, with the client certificate.
local function otlp_by_tls(endpoint, options)
	local dir = collector.dir
	options.endpoint, options.ca_file = collector.endpoint(endpoint), dir .. "/server-ca.crt"
	options.client_certificate, options.client_key = dir .. "/client.crt", dir .. "/client.key"
	return otlp(options)
end

local function record(recorder, n, first)
	for i = first or 1, (first or 1) + n - 1 do
		assert(recorder:event(fixtures.pod("web-" .. i), "Warning", "BackOff", "it failed"))
	end
end

local function await_records(from, n)
	return quickstart.await(function()
		local records = collector.received(from)
		return #records >= n and records
	end)
end

-- Checks that there is one record of each pod web-1 to web-n, with the count.
local function check_pods(records, n, count)
	local seen = {}
	for _, one in ipairs(records) do
		local name = one.resource["k8s.object.name"]
		assert.is_nil(seen[name])
		assert.equal(count or 1, one.attributes["k8s.event.count"])
		seen[name] = true
	end
	assert.equal(n, #records)
	for i = 1, n do
		assert.truthy(seen["web-" .. i])
	end
end

local function all_errors() return table.concat(errors, "\n") end

before_each(function() errors, broadcasters, stops = {}, {}, {} end)
after_each(function()
	for _, broadcaster in ipairs(broadcasters) do
		broadcaster:shutdown(1)
	end
	for _, stop in ipairs(stops) do
		stop "QUIT"
	end
end)

describe("the connection", function()
	local function log() return cluster.read(collector.dir .. "/collector.log") end

	it("is HTTP/2 by ALPN on TLS, with a client certificate", function()
		local from, logged = collector.mark(), #log()
		local broadcaster, recorder = broadcaster_to(otlp_by_tls("TLS", {}))
		record(recorder, 100)
		assert.truthy((broadcaster:flush(30)))
		check_pods(collector.received(from), 100)
		assert.truthy(fixtures.has(log():sub(logged + 1), "http2: server connection from"))
	end)

	it("does not come about without the client certificate, and the records wait", function()
		local from = collector.mark()
		local broadcaster, recorder = broadcaster_to(otlp { endpoint = collector.endpoint "TLS",
			ca_file = collector.dir .. "/server-ca.crt" })
		record(recorder, 1)
		assert.falsy((broadcaster:flush(1)))
		assert.equal(1, broadcaster:stats().pending)
		assert.same({}, (collector.received(from)))
		assert.truthy(fixtures.has(all_errors(), "transport: "))
	end)

	it("follows the variables OTEL_EXPORTER_OTLP_*", function()
		local from, dir = collector.mark(), collector.dir
		local script = [[
			local evrec = require "evrec"
			local broadcaster = evrec.broadcaster {}
			broadcaster:start_recording_to_sink(evrec.sink.otlp {})
			local recorder = broadcaster:new_recorder { component = "spec" }
			recorder:event({ kind = "Pod", namespace = "shop", name = "web-1" }, "Warning", "BackOff", "it failed")
			assert(broadcaster:shutdown(30))
		]]
		local output, ok = cluster.run { "env",
			"OTEL_EXPORTER_OTLP_ENDPOINT=" .. collector.endpoint("TLS"):match "^(.*)/v1/logs$",
			"OTEL_EXPORTER_OTLP_CERTIFICATE=" .. dir .. "/server-ca.crt",
			"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=" .. dir .. "/client.crt",
			"OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY=" .. dir .. "/client.key",
			"OTEL_EXPORTER_OTLP_HEADERS=X-Tenant=dark%20green", "OTEL_EXPORTER_OTLP_TIMEOUT=5000",
			"OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
			"OTEL_RESOURCE_ATTRIBUTES=service.name=other,team=blue%2C1", "OTEL_SERVICE_NAME=shop",
			fixtures.lua, "-e", script }
		assert.truthy(ok, output)
		assert.equal("", output)
		local records, requests = collector.received(from)
		check_pods(records, 1)
		assert.equal("shop", records[1].resource["service.name"])
		assert.equal("blue,1", records[1].resource.team)
		assert.same({ "dark green" }, requests[1].headers["x-tenant"])
	end)

	it("sends the headers", function()
		local from = collector.mark()
		local broadcaster, recorder = broadcaster_to(otlp { headers = { ["X-Tenant"] = "s3cret" } })
		record(recorder, 1)
		assert.truthy((broadcaster:flush(30)))
		local _, requests = collector.received(from)
		assert.same({ "s3cret" }, requests[1].headers["x-tenant"])
	end)
end)

describe("a collector that takes short bodies alone (400)", function()
	local function check(sink)
		local from = collector.mark()
		local broadcaster, recorder = broadcaster_to(sink)
		record(recorder, 512)
		assert.truthy((broadcaster:flush(30)))
		local records, requests = collector.received(from)
		check_pods(records, 512)
		assert.truthy(#requests > 4)
		assert.equal(0, broadcaster:stats().retries)
		assert.equal("", all_errors())
	end

	for _, compression in ipairs { "gzip", "none" } do
		it("gets a batch in parts, each record once: " .. compression, function()
			check(otlp { endpoint = collector.endpoint "SMALL", compression = compression })
		end)

		it("gets a batch in parts by HTTP/2 on TLS, too: " .. compression, function()
			check(otlp_by_tls("SMALL_TLS", { compression = compression }))
		end)
	end
end)

describe("an event that happens again", function()
	it("has one more record, with the count of what min_interval held back", function()
		local from = collector.mark()
		local broadcaster, recorder = broadcaster_to(otlp { min_interval = 3600, batch = { delay = 0 } })
		record(recorder, 1)
		await_records(from, 1)
		for _ = 1, 1000 do
			record(recorder, 1)
		end
		record(recorder, 1, 2)
		await_records(from, 2)
		assert.truthy((broadcaster:flush(30)))
		local records = await_records(from, 3)
		local told = {}
		for i, one in ipairs(records) do
			told[i] = one.resource["k8s.object.name"] .. " " .. one.attributes["k8s.event.count"]
		end
		assert.same({ "web-1 1", "web-2 1", "web-1 1001" }, told)
		assert.equal(records[1].attributes["k8s.event.name"], records[3].attributes["k8s.event.name"])
		assert.truthy(records[1].time < records[3].time)
	end)

	it("is a series, which begins and ends with a record", function()
		local from = collector.mark()
		local clock = evrec.fake_clock(1700000000.5)
		local broadcaster = evrec.broadcaster { clock = clock, on_error = false, drive = "poll" }
		broadcasters[1] = broadcaster
		broadcaster:start_recording_to_sink(otlp { correlate = "series", min_interval = 3600, batch = { delay = 0 } })
		local recorder = broadcaster:new_recorder { component = "spec", host = "node-1" }
		local function happens(n)
			for _ = 1, n do
				assert(recorder:emit { regarding = fixtures.pod "web-1", type = "Warning", reason = "BackOff",
					action = "Restarting", note = "it failed" })
			end
		end
		local function sent(n)
			return quickstart.await(function()
				broadcaster:poll()
				local records = collector.received(from)
				return #records >= n and records
			end)
		end
		happens(1)
		sent(1)
		happens(1) -- the second occurrence makes it a series
		sent(2)
		happens(40)
		clock:advance(7200) -- finished
		local told = {}
		for i, one in ipairs(sent(3)) do
			assert.equal("2023-11-14T22:13:20.500000Z", one.attributes["k8s.event.start_time"])
			told[i] = ("%d %s"):format(one.attributes["k8s.event.count"], one.attributes["k8s.event.series.state"])
		end
		assert.same({ "1 nil", "2 Ongoing", "42 Finished" }, told)
	end)
end)

describe("a server in front of the collector", function()
	local folder

	before_each(function()
		folder = cluster.run({ "mktemp", "-d", cluster.scratch .. "/front-XXXXXX" }):match "%S+"
	end)

	-- nginx, with these directives for the location of logs. Returns the endpoint.
	local function front(directives)
		local port = quickstart.free_port()
		cluster.write(folder .. "/conf", host_configuration.nginx(port, ([[
			daemon off; pid %s/pid; error_log stderr; user root;]]):format(folder), [[
			log_format one "$msec $status"; lua_shared_dict seen 100k; client_body_buffer_size 2m;]], ([[
			access_log %s/requests one;
			location = /v1/logs { %s }]]):format(folder, directives)))
		stops[1] = quickstart.start(folder, "nginx -p . -c " .. folder .. "/conf")
		quickstart.await_port(port)
		return "http://127.0.0.1:" .. port .. "/v1/logs"
	end

	local function pass() return "proxy_pass " .. collector.endpoint "PLAIN" .. ";" end

	-- The times and status codes of all requests, of which there must be so many.
	local function requests(n)
		return quickstart.await(function()
			local list = {}
			for time, status in cluster.read(folder .. "/requests"):gmatch "(%S+) (%d+)\n" do
				list[#list + 1] = { time = tonumber(time), status = status }
			end
			return #list >= n and list
		end)
	end

	it("finds a batch too large (413): it comes in parts, each record once", function()
		local from = collector.mark()
		local broadcaster, recorder = broadcaster_to(otlp { compression = "none",
			endpoint = front("client_max_body_size 16k; " .. pass()) })
		record(recorder, 512)
		assert.truthy((broadcaster:flush(30)))
		check_pods(collector.received(from), 512)
		assert.equal("413", requests(2)[1].status)
		assert.equal("", all_errors())
	end)

	it("finds a record too large: it alone is dropped", function()
		local from = collector.mark()
		local broadcaster, recorder = broadcaster_to(otlp { compression = "none",
			endpoint = front("client_max_body_size 1k; " .. pass()) })
		record(recorder, 20)
		assert(recorder:event(fixtures.pod "web-21", "Warning", "BackOff", ("long"):rep(250)))
		record(recorder, 20, 21)
		broadcaster:flush(30)
		check_pods(collector.received(from), 40)
		assert.equal(1, broadcaster:stats().sinks[1].dropped.rejected)
	end)

	it("asks to wait (429 with Retry-After), and gets the records then, once", function()
		local from = collector.mark()
		local broadcaster, recorder = broadcaster_to(otlp { endpoint = front([[access_by_lua_block {
			if ngx.shared.seen:incr("n", 1, 0) == 1 then
				ngx.header["Retry-After"] = 3
				return ngx.exit(429)
			end
		}]] .. pass()) })
		record(recorder, 100)
		assert.truthy((broadcaster:flush(30)))
		check_pods(collector.received(from), 100)
		local told = requests(2)
		assert.same({ "429", "200" }, { told[1].status, told[2].status })
		assert.truthy(told[2].time - told[1].time >= 3)
	end)

	it("rejects a part (partial success): so many are dropped, and on_error is told why", function()
		local broadcaster, recorder = broadcaster_to(otlp { encoding = "json", endpoint = front [[content_by_lua_block {
			ngx.req.read_body()
			ngx.header.content_type = "application/json"
			ngx.say '{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"out of order"}}'
		}]] })
		record(recorder, 10)
		broadcaster:flush(30)
		local sink = broadcaster:stats().sinks[1]
		assert.same({ 7, 3, 0 }, { sink.created, sink.dropped.rejected, sink.pending })
		assert.truthy(fixtures.has(all_errors(), "out of order"))
		assert.equal(1, #requests(1))
	end)

	it("answers with the secret: no message shows it", function()
		local broadcaster, recorder = broadcaster_to(otlp { headers = { Authorization = "Bearer s3cret" },
			endpoint = front [[default_type text/plain; return 400 "not for $http_authorization here";]] })
		record(recorder, 1)
		local _, _, message = broadcaster:flush(30)
		assert.equal(1, broadcaster:stats().sinks[1].dropped.rejected)
		assert.truthy(fixtures.has(all_errors(), "not for "))
		assert.falsy(fixtures.has(all_errors() .. tostring(message), "s3cret"))
	end)
end)

describe("a sink for the cluster and one for a collector", function()
	local namespace, from, broadcaster, recorder

	before_each(function()
		from, namespace = collector.mark(), cluster.namespace()
		broadcaster = broadcaster_to()
	end)
	after_each(function() cluster.delete_namespace(namespace) end)

	local function happens(i)
		local pod = fixtures.pod("web-" .. i)
		pod.namespace = namespace
		assert(recorder:event(pod, "Warning", "BackOff", "it failed"))
	end

	it("have correlators of their own", function()
		broadcaster:start_recording_to_sink(evrec.sink.kubernetes {}, { correlator = { burst_size = 3 } })
		broadcaster:start_recording_to_sink(otlp {}, { correlator = { burst_size = 10 } })
		recorder = broadcaster:new_recorder { component = "spec" }
		for _ = 1, 12 do
			happens(1)
		end
		assert.truthy((broadcaster:flush(30)))
		local sinks = broadcaster:stats().sinks
		assert.same({ 9, 2 }, { sinks[1].rate_limited, sinks[2].rate_limited })
		assert.equal(3, cluster.events(namespace)[1].count)
		local highest = 0
		for _, one in ipairs((collector.received(from))) do
			highest = math.max(highest, one.attributes["k8s.event.count"])
		end
		assert.equal(10, highest)
	end)

	it("go on without each other: a dead API server costs the collector nothing", function()
		if not cluster.dir then
			return pending "skipped: `make e2e` starts an API server that may be killed"
		end
		local is_dead = true
		cluster.control "kill"
		finally(function() return is_dead and cluster.control "restart" end)
		broadcaster:start_recording_to_sink(evrec.sink.kubernetes {})
		broadcaster:start_recording_to_sink(otlp {})
		recorder = broadcaster:new_recorder { component = "spec" }
		for i = 1, 200 do
			happens(i)
		end
		fixtures.flush_until(broadcaster, function() return broadcaster:stats().sinks[2].pending == 0 end)
		check_pods(collector.received(from), 200)
		local to_cluster, to_collector = broadcaster:stats().sinks[1], broadcaster:stats().sinks[2]
		assert.same({ 200, 0 }, { to_collector.created, to_collector.retries })
		assert.equal(200, to_cluster.pending)
		cluster.control "restart"
		is_dead = false
		fixtures.flush_until(broadcaster, function() return broadcaster:stats().pending == 0 end)
		assert.equal(200, cluster.count(namespace))
	end)
end)

describe("a dead collector", function()
	it("costs the cluster nothing, and gets all records when it is back", function()
		local from, namespace = collector.mark(), cluster.namespace()
		collector.control "kill"
		local broadcaster, recorder = broadcaster_to(evrec.sink.kubernetes {}, otlp {})
		for i = 1, 200 do
			local pod = fixtures.pod("web-" .. i)
			pod.namespace = namespace
			assert(recorder:event(pod, "Warning", "BackOff", "it failed"))
		end
		local to_cluster
		fixtures.flush_until(broadcaster, function()
			to_cluster = broadcaster:stats().sinks[1]
			return to_cluster.pending == 0
		end)
		assert.equal(200, to_cluster.created)
		assert.equal(200, cluster.count(namespace))
		assert.equal(200, broadcaster:stats().sinks[2].pending)
		collector.control "restart"
		fixtures.flush_until(broadcaster, function() return broadcaster:stats().pending == 0 end)
		check_pods(collector.received(from), 200)
		cluster.delete_namespace(namespace)
	end)

	it("behind a living one (503) gets all records when it is back", function()
		local from = collector.mark()
		collector.control("kill", "backend")
		local broadcaster, recorder = broadcaster_to(otlp { endpoint = collector.endpoint "RELAY" })
		record(recorder, 200)
		assert.falsy((broadcaster:flush(1)))
		assert.equal(200, broadcaster:stats().pending)
		assert.truthy(fixtures.has(all_errors(), "503"))
		collector.control("restart", "backend")
		fixtures.flush_until(broadcaster, function() return broadcaster:stats().pending == 0 end)
		check_pods(collector.received(from), 200)
	end)
end)
