-- Recording allocates no Lua memory, and so causes no work for the collector. spec/unit/recorder/no_alloc_test.c checks
-- the memory of the core.
local evrec = require "evrec"
local fixtures = require "fixtures"

local EVENTS = 200

describe("Lua's memory while recording", function()
	local broadcaster, recorder

	before_each(function()
		broadcaster = evrec.broadcaster { clock = evrec.fake_clock(1700000000), on_error = false }
		broadcaster:start_recording_to_sink(evrec.sink.lua {
			create = function() return true end,
			patch = function() return true end,
		})
		recorder = broadcaster:new_recorder { component = "test", host = "node-1" }
		fixtures.interpret()
	end)

	after_each(function()
		collectgarbage "restart"
		broadcaster:shutdown(0)
	end)

	-- Returns the kilobytes by which Lua's memory grew while events with these messages, in turn, were recorded.
	local function growth(object, messages)
		local function record()
			for i = 1, EVENTS do
				assert(recorder:event(object, "Normal", "Counted", messages[i % #messages + 1]))
			end
		end
		collectgarbage()
		collectgarbage "stop"
		record() -- the collector has shrunk Lua's stack, which grows again
		local before = collectgarbage "count"
		record()
		return collectgarbage "count" - before
	end

	local reference = { kind = "Pod", apiVersion = "v1", namespace = "shop", name = "web-0", uid = "4711" }
	local whole = {
		kind = "Pod", apiVersion = "v1", metadata = { namespace = "shop", name = "web-0", uid = "4711" },
	}
	local similar = {}
	for i = 1, EVENTS do
		similar[i] = ("message %03d"):format(i)
	end

	for what, object in pairs {
		["a reference's table"] = function() return reference end,
		["a whole object"] = function() return whole end,
		["evrec.reference"] = function() return evrec.reference(reference) end,
	} do
		it("does not grow with the same event about " .. what, function()
			assert.equal(0, growth(object(), { "message" }))
		end)

		it("does not grow with similar events about " .. what, function()
			assert.equal(0, growth(object(), similar))
		end)
	end
end)
