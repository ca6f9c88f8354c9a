-- One event as a real API server shows it through both APIs, and as evrec converts it.
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"

local apis = { "v1", "events.k8s.io/v1" }
local groups = { ["v1"] = "/api/v1", ["events.k8s.io/v1"] = "/apis/events.k8s.io/v1" }

describe("an event on an API server", function()
	local namespace

	setup(function() namespace = cluster.namespace() end)
	teardown(function() cluster.delete_namespace(namespace) end)

	-- Returns the stored event as one of the APIs shows it.
	local function shown(api, name)
		local path = ("%s/namespaces/%s/events/%s"):format(groups[api], namespace, name)
		return cjson.decode(cluster.kubectl("get", "--raw", path))
	end

	-- Returns a copy without what evrec leaves out: null, empty strings and structs, and metadata that it does not know.
	local function known(value)
		if type(value) ~= "table" then
			return value ~= cjson.null and value ~= "" and value or nil
		end
		local copy = {}
		for key, field in pairs(value) do
			copy[key] = known(field)
		end
		return next(copy) ~= nil and copy or nil
	end

	local function check(fields)
		local path = ("%s/%s.json"):format(cluster.scratch, fields.metadata.name)
		local file = assert(io.open(path, "w"))
		file:write(cjson.encode(fields))
		file:close()
		cluster.kubectl("create", "-f", path)
		os.remove(path)
		for _, api in ipairs(apis) do
			local event = evrec.event(shown(api, fields.metadata.name))
			for _, other in ipairs(apis) do
				local expected = known(shown(other, fields.metadata.name))
				local metadata = expected.metadata
				metadata.uid, metadata.creationTimestamp, metadata.managedFields = nil, nil, nil
				assert.same(expected, event:to_table(other))
			end
		end
	end

	local function reference(name)
		return { kind = "Pod", apiVersion = "v1", namespace = namespace, name = name, uid = "u", resourceVersion = "7",
			fieldPath = "spec" }
	end

	it("in the old style is the same in both APIs", function()
		check { kind = "Event", apiVersion = "v1",
			metadata = { name = "old", namespace = namespace, labels = { a = "b" }, annotations = { c = "d" } },
			involvedObject = reference "web-0", reason = "R", message = "m", type = "Warning", count = 3,
			source = { component = "c", host = "h" }, firstTimestamp = "2023-11-14T22:13:20Z",
			lastTimestamp = "2023-11-14T22:14:20Z", reportingComponent = "c", reportingInstance = "h" }
		check { kind = "Event", apiVersion = "v1", metadata = { name = "bare", namespace = namespace },
			involvedObject = { kind = "Pod", namespace = namespace } }
	end)

	it("with a series is the same in both APIs", function()
		check { kind = "Event", apiVersion = "events.k8s.io/v1", metadata = { name = "new", namespace = namespace },
			regarding = reference "web-0", related = reference "web-1", reason = "R", action = "A", note = "n",
			type = "Normal", eventTime = "2023-11-14T22:13:20.000001Z", reportingController = "c", reportingInstance = "i",
			series = { count = 2, lastObservedTime = "2023-11-14T22:13:21.123456Z" } }
	end)
end)
