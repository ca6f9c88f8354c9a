local evrec = require "evrec"
local cjson = require "cjson"
local fixtures = require "fixtures"

local pod = fixtures.pod()
local unpack = table.unpack or unpack

describe("recorder:action_eventf", function()
	it("records an event with a related object, a reason, an action and a formatted note", function()
		local s = fixtures.recording()
		local node = { kind = "Node", name = "n" }
		assert.is_true(s.recorder:action_eventf(pod, node, "Warning", "Evicted", "Evicting", "%s of %d", "disk", 5))
		local e = s.last()
		assert.same(pod, e.involvedObject)
		assert.same(node, e.related)
		assert.equal("Warning", e.type)
		assert.equal("Evicted", e.reason)
		assert.equal("Evicting", e.action)
		assert.equal("disk of 5", e.message)
		for _, unset in pairs { none = false, null = cjson.null } do
			assert.is_true(s.recorder:action_eventf(evrec.reference(pod), unset or nil, "Normal", "R", unset or nil, "m"))
			e = s.last()
			assert.same(pod, e.involvedObject)
			assert.is_nil(e.related)
			assert.is_nil(e.action)
			assert.equal("m", e.message)
		end
	end)

	it("names related first if it was forgotten", function()
		local s = fixtures.recording()
		local expected = "related: expected an object, a reference or nil, got string"
		for _, call in ipairs {
			{ "Warning", "R", "A", "m", n = 4 }, { "Warning", "R", "A", "%s", "x", n = 5 }, { "Warning", "R", nil, "m", n = 4 },
		} do
			local ok, message, name = s.recorder:action_eventf(pod, unpack(call, 1, call.n))
			assert.is_nil(ok)
			assert.equal(expected, message)
			assert.equal("invalid", name)
		end
		local _, message = s.recorder:emit { regarding = pod, related = "x", type = "Normal", reason = "R", note = "m" }
		assert.equal(expected, message)
	end)
end)

describe("a recorder's instance", function()
	it("is stamped on its events, and is by default its host", function()
		local s = fixtures.recording()
		local b = s.broadcaster
		for _, case in ipairs {
			{ { component = "c", host = "h" }, "h" }, { { component = "c", host = "h", instance = "i" }, "i" },
			{ { component = "c", instance = "i" }, "i" }, { { component = "c" } },
		} do
			b:new_recorder(case[1]):event(pod, "Normal", "R", "m")
			local e = s.last()
			assert.equal(case[2], e.reportingInstance)
			assert.equal("c", e.reportingComponent)
			assert.equal(case[1].host, e.source.host)
		end
	end)
end)
