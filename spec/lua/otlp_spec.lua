-- Which options the core gets, for the options of a script and its environment.
local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"
local otlp = require "evrec.otlp"
local tmpfiles = require "tmpfiles"

local pem = "-----BEGIN CERTIFICATE-----\n"
local secret = "c2VjcmV0"

local function settings(given, environment)
	return otlp.settings(given, function(name) return environment[name] end)
end

local function raises(part, f, ...)
	local ok, message = pcall(f, ...)
	assert.is_false(ok)
	assert.truthy(fixtures.has(message, part), message)
	assert.is_false(fixtures.has(message, secret), message)
end

describe("the environment of evrec.sink.otlp", function()
	local write, remove

	before_each(function()
		local _
		_, write, remove = tmpfiles.new()
	end)
	after_each(function() remove() end)

	it("sets nothing if nothing is set, or all is empty", function()
		assert.same({}, settings({}, {}))
		local empty = setmetatable({}, { __index = function() return "" end })
		assert.same({}, settings({}, empty))
	end)

	it("has a base endpoint, to which /v1/logs is appended with one slash", function()
		for given, expected in pairs {
			["http://c:4318"] = "http://c:4318/v1/logs",
			["http://c:4318/"] = "http://c:4318/v1/logs",
			["http://c:4318//"] = "http://c:4318/v1/logs",
			["https://c/otlp/"] = "https://c/otlp/v1/logs",
			["https://c/otlp?tenant=a/"] = "https://c/otlp/v1/logs?tenant=a/",
			["https://c#x"] = "https://c/v1/logs#x",
		} do
			assert.equal(expected, settings({}, { OTEL_EXPORTER_OTLP_ENDPOINT = given }).endpoint)
		end
	end)

	it("has an endpoint of logs, which is used as it is", function()
		local environment = {
			OTEL_EXPORTER_OTLP_ENDPOINT = "http://all:4318", OTEL_EXPORTER_OTLP_LOGS_ENDPOINT = "http://logs:4318/",
		}
		assert.equal("http://logs:4318/", settings({}, environment).endpoint)
	end)

	it("has headers, percent-encoded, whose names are compared without case", function()
		for list, expected in pairs {
			["api-key=" .. secret] = { ["api-key"] = secret },
			["a=1,b=2"] = { a = "1", b = "2" },
			[" a = 1 ,, b=2 ,"] = { a = "1", b = "2" },
			["Authorization=Bearer%20x%2Cy%25"] = { Authorization = "Bearer x,y%" },
			["a=x=y==;z"] = { a = "x=y==;z" },
			["a="] = { a = "" },
			["X-A=1,x-a=2"] = { ["x-a"] = "2" },
			["X-A=1,x-a=2,X-a=3,X-A=4"] = { ["X-A"] = "4" },
			["a=%C3%BC%09"] = { a = "\195\188\t" },
		} do
			assert.same(expected, settings({}, { OTEL_EXPORTER_OTLP_HEADERS = list }).headers)
		end
	end)

	it("never has a header's value told", function()
		for list, why in pairs {
			["a=1," .. secret] = "entry 2 has no '=' (name=value,name=value)",
			[secret .. ",a=1"] = "entry 1 has no '='",
			["Authorization: Basic " .. secret .. "=="] = "entry 1: its name is not a header's name",
			["=" .. secret] = "entry 1: its name is not a header's name",
			[",,a=" .. secret .. "%0d%0aX:y"] = "entry 3: the value has a control character",
			["a=" .. secret .. "%00"] = "entry 1: the value has a control character",
			["a=" .. secret .. "%2"] = "entry 1: a '%' without two hexadecimal digits",
			["a=100%," .. secret .. "=1"] = "entry 1: a '%' without two hexadecimal digits",
		} do
			for _, name in ipairs { "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS" } do
				raises(name .. ": " .. why, settings, {}, { [name] = list })
			end
		end
	end)

	it("has a timeout in milliseconds; 0 is the longest one", function()
		for given, expected in pairs { ["10"] = 0.01, ["2500"] = 2.5, ["0"] = 3600, ["99999999999"] = 3600 } do
			assert.equal(expected, settings({}, { OTEL_EXPORTER_OTLP_TIMEOUT = given }).timeout)
		end
		for _, given in ipairs { "-1", "1.5", "1e3", "0x10", "10s", " " } do
			raises(('OTEL_EXPORTER_OTLP_TIMEOUT: expected milliseconds, got "%s"'):format(given), settings, {},
				{ OTEL_EXPORTER_OTLP_TIMEOUT = given })
		end
	end)

	it("has a compression", function()
		for given, expected in pairs { gzip = "gzip", none = "none", GZIP = "gzip" } do
			assert.equal(expected, settings({}, { OTEL_EXPORTER_OTLP_COMPRESSION = given }).compression)
		end
		raises('OTEL_EXPORTER_OTLP_LOGS_COMPRESSION: expected "gzip" or "none", got "zstd"', settings, {},
			{ OTEL_EXPORTER_OTLP_LOGS_COMPRESSION = "zstd" })
	end)

	it("has a protocol; of gRPC it is told how to go on", function()
		for given, expected in pairs { ["http/protobuf"] = "protobuf", ["http/json"] = "json", ["HTTP/JSON"] = "json" } do
			assert.equal(expected, settings({}, { OTEL_EXPORTER_OTLP_PROTOCOL = given }).encoding)
		end
		raises('OTEL_EXPORTER_OTLP_PROTOCOL: expected "http/protobuf" or "http/json", got "http"', settings, {},
			{ OTEL_EXPORTER_OTLP_PROTOCOL = "http" })
		local grpc = { OTEL_EXPORTER_OTLP_PROTOCOL = "grpc" }
		raises("OTEL_EXPORTER_OTLP_PROTOCOL: evrec has no gRPC; set OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=http/protobuf", settings,
			{}, grpc)
		raises("4318", settings, {}, grpc)
		grpc.OTEL_EXPORTER_OTLP_LOGS_PROTOCOL = "http/protobuf"
		assert.equal("protobuf", settings({}, grpc).encoding)
	end)

	it("names PEM files, which are read", function()
		local ca, certificate, key = write("ca", pem .. "a"), write("cert", pem .. "c"), write("key", pem .. "k")
		assert.same({ ca_file = pem .. "a", client_certificate = pem .. "c", client_key = pem .. "k" }, settings({}, {
			OTEL_EXPORTER_OTLP_CERTIFICATE = ca, OTEL_EXPORTER_OTLP_LOGS_CLIENT_CERTIFICATE = certificate,
			OTEL_EXPORTER_OTLP_CLIENT_KEY = key,
		}))
		raises("OTEL_EXPORTER_OTLP_CERTIFICATE: " .. ca .. ".none", settings, {},
			{ OTEL_EXPORTER_OTLP_CERTIFICATE = ca .. ".none" })
		raises("OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY: nothing in PEM form in ", settings, {},
			{ OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY = write("x", "x") })
	end)

	it("has variables of logs, which win over the general ones", function()
		local environment, other = {}, write("other", pem .. "other")
		local ca = write("ca", pem)
		for name, values in pairs {
			ENDPOINT = { "http://a", "http://b" }, HEADERS = { "a=1,c=1", "b=2" }, TIMEOUT = { "1000", "2000" },
			COMPRESSION = { "none", "gzip" }, PROTOCOL = { "grpc", "http/json" }, CERTIFICATE = { ca, other },
			CLIENT_CERTIFICATE = { ca, other }, CLIENT_KEY = { ca, other },
		} do
			environment["OTEL_EXPORTER_OTLP_" .. name] = values[1]
			environment["OTEL_EXPORTER_OTLP_LOGS_" .. name] = values[2]
		end
		assert.same({
			endpoint = "http://b", headers = { b = "2" }, timeout = 2, compression = "gzip", encoding = "json",
			ca_file = pem .. "other", client_certificate = pem .. "other", client_key = pem .. "other",
		}, settings({}, environment))
	end)

	it("has attributes of the resource, of which OTEL_SERVICE_NAME wins", function()
		local environment = { OTEL_RESOURCE_ATTRIBUTES = "service.name=a, deployment.environment.name=x%2Cy%3D ,k%20y=" }
		assert.same({ ["service.name"] = "a", ["deployment.environment.name"] = "x,y=", ["k y"] = "" },
			settings({}, environment).resource)
		environment.OTEL_SERVICE_NAME = "b"
		assert.equal("b", settings({}, environment).resource["service.name"])
		assert.same({ resource = { ["service.name"] = "c" } }, settings({}, { OTEL_SERVICE_NAME = "c" }))
		raises("OTEL_RESOURCE_ATTRIBUTES: entry 2 has no '=' (name=value,name=value)", settings, {},
			{ OTEL_RESOURCE_ATTRIBUTES = "a=b,c" })
		raises("OTEL_RESOURCE_ATTRIBUTES: entry 1 has no name", settings, {}, { OTEL_RESOURCE_ATTRIBUTES = "=b" })
		raises("OTEL_RESOURCE_ATTRIBUTES: entry 1: a '%' without two hexadecimal digits", settings, {},
			{ OTEL_RESOURCE_ATTRIBUTES = "a%=b" })
	end)

	it("leaves options alone, and is not read for them", function()
		local environment = { OTEL_RESOURCE_ATTRIBUTES = "service.name=a,x=a", OTEL_SERVICE_NAME = "b" }
		for _, name in ipairs { "ENDPOINT", "HEADERS", "TIMEOUT", "COMPRESSION", "PROTOCOL", "CERTIFICATE",
			"CLIENT_CERTIFICATE", "CLIENT_KEY" } do
			environment["OTEL_EXPORTER_OTLP_" .. name] = "wrong"
		end
		local file, resource = write("pem", pem), { ["service.name"] = "c", y = "c" }
		local given = {
			endpoint = "http://x", headers = {}, timeout = 3, compression = "none", encoding = "json", ca_file = file,
			client_certificate = file, client_key = file, resource = resource, batch = { max = 1 },
		}
		assert.same({
			endpoint = "http://x", headers = {}, timeout = 3, compression = "none", encoding = "json", ca_file = pem,
			client_certificate = pem, client_key = pem, batch = { max = 1 },
			resource = { ["service.name"] = "c", x = "a", y = "c" },
		}, settings(given, environment))
		assert.equal(file, given.ca_file)
		assert.same({ ["service.name"] = "c", y = "c" }, resource)
	end)

	it("is read for options that are lua-cjson's null", function()
		assert.same({ endpoint = "http://c/v1/logs" },
			settings({ endpoint = cjson.null, name = cjson.null }, { OTEL_EXPORTER_OTLP_ENDPOINT = "http://c" }))
		assert.same({ resource = { ["service.name"] = "a", x = "b" } },
			settings({ resource = { ["service.name"] = cjson.null, x = "b" } }, { OTEL_SERVICE_NAME = "a" }))
	end)

	it("does not switch the sink off", function()
		assert.same({}, settings({}, { OTEL_SDK_DISABLED = "true", OTEL_EXPORTER_OTLP_INSECURE = "true" }))
	end)
end)

describe("evrec.sink.otlp", function()
	local folder, write, remove, getenv, environment

	before_each(function()
		folder, write, remove = tmpfiles.new()
		environment = {}
		getenv = os.getenv
		os.getenv = function(name) return environment[name] end -- luacheck: ignore 122
	end)
	after_each(function()
		os.getenv = getenv -- luacheck: ignore 122
		remove()
	end)

	it("needs no option", function()
		assert.equal("userdata", type(evrec.sink.otlp()))
		assert.equal("userdata", type(evrec.sink.otlp {}))
	end)

	it("takes its options and those of every sink", function()
		assert.equal("userdata", type(evrec.sink.otlp {
			endpoint = "https://collector.example.com:4318/v1/logs", headers = { ["X-Scope-OrgID"] = "shop" },
			encoding = "json", compression = "none", timeout = 2.5, batch = { max = 1, bytes = 1024, delay = 0 },
			min_interval = 0, resource = { ["service.name"] = "my-operator" }, insecure_skip_tls_verify = true,
			name = "n", max_pending = 1, max_pending_bytes = 1, max_age = 0, max_tries = 0, full = "drop_oldest",
			spool = { path = folder .. ".spool", after = 1, journal = false }, state_file = folder .. ".state",
			correlate = "series", refresh_interval = 1, finish_time = 1, max_series = 1, note_in_key = true, rate_limit = true,
		}))
		assert.equal("userdata", type(evrec.sink.otlp { batch = {}, headers = {}, resource = {} }))
	end)

	it("raises on misuse, and the message names the option", function()
		for _, case in ipairs {
			{ "x", "expected a table of options, got string" },
			{ { "x" }, "options are named by strings, found number as a name" },
			{ { endpont = "x" }, "unknown option 'endpont': did you mean 'endpoint'?" },
			{ { cafile = "x" }, "unknown option 'cafile': did you mean 'ca_file'?" },
			{ { ca = pem }, "unknown option 'ca'" },
			{ { resolve_early = true }, "unknown option 'resolve_early'" },
			{ { batch = { maximum = 5 } }, "unknown option 'batch.maximum'" },
			{ { batch = { dely = 5 } }, "unknown option 'batch.dely': did you mean 'batch.delay'?" },
			{ { batch = 5 }, "option 'batch': expected a table, got number" },
			{ { batch = { max = 0 } }, "option 'batch.max': expected an integer from 1 to 65536, got 0" },
			{ { batch = { max = 65537 } }, "option 'batch.max'" },
			{ { batch = { bytes = 1023 } }, "option 'batch.bytes': expected an integer from 1024 to 16777216, got 1023" },
			{ { batch = { delay = -1 } }, "option 'batch.delay': expected a number of seconds from 0 to 3600, got -1" },
			{ { batch = { delay = "1" } }, "option 'batch.delay': expected a number of seconds from 0 to 3600, got string" },
			{ { endpoint = "" }, "option 'endpoint'" },
			{ { endpoint = 5 }, "option 'endpoint': expected a string, got number" },
			{ { endpoint = "localhost:4318" },
				"option 'endpoint': expected a whole URL such as http://localhost:4318/v1/logs" },
			{ { headers = "a=b" }, "option 'headers': expected a table of strings, got string" },
			{ { headers = { a = 5 } }, "option 'headers': expected strings by name, got a number under a string" },
			{ { headers = { secret } }, "option 'headers': expected strings by name, got a string under a number" },
			{ { headers = { ["a b"] = secret } }, "option 'headers'" },
			{ { headers = { a = secret .. "\n" } }, "option 'headers'" },
			{ { headers = { Host = secret } }, "option 'headers'" },
			{ { headers = { A = secret, a = secret } }, "option 'headers'" },
			{ { encoding = "xml" }, [[option 'encoding': expected "protobuf" or "json", got "xml"]] },
			{ { compression = "zstd" }, [[option 'compression': expected "gzip" or "none", got "zstd"]] },
			{ { timeout = 0 }, "option 'timeout': expected a number of seconds, more than 0 and at most 3600, got 0" },
			{ { timeout = 3601 }, "option 'timeout': expected a number of seconds, more than 0 and at most 3600, got 3601" },
			{ { timeout = "1" }, "option 'timeout': expected a number of seconds, more than 0 and at most 3600, got string" },
			{ { min_interval = -1 }, "option 'min_interval': expected a number of seconds >= 0, got -1" },
			{ { resource = { ["service.name"] = true } }, "option 'resource': expected strings by name" },
			{ { ca_file = true }, "option 'ca_file': expected a string, got boolean" },
			{ { ca_file = folder .. ".none" }, "option 'ca_file': " .. folder .. ".none" },
			{ { ca_file = write("ca", pem .. "\0") }, "option 'ca_file': no certificate in PEM form" },
			{ { client_key = write("x", "x") }, "option 'client_key': nothing in PEM form in " },
			{ { client_certificate = write("pem", pem) }, "option 'client_certificate'" },
			{ { client_key = write("pem", pem) }, "option 'client_key'" },
			{ { max_pending = 0 }, "option 'max_pending'" },
			{ { finish_time = 5 }, [[option 'finish_time': only with correlate = "series"]] },
			{ { thread = true }, "option 'thread': sinks have none; use the option 'drive' of evrec.broadcaster" },
		} do
			raises("evrec.sink.otlp: " .. case[2], evrec.sink.otlp, case[1])
		end
	end)
end)

describe("a sink of evrec.sink.otlp", function()
	local listener, port

	before_each(function()
		listener = assert(io.popen "exec python3 spec/support/otlp_listener.py 2")
		port = listener:read "*l"
	end)
	after_each(function() listener:close() end)

	--- The only record of the next request: its body, and its count.
	local function next_record()
		local records = cjson.decode(listener:read "*l").request.resourceLogs[1].scopeLogs[1].logRecords
		assert.equal(1, #records)
		for _, attribute in ipairs(records[1].attributes) do
			if attribute.key == "k8s.event.count" then
				return records[1].body.stringValue, attribute.value.intValue
			end
		end
	end

	it("counts occurrences until min_interval is over, and each record has the count by then", function()
		local clock = evrec.fake_clock(fixtures.now)
		local broadcaster = evrec.broadcaster { clock = clock, drive = "poll" }
		local watch = broadcaster:start_recording_to_sink(evrec.sink.otlp {
			endpoint = ("http://127.0.0.1:%s/v1/logs"):format(port), encoding = "json", compression = "none",
			batch = { delay = 0 }, min_interval = 60,
		})
		local recorder = broadcaster:new_recorder { component = "spec" }
		local function record()
			assert.is_true(recorder:event(fixtures.pod(), "Normal", "R", "m"))
		end
		record()
		assert.is_true(broadcaster:flush(5))
		assert.same({ "m", "1" }, { next_record() })
		for _ = 1, 4 do
			record()
		end
		local stats = watch:stats()
		assert.same({ "otlp", 1, 4, 0 }, { stats.name, stats.created, stats.counted, stats.pending })
		assert.is_nil(fixtures.sink_fault(stats))
		for i, counted in ipairs { 4, 0 } do
			clock:set(fixtures.now + 58 + i)
			broadcaster:poll()
			assert.equal(counted, watch:stats().counted)
		end
		assert.is_true(broadcaster:flush(5))
		assert.same({ "m", "5" }, { next_record() })
		stats = watch:stats()
		assert.same({ 1, 1, 3, 0 }, { stats.created, stats.patched, stats.coalesced, stats.counted })
		assert.is_nil(fixtures.sink_fault(stats))
		broadcaster:close(0)
	end)
end)

describe("lua/OTLP.md", function()
	local page, write, remove

	setup(function() page = tmpfiles.read "lua/OTLP.md" end)
	before_each(function()
		local _
		_, write, remove = tmpfiles.new()
	end)
	after_each(function() remove() end)

	local function blocks(language)
		local list = {}
		for block in page:gmatch("\n```" .. language .. "\n(.-)\n```\n") do
			list[#list + 1] = block
		end
		return list
	end

	it("begins with a script whose event reaches a receiver", function()
		local listener = assert(io.popen "exec python3 spec/support/otlp_listener.py 1")
		local port = listener:read "*l"
		local script = assert(io.popen(([[env OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:%s \
			OTEL_EXPORTER_OTLP_PROTOCOL=http/json OTEL_EXPORTER_OTLP_HEADERS=X-Key=a%%20b \
			OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=spec %s %s 2>&1]]):format(port, fixtures.lua,
			write("lua", blocks("lua")[1]))))
		assert.equal("", script:read "*a")
		script:close()
		local got = cjson.decode(listener:read "*l")
		listener:close()
		assert.equal("/v1/logs", got.path)
		assert.equal("a b", got.headers["x-key"])
		assert.equal("gzip", got.headers["content-encoding"])
		local logs = got.request.resourceLogs[1]
		local record, found = logs.scopeLogs[1].logRecords[1], {}
		for _, attributes in ipairs { logs.resource.attributes, record.attributes } do
			for _, attribute in ipairs(attributes) do
				found[attribute.key] = attribute.value.stringValue or tonumber(attribute.value.intValue)
			end
		end
		assert.equal("timeout: expected a number", record.body.stringValue)
		assert.equal(13, record.severityNumber)
		assert.equal("Warning", record.severityText)
		for name, value in pairs {
			["service.name"] = "my-operator", ["deployment.environment.name"] = "spec", ["k8s.object.kind"] = "ConfigMap",
			["k8s.object.name"] = "settings", ["k8s.object.api_version"] = "v1", ["k8s.namespace.name"] = "default",
			["k8s.event.reason"] = "BadValue", ["k8s.event.count"] = 1, reporting_controller = "my-operator",
		} do
			assert.equal(value, found[name], name)
		end
		assert.matches("^settings%.%x+$", found["k8s.event.name"])
		-- The page names each attribute: in a cell, or as ".name" behind another one.
		for name in pairs(found) do
			local last = name:match "%.[^.]*$" or name
			assert.truthy(fixtures.has(page, "`" .. name .. "`") or fixtures.has(page, "`" .. last .. "`"), name)
		end
	end)

	it("tells the options that the sink takes, in the order of the types", function()
		local told, typed, types = {}, {}, tmpfiles.read "lua/evrec/meta.lua"
		for cell in page:match "| option | default | |\n(.-)\n\n":gmatch "([^\n]+)" do
			for name in cell:match "^|([^|]*)|":gmatch "`([%w_]+)`" do
				told[#told + 1] = name
				local _, message = pcall(evrec.sink.otlp, { [name] = print })
				assert.truthy(fixtures.has(message, ("option '%s': expected"):format(name)), message)
			end
		end
		for name in types:match "@class evrec.OtlpOptions[^\n]*\n(.-)\n\n":gmatch "@field ([%w_]+)" do
			typed[#typed + 1] = name
		end
		assert.same(typed, told)
		assert.equal(12, #told)
	end)

	it("has YAML whose pipelines name what is defined", function()
		local lyaml = require "lyaml"
		local yaml = blocks "yaml"
		assert.equal(4, #yaml)
		local receivers = lyaml.load(yaml[1])
		for i = 2, 4 do
			local exporter = lyaml.load(yaml[i])
			local pipeline = exporter.service.pipelines.logs
			assert.is_not_nil(receivers.receivers[pipeline.receivers[1]])
			assert.is_not_nil(exporter.exporters[pipeline.exporters[1]])
		end
		local collector = lyaml.load(tmpfiles.read "examples/nginx/collector.yaml")
		assert.same({ "otlp" }, collector.service.pipelines.logs.receivers)
		assert.same({ "debug" }, collector.service.pipelines.logs.exporters)
		assert.is_not_nil(collector.exporters.debug)
		assert.equal("127.0.0.1:4318", collector.receivers.otlp.protocols.http.endpoint)
	end)
end)
