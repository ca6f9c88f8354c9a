local evrec = require "evrec"
local cjson = require "cjson"

local core = {
	kind = "Event", apiVersion = "v1",
	metadata = {
		name = "web-0.1", namespace = "shop", resourceVersion = "12", labels = { app = "web" },
		annotations = { a = "1", b = "two" },
		ownerReferences = {
			{ kind = "Pod", apiVersion = "v1", name = "web-0", uid = "u", controller = true, blockOwnerDeletion = false },
			{ kind = "Node", apiVersion = "v1", name = "n", uid = "v" },
		},
	},
	involvedObject = { kind = "Pod", namespace = "shop", name = "web-0", uid = "u", apiVersion = "v1",
		resourceVersion = "3", fieldPath = "spec" },
	related = { kind = "Node", name = "n" },
	reason = "BackOff", message = "Back-off restarting", type = "Warning", action = "Restarting",
	source = { component = "kubelet", host = "n" },
	firstTimestamp = "2023-11-14T22:13:20Z", lastTimestamp = "2023-11-14T22:14:20Z",
	eventTime = "2023-11-14T22:13:20.123456Z", count = 3,
	series = { count = 2, lastObservedTime = "2023-11-14T22:13:21.000000Z" },
	reportingComponent = "kubelet", reportingInstance = "n",
}

local function fails(fields, part)
	local ok, message = pcall(evrec.event, fields)
	assert.is_false(ok)
	assert.truthy(message:find(part, 1, true), message)
end

describe("evrec.event", function()
	it("returns its fields unchanged, as a table and as JSON", function()
		local event = evrec.event(core)
		assert.same(core, event:to_table())
		assert.same(core, event:to_table("v1"))
		assert.same(core, cjson.decode(event:to_json()))
	end)

	it("understands the names of both APIs, and object", function()
		local names = {
			regarding = "involvedObject", object = "involvedObject", note = "message", deprecatedSource = "source",
			deprecatedFirstTimestamp = "firstTimestamp", deprecatedLastTimestamp = "lastTimestamp",
			deprecatedCount = "count", reportingController = "reportingComponent",
		}
		for other, name in pairs(names) do
			local fields = { kind = "Event" }
			fields[other] = core[name]
			assert.same(core[name], evrec.event(fields)[name], other)
			fields.apiVersion = "events.k8s.io/v1"
			assert.same(core[name], evrec.event(fields)[name], other)
			fields = { apiVersion = "events.k8s.io/v1", [name] = core[name] }
			assert.same(core[name], evrec.event(fields)[name], name)
			fields[other] = cjson.null
			assert.same(core[name], evrec.event(fields)[name], name)
			fields[other] = core[name]
			fails(fields, "are the same field: give one of them")
			assert.is_false(pcall(evrec.event, { [name] = core[name], [other] = core[name] }))
		end
		fails({ object = core.involvedObject, regarding = core.involvedObject },
			"evrec.event: 'regarding' and 'object' are the same field: give one of them")
		fails({ message = "m", note = "n" }, "evrec.event: 'message' and 'note' are the same field: give one of them")
		fails({ note = 5 }, "evrec.event: field 'note': expected a string, got number")
		local any = setmetatable({ message = "m" }, { __index = function(_, key) return key == "note" and "n" or nil end })
		assert.equal("m", evrec.event(any).message)
		assert.equal("n", evrec.event(setmetatable({}, { __index = { note = "n" } })).message)
	end)

	it("has its fields under their core/v1 names", function()
		local event = evrec.event(core)
		for key, value in pairs(core) do
			assert.same(value, event[key])
		end
		assert.equal("web-0", event.involvedObject.name)
		assert.is_nil(event.note)
		assert.is_nil(event.nonsense)
		assert.is_nil(event["reason\0"])
		assert.is_nil(event[1])
	end)

	it("returns a new table each time", function()
		local event = evrec.event(core)
		event.involvedObject.name = "changed"
		assert.equal("web-0", event.involvedObject.name)
	end)

	it("returns nil for unset fields", function()
		local event = evrec.event {}
		for _, key in ipairs { "reason", "message", "count", "eventTime", "firstTimestamp", "source", "series",
			"related", "involvedObject", "type", "action" } do
			assert.is_nil(event[key])
		end
		assert.same({ kind = "Event", apiVersion = "v1", metadata = {} }, event:to_table())
	end)

	it("converts to events.k8s.io/v1, and back", function()
		local event = evrec.event(core)
		local new = event:to_table("events.k8s.io/v1")
		assert.equal("events.k8s.io/v1", new.apiVersion)
		assert.equal("Back-off restarting", new.note)
		assert.same(core.involvedObject, new.regarding)
		assert.equal("kubelet", new.reportingController)
		assert.equal(3, new.deprecatedCount)
		assert.same(core.source, new.deprecatedSource)
		assert.is_nil(new.message)
		assert.same(new, cjson.decode(event:to_json("events.k8s.io/v1")))
		assert.same(core, evrec.event(new):to_table())
	end)

	it("refuses other APIs", function()
		local event = evrec.event(core)
		assert.has_error(function() event:to_table("events.k8s.io/v2") end)
		assert.has_error(function() event:to_json("") end)
	end)

	it("returns counts as integers", function()
		local count = evrec.event({ count = 3.0 }).count
		assert.equal(3, count)
		if math.type then
			assert.equal("integer", math.type(count))
		end
	end)

	it("treats JSON's null as unset", function()
		local event = evrec.event {
			eventTime = cjson.null, related = cjson.null, metadata = { labels = cjson.null, name = "x" }, count = cjson.null,
		}
		assert.same({ name = "x" }, event.metadata)
		assert.is_nil(event.count)
	end)

	it("reads an event that an API server sent", function()
		local event = evrec.event(cjson.decode(evrec.event(core):to_json()))
		assert.same(core, event:to_table())
	end)

	it("returns an event unchanged", function()
		local event = evrec.event(core)
		assert.equal(event, evrec.event(event))
	end)

	it("is read-only, and raises a message that says so", function()
		local event = evrec.event(core)
		local ok, message = pcall(function() event.reason = "x" end)
		assert.is_false(ok)
		assert.truthy(message:find("read-only", 1, true))
	end)

	it("converts to a string for people", function()
		local text = tostring(evrec.event(core))
		assert.truthy(text:find("Warning BackOff Pod shop/web-0 x3: Back-off restarting", 1, true), text)
		assert.equal("string", type(tostring(evrec.event {})))
	end)

	it("replaces invalid UTF-8 in its JSON", function()
		local event = evrec.event { message = "a\255b\0c" }
		assert.equal("a\239\191\189b\0c", cjson.decode(event:to_json()).message)
		assert.equal("a\255b\0c", event.message)
	end)

	it("refuses fields of wrong types, and names the field", function()
		fails(nil, "evrec.event: expected a table, got nil")
		fails(5, "evrec.event: expected a table, got number")
		fails({ reason = 5 }, "evrec.event: field 'reason': expected a string, got number")
		fails({ kind = 5 }, "field 'kind'")
		fails({ apiVersion = {} }, "field 'apiVersion'")
		fails({ involvedObject = { kind = 5 } }, "evrec.event: field 'involvedObject.kind': expected a string, got number")
		fails({ involvedObject = "Pod" }, "field 'involvedObject': expected a table, got string")
		fails({ metadata = { labels = { a = 1 } } }, "field 'metadata.labels'")
		fails({ metadata = { annotations = { "a" } } }, "field 'metadata.annotations'")
		fails({ metadata = { annotations = "a" } }, "field 'metadata.annotations'")
		fails({ metadata = { ownerReferences = { { controller = 1 } } } }, "ownerReferences")
		fails({ metadata = { ownerReferences = { "x" } } }, "ownerReferences")
		fails({ source = { host = true } }, "field 'source.host'")
		fails({ series = { count = "2" } }, "field 'series.count'")
		fails({ firstTimestamp = "yesterday" }, "field 'firstTimestamp': expected an RFC 3339 time")
		fails({ eventTime = 5 }, "field 'eventTime'")
	end)

	it("refuses invalid counts", function()
		for _, count in ipairs { -1, 1.5, 2 ^ 31, 0 / 0, 1 / 0, "3" } do
			fails({ count = count }, "field 'count'")
		end
		assert.equal(2 ^ 31 - 1, evrec.event({ count = 2 ^ 31 - 1 }).count)
	end)

	it("refuses cyclic tables", function()
		local cyclic = {}
		cyclic.metadata = cyclic
		cyclic.name = cyclic
		fails(cyclic, "field 'metadata.name'")
	end)

	it("holds thousands of labels", function()
		local labels = {}
		for i = 1, 5000 do
			labels["label-" .. i] = "value-" .. i
		end
		assert.same(labels, evrec.event({ metadata = { labels = labels } }).metadata.labels)
	end)
end)
