-- Reading events: sources, iterators, filters as people write them, times and kinds.
local cjson = require "cjson"
local evrec = require "evrec"
local kinds = require "evrec.kinds"
local times = require "evrec.times"

-- The sources that can be read without a cluster, and the sinks that write them.
local sources = {
	lines = { evrec.lines, evrec.sink.file },
	-- The events are of 2023.
	store = { evrec.store, function(options)
		options.keep = 1e9
		return evrec.sink.store(options)
	end },
}

for name, of in next, sources do describe("evrec." .. name, function()
	local open, sink = of[1], of[2]
	local path, broadcaster, recorder

	before_each(function()
		path = os.tmpname()
		os.remove(path)
		broadcaster = evrec.broadcaster {}
		broadcaster:start_recording_to_sink(sink { path = path })
		recorder = broadcaster:new_recorder { component = "shopd", host = "node-1" }
	end)

	after_each(function()
		broadcaster:shutdown(2)
		for _, suffix in ipairs { "", "-wal", "-shm" } do
			os.remove(path .. suffix)
		end
	end)

	local function record(fields)
		local regarding = fields.regarding or { kind = "Pod", namespace = "shop", name = "web-0", uid = "u0" }
		assert(recorder:emit {
			regarding = regarding, related = fields.related, type = fields.type or "Normal",
			reason = fields.reason or "Pulled", action = fields.action, note = fields.note or "said",
			timestamp = fields.timestamp or 1700000000,
		})
	end

	-- Five events, whose reasons are A to E.
	local function record_five()
		record { reason = "A", timestamp = 1700000010 }
		record { reason = "B", type = "Warning", timestamp = 1700000030 }
		record { reason = "C", regarding = { kind = "Deployment", apiVersion = "apps/v1", namespace = "shop", name = "web" },
			related = { kind = "Pod", namespace = "shop", name = "web-0" }, timestamp = 1700000020 }
		record { reason = "D", action = "Scale", regarding = { kind = "Pod", namespace = "other", name = "db-0" },
			timestamp = 1700000050 }
		record { reason = "E", regarding = { kind = "Gadget", namespace = "shop", name = "g" }, timestamp = 1700000040 }
		assert(broadcaster:flush(5))
	end

	-- The reasons that a query finds, in their order.
	local function found(query)
		local reasons = {}
		for event in assert(open { path = path }:query(query)) do
			reasons[#reasons + 1] = event.reason
		end
		return table.concat(reasons)
	end

	it("gives each event once, with its text", function()
		record_five()
		record { reason = "A", timestamp = 1700000060 }
		assert(broadcaster:flush(5))
		local seen = 0
		for event, json, deleted in assert(open { path = path }:query { reason = "A" }) do
			assert.equal(2, event.count)
			assert.equal("web-0", event.involvedObject.name)
			assert.same(cjson.decode(event:to_json()), cjson.decode(json))
			assert.equal("A", event:to_table().reason)
			assert.equal(false, deleted)
			seen = seen + 1
		end
		assert.equal(1, seen)
	end)

	it("orders and limits", function()
		record_five()
		assert.equal("DEBCA", found {})
		assert.equal("DEBCA", found())
		assert.equal("ACBED", found { order = "oldest" })
		assert.equal("DE", found { limit = 2 })
	end)

	it("selects by each filter", function()
		record_five()
		assert.equal("EBCA", found { namespace = "shop" })
		assert.equal("BA", found { for_object = "pod/web-0" })
		assert.equal("BA", found { for_object = "po/web-0" })
		assert.equal("C", found { for_object = "deploy/web" })
		assert.equal("C", found { for_object = "deployments.apps/web" })
		assert.equal("", found { for_object = "statefulset/web" })
		assert.equal("E", found { for_object = "gadget/g" })
		assert.equal("BA", found { for_object = { uid = "u0" } })
		assert.equal("BCA", found { mentions = "pods/web-0" })
		assert.equal("BCA", found { mentions = { kind = "POD", name = "web-0" } })
		assert.equal("DEBCA", found { controller = "shopd" })
		assert.equal("", found { controller = "other" })
		assert.equal("DEBCA", found { instance = "node-1" })
		assert.equal("B", found { types = { "Warning" } })
		assert.equal("DEBCA", found { types = { "Warning", "Normal" } })
		assert.equal("C", found { reason = "C" })
		assert.equal("D", found { action = "Scale" })
		assert.equal("DEB", found { since = 1700000030 })
		assert.equal("CA", found { before = 1700000030 })
		assert.equal("CA", found { before = "2023-11-14T22:13:50Z" })
		assert.equal("", found { since = "1h" })
		assert.equal("DEBCA", found { before = "1h" })
		assert.equal("DECA", found { field_selector = "type!=Warning" })
		assert.equal("BA", found { field_selector = "involvedObject.name=web-0,source=shopd" })
	end)

	it("watches from now on, and ends after the time of silence", function()
		record { reason = "A" }
		assert(broadcaster:flush(5))
		local iterate = assert(open { path = path }:watch { timeout = 0.3, types = { "Normal" } })
		for _ = 1, 2 do
			record { reason = "B" }
			record { reason = "C", type = "Warning" }
			assert(broadcaster:flush(5))
		end
		local told = {}
		for event in iterate do
			told[#told + 1] = event.reason .. event.count
		end
		-- A store tells the last of several changes.
		assert.equal("B2", told[#told])
		assert.equal(name == "lines" and "B1" or nil, told[#told - 1])
		assert.equal(nil, (iterate()))
	end)

	it("knows times as exactly as its file has them", function()
		record { reason = "A", timestamp = 1700000010.5 }
		assert(broadcaster:flush(5))
		assert.equal(name == "store" and "A" or "", found { since = 1700000010.25 })
		assert.equal("A", found { since = 1700000010 })
	end)

	it("finds an event by its own time, to the microsecond", function()
		local clock = evrec.fake_clock(1700000000)
		local by_series = evrec.broadcaster { clock = clock }
		by_series:start_recording_to_sink(sink { path = path, api = "events.k8s.io/v1" })
		for i = 1, 20 do
			clock:set(1700000000 + i + i * 0.048611)
			by_series:new_recorder { component = "shopd", host = "h" }:action_eventf(
				{ kind = "Pod", apiVersion = "v1", namespace = "shop", name = "p" .. i }, nil, "Normal", "R" .. i, "A", "m")
		end
		assert(by_series:flush(5))
		for event in assert(open { path = path }:query()) do
			local number = times.parse(event.eventTime)
			for _, time in ipairs { event.eventTime, number } do
				assert.equal(event.reason, found { since = time, reason = event.reason })
				assert.equal("", found { before = time, reason = event.reason })
			end
		end
		by_series:shutdown(5)
	end)

	it("finds what was recorded after a time of the clock", function()
		local clock, prepared, begun = evrec.clock(), {}, {}
		for i = 1, 25 do
			prepared[i] = recorder:prepare {
				regarding = { kind = "Pod", namespace = "shop", name = "p" }, type = "Normal", reason = "R" .. i, note = "m",
			}
		end
		for i = 1, 25 do
			begun[i] = clock:now()
			prepared[i]:record()
		end
		assert(broadcaster:flush(5))
		for i = 1, 25 do
			-- Lines have whole seconds.
			local since = name == "store" and begun[i] or math.floor(begun[i])
			assert.equal("R" .. i, found { since = since, reason = "R" .. i })
		end
	end)

	it("returns nil, message, name if there is no such file", function()
		local iterate, message, code = open { path = path .. "-none" }:query {}
		assert.equal(nil, iterate)
		assert.matches("No such file", message)
		assert.equal("system", code)
	end)

	it("takes a path", function()
		assert.error_matches(function() open {} end, "evrec." .. name .. ": .*'path'")
		assert.error_matches(function() open { path = "" } end, "evrec." .. name .. ": option 'path'")
	end)
end) end

describe("evrec.lines", function()
	local path

	before_each(function() path = os.tmpname() end)
	after_each(function() os.remove(path) end)

	it("raises on misuse, and names the option", function()
		local source = evrec.lines { path = path }
		local function refuses(query, message)
			for _, method in ipairs { "query", "watch" } do
				local ok, why = pcall(source[method], source, query)
				assert.equal(false, ok)
				assert.matches("source:" .. method .. ": " .. message, why)
			end
		end
		refuses(7, "expected a table of options, got number")
		refuses({ reasn = "x" }, "unknown option 'reasn': did you mean 'reason'")
		refuses({ reason = 7 }, "option 'reason': expected a string, got number")
		refuses({ types = "Normal" }, "option 'types': expected a list of strings, got string")
		refuses({ types = { "" } }, "option 'types'")
		refuses({ for_object = "web-0" }, "option 'for_object': expected KIND/NAME, got 'web%-0'")
		refuses({ mentions = "pod/" }, "option 'mentions': expected KIND/NAME")
		refuses({ mentions = { nam = "x" } }, "unknown option 'mentions%.nam'")
		refuses({ for_object = ".example.com/g" }, "option 'for_object': unknown kind '%.example%.com'")
		refuses({ since = "yesterday" }, "option 'since': .*got 'yesterday'")
		refuses({ before = true }, "option 'before': .*got boolean")
		refuses({ before = -1 }, "option 'before'")
		refuses({ field_selector = "related.name=x" }, "option 'field_selector': .*'related.name'")
		assert.error_matches(function() source:query { order = "sideways" } end,
			"option 'order': expected \"newest\" or \"oldest\"")
		assert.error_matches(function() source:query { limit = 0 } end, "option 'limit'")
		assert.error_matches(function() source:query { timeout = 1 } end, "unknown option 'timeout'")
		assert.error_matches(function() source:watch { limit = 1 } end, "unknown option 'limit'")
		assert.error_matches(function() source:watch { timeout = "1" } end, "option 'timeout': expected a number")
		for _, timeout in ipairs { -1, 0 / 0, math.huge } do
			assert.error_matches(function() source:watch { timeout = timeout } end,
				"option 'timeout': expected a finite number of seconds >= 0, got")
		end
		assert.error_matches(function() source:query { since = "3000w" } end, "option 'since': '3000w' is before 1970")
		local ok, why = pcall(function() source:query { reasn = "x" } end)
		assert.falsy(ok)
		assert.matches("read_spec%.lua:%d+: source:query", why)
	end)

	it("returns nil, message, name if it cannot begin", function()
		local file = assert(io.open(path, "w"))
		file:write "hello\n"
		file:close()
		local iterate, message, name = evrec.lines { path = path }:query {}
		assert.equal(nil, iterate)
		assert.equal(path .. ": line 1 is no event", message)
		assert.equal("invalid", name)
	end)

	it("raises on an error in the middle, at the loop", function()
		local iterate = assert(evrec.lines { path = path }:watch { timeout = 5 })
		local file = assert(io.open(path, "a"))
		file:write "hello\n"
		file:close()
		local ok, message = pcall(function()
			for _ in iterate do end
		end)
		assert.falsy(ok)
		assert.matches("read_spec%.lua:%d+: [^\n]+: line 1 is no event", message)
	end)

	it("lets hooks interrupt a watch that waits", function()
		local iterate = assert(evrec.lines { path = path }:watch {})
		local calls = 0
		debug.sethook(function()
			calls = calls + 1
			if calls > 20 then
				debug.sethook()
				error "interrupted"
			end
		end, "c")
		local ok, message = pcall(iterate)
		debug.sethook()
		assert.falsy(ok)
		assert.matches("interrupted", message)
	end)
end)

describe("evrec.cluster", function()
	it("takes the options of the sink, and raises on misuse", function()
		assert.error_matches(function() evrec.cluster { sever = "x" } end, "evrec.cluster: unknown option 'sever'")
		assert.error_matches(function() evrec.cluster { server = "ftp://x" } end, "evrec.cluster: option 'server'")
	end)

	it("returns nil, message, name if the server cannot be reached", function()
		local iterate, message, name = evrec.cluster { server = "http://127.0.0.1:1" }:watch {}
		assert.equal(nil, iterate)
		assert.matches("127.0.0.1", message)
		assert.equal("system", name)
	end)
end)

describe("times", function()
	it("are numbers, durations ago, or RFC 3339", function()
		local now = 1700000000
		local cases = {
			[1234.5] = 1234.5, ["90m"] = now - 5400, ["2h30m"] = now - 9000, ["7d"] = now - 604800, ["1w"] = now - 604800,
			["45s"] = now - 45, ["1.5h"] = now - 5400,
			["2023-11-14T22:13:20Z"] = now, ["2023-11-14T23:13:20+01:00"] = now, ["2023-11-14T22:13:20.5Z"] = now + 0.5,
			["2023-11-14T22:13:20"] = now, ["2023-11-14 22:13:20"] = now, ["2023-11-14"] = now - 80000,
		}
		for text, seconds in next, cases do
			assert.equal(seconds, times.parse(text, now), text)
		end
		for _, text in ipairs { "", "7", "m", "7 d", "-1h", "1h-", "2023", "2023-13-01", "2023-11-14T22", "now" } do
			assert.equal(nil, times.parse(text, now), text)
		end
		assert.equal(nil, times.parse({}, now))
	end)
end)

describe("kinds", function()
	it("have kubectl's names", function()
		local cases = {
			po = "Pod", POD = "Pod", pods = "Pod", ["pods.v1"] = "Pod",
			deploy = "Deployment", ["deployments.apps"] = "Deployment",
			["deployments.v1.apps"] = "Deployment", cj = "CronJob", ing = "Ingress", ["ing.networking"] = "Ingress",
			ep = "Endpoints", no = "Node", pvc = "PersistentVolumeClaim", hpa = "HorizontalPodAutoscaler",
			crds = "CustomResourceDefinition", Endpoints = "Endpoints",
		}
		for name, kind in next, cases do
			assert.equal(kind, (kinds.find(name) or {}).kind, name)
		end
		for _, name in ipairs { "", "gadget", "pods.apps", "deployments.v2.apps", ".apps" } do
			assert.equal(nil, (kinds.find(name)), name)
		end
	end)

	it("are read as they are given if they are unknown, with their group", function()
		local cases = {
			Widget = { "Widget", nil, false }, ["widgets.example.com"] = { "widgets", "example.com/", false },
			["widgets.v1.example.com"] = { "widgets", "example.com/v1", true }, po = { "Pod", "v1", true },
		}
		for name, expected in next, cases do
			local kind = kinds.read(name)
			assert.same({ expected[1], expected[2], expected[3] }, { kind.kind, kind.api_version, kind.has_version }, name)
			assert.equal(name == "po", kind.built_in)
		end
		assert.equal(nil, kinds.read ".example.com")
	end)

	it("say whether their objects have a namespace", function()
		for name, namespaced in next, { po = true, no = false, ns = false, sc = false, ["clusterroles.rbac"] = false,
			roles = true } do
			assert.equal(namespaced, kinds.find(name).namespaced, name)
		end
		assert.equal(true, kinds.read "widgets.example.com".namespaced)
	end)

	it("say whether the group was given", function()
		local kind, with_group = kinds.find "deployment.apps"
		assert.equal("apps/v1", kind.api_version)
		assert.equal(true, with_group)
		assert.equal(false, select(2, kinds.find "deployment"))
	end)
end)
