-- Reading events from a real API server: lists in pages, filters, and a watch that outlives what the server remembers.
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local kinds = require "evrec.kinds"

describe("evrec.cluster", function()
	if not cluster.dir then
		pending "skipped: the accounts of $KUBECONFIG are not known"
		return
	end

	local namespace, source, broadcaster, recorder
	local n = 1200 -- three pages
	local types, reasons, actions = { "Normal", "Warning" }, { "Pulled", "Killing", "BackOff" }, { "Pull", "Kill" }

	local function kind(i)
		return i % 7 == 0 and { kind = "Deployment", api_version = "apps/v1" } or { kind = "Pod", api_version = "v1" }
	end

	local function record(i)
		local of = kind(i)
		assert(recorder:emit {
			regarding = {
				kind = of.kind, apiVersion = of.api_version, namespace = namespace, name = "o-" .. i, uid = "u-" .. i,
			},
			related = i % 5 == 0 and { kind = "Pod", apiVersion = "v1", namespace = namespace, name = "o-" .. (i + 1) } or nil,
			type = types[i % 2 + 1], reason = reasons[i % 3 + 1], action = actions[i % 2 + 1], note = "number " .. i,
			timestamp = 1700000000 + (i * 7919) % n,
		})
	end

	setup(function()
		namespace = cluster.namespace()
		broadcaster = evrec.broadcaster {}
		broadcaster:start_recording_to_sink(evrec.sink.kubernetes(cluster.connection "admin"))
		recorder = broadcaster:new_recorder { component = "reader-test", host = "here" }
		for i = 1, n do
			record(i)
		end
		assert(broadcaster:flush(60))
		source = evrec.cluster(cluster.connection "admin")
	end)

	teardown(function()
		broadcaster:shutdown(5)
		cluster.delete_namespace(namespace)
	end)

	local function names(query)
		query.namespace = namespace
		local found = {}
		for event in assert(source:query(query)) do
			found[#found + 1] = event.metadata.name
		end
		return found
	end

	local function last(event)
		return event.series and event.series.lastObservedTime or event.lastTimestamp or event.eventTime
	end

	-- The names of kubectl's events for which `wanted` holds, in the order of time.
	local function expected(wanted, oldest)
		local events = {}
		for _, event in ipairs(cluster.events(namespace)) do
			if wanted(event) then
				events[#events + 1] = event
			end
		end
		table.sort(events, function(a, b)
			if oldest then
				return last(a) < last(b)
			end
			return last(a) > last(b)
		end)
		for i, event in ipairs(events) do
			events[i] = event.metadata.name
		end
		return events
	end

	local function every()
		return true
	end

	it("lists in pages, the newest first", function()
		local found = names {}
		assert.equal(n, #found)
		assert.same(expected(every), found)
	end)

	it("lists the oldest first, and a limited number", function()
		local all, found = expected(every, true), names { order = "oldest", limit = 7 }
		assert.equal(7, #found)
		for i = 1, 7 do
			assert.equal(all[i], found[i])
		end
		assert.same({ all[n] }, names { limit = 1 })
	end)

	it("gives all fields of an event", function()
		for event, json in assert(source:query { namespace = namespace, for_object = "po/o-1" }) do
			local whole = cjson.decode(json)
			assert.equal("Event", whole.kind)
			assert.equal("v1", whole.apiVersion)
			assert.equal("u-1", event.involvedObject.uid)
			assert.equal("table", type(whole.metadata.managedFields))
		end
	end)

	local function contains(event, name)
		return event.involvedObject.name == name or (event.related and event.related.name == name)
	end
	local filters = {
		{ { for_object = "pods/o-3" }, function(e) return e.involvedObject.name == "o-3" end },
		{ { for_object = "deploy/o-7" }, function(e) return e.involvedObject.name == "o-7" end },
		{ { for_object = "deployments.apps/o-7" }, function(e) return e.involvedObject.name == "o-7" end },
		{ { for_object = "pods/o-7" }, function() return false end },
		{ { for_object = { uid = "u-4" } }, function(e) return e.involvedObject.uid == "u-4" end },
		{ { for_object = { kind = "deployment" } }, function(e) return e.involvedObject.kind == "Deployment" end },
		{ { mentions = "pod/o-6" }, function(e) return contains(e, "o-6") end },
		{ { controller = "reader-test" }, every },
		{ { controller = "other" }, function() return false end },
		{ { instance = "here" }, every },
		{ { types = { "Warning" } }, function(e) return e.type == "Warning" end },
		{ { types = { "Warning", "Normal" } }, every },
		{ { reason = "Killing" }, function(e) return e.reason == "Killing" end },
		{ { action = "Kill" }, function(e) return e.action == "Kill" end },
		{ { since = "2023-11-14T22:30:00Z" }, function(e) return last(e) >= "2023-11-14T22:30:00Z" end },
		{ { before = "2023-11-14T22:30:00Z" }, function(e) return last(e) < "2023-11-14T22:30:00Z" end },
		{ { field_selector = "type!=Normal,reason=BackOff" },
			function(e) return e.type ~= "Normal" and e.reason == "BackOff" end },
		{ { field_selector = "involvedObject.kind=Deployment" },
			function(e) return e.involvedObject.kind == "Deployment" end },
		{ { field_selector = "source=reader-test" }, every },
		{ { field_selector = "reportingComponent!=reader-test" }, function() return false end },
	}
	for i, case in ipairs(filters) do
		it("selects as a plain filter does, " .. i, function()
			assert.same(expected(case[2]), names(case[1]))
		end)
	end

	it("knows kinds by the server's discovery", function()
		local ok, message = pcall(source.query, source, { for_object = "gadgets/x" })
		assert.falsy(ok)
		assert.matches("option 'for_object': unknown kind 'gadgets'", message)
		assert.truthy(source:query { for_object = "selfsubjectreviews/x" })
	end)

	it("has built-in kinds as the server has them, and knows whether their objects have a namespace", function()
		local found = 0
		for line in cluster.kubectl("api-resources", "--no-headers"):gmatch "[^\n]+" do
			local plural, version, namespaced, name = line:match "^(%S+) .- (%S+) +(%a+) +(%a+) *$"
			local known = kinds.find(("%s.%s.%s"):format(plural, version:match "[^/]+$", version:match "^(.*)/" or ""))
			if known then
				assert.same({ name, namespaced }, { known.kind, tostring(known.namespaced) }, plural)
				found = found + 1
			end
		end
		assert.is_true(found > 50, found)
	end)

	it("tells what the server refuses", function()
		local iterate, message, name = evrec.cluster(cluster.connection "nobody"):query { namespace = namespace }
		assert.falsy(iterate)
		assert.matches("403: .*forbidden", message)
		assert.equal("system", name)
		iterate, message = evrec.cluster(cluster.connection "nobody"):watch { namespace = namespace }
		assert.falsy(iterate)
		assert.matches("403: .*forbidden", message)
	end)

	-- The next `count` changes of a watch, as "NAME of the object, count".
	local function take(iterate, count)
		local told = {}
		for i = 1, count do
			local event, _, deleted = iterate()
			if not event then
				break
			end
			told[i] = ("%s x%d%s"):format(event.involvedObject.name, event.count, deleted and " deleted" or "")
		end
		return told
	end

	local function tell(name)
		assert(recorder:event({ kind = "Pod", namespace = namespace, name = name }, "Normal", "Watched", name))
		assert(broadcaster:flush(20))
	end

	it("watches creations, changes and deletions that match", function()
		local iterate = assert(source:watch { namespace = namespace, reason = "Watched", timeout = 20 })
		tell "w-1"
		tell "w-1"
		record(3)
		assert(broadcaster:flush(20))
		tell "w-2"
		cluster.kubectl("delete", "events", "-n", namespace, "--field-selector", "involvedObject.name=w-1")
		assert.same({ "w-1 x1", "w-1 x2", "w-2 x1", "w-1 x2 deleted" }, take(iterate, 4))
	end)

	it("ends after the time of silence", function()
		local iterate = assert(source:watch { namespace = namespace, timeout = 0.4 })
		assert.falsy(iterate())
	end)

	it("goes on behind a 410 without losing or repeating a change", function()
		local iterate = assert(source:watch { namespace = namespace, reason = "Watched", timeout = 30 })
		tell "a"
		tell "b"
		assert.same({ "a x1", "b x1" }, take(iterate, 2))
		cluster.control "restart"
		tell "c"
		tell "a"
		tell "d"
		local url = cluster.read(cluster.dir .. "/etcd.url"):match "%S+"
		local version = cjson.decode(cluster.kubectl("get", "--raw",
			"/api/v1/namespaces/" .. namespace .. "/events?limit=1")).metadata.resourceVersion
		local output, ok = cluster.run { "curl", "-sSf", "--noproxy", "*", "-d",
			('{"revision":"%s"}'):format(version), url .. "/v3/kv/compaction" }
		assert(ok, output)
		assert.same({ "c x1", "a x2", "d x1" }, take(iterate, 3))
		tell "e"
		assert.same({ "e x1" }, take(iterate, 1))
	end)
end)
