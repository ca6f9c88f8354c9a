local evrec = require "evrec"
local fixtures = require "fixtures"

local pod = fixtures.pod()

describe("explain", function()
	it("lists the suppressed events of an object, with their stage and key, and when the next token comes", function()
		local s = fixtures.setup { correlator = { burst_size = 2, max_events = 2 } }
		for i = 1, 4 do
			s.recorder:event(pod, "Normal", "Started", "m" .. i)
			s.clock:advance(1)
		end
		local sinks = s.broadcaster:explain(pod)
		assert.equal(1, #sinks)
		assert.equal("lua", sinks[1].name)
		local aggregated, limited = sinks[1].suppressed[1], sinks[1].suppressed[2]
		assert.is_nil(sinks[1].suppressed[3])
		local object = { kind = "Pod", apiVersion = "v1", namespace = "shop", name = "web-0", uid = "uid-web-0" }
		assert.equal("aggregated", aggregated.stage)
		assert.equal("aggregated", aggregated.why)
		assert.equal("(combined from similar events): m2", aggregated.message)
		assert.equal(1, aggregated.count)
		assert.equal("Started", aggregated.aggregate_key.reason)
		assert.equal("spec", aggregated.aggregate_key.reportingComponent)
		assert.equal("rate_limited", limited.stage)
		assert.equal("rate_limited", limited.why)
		assert.is_nil(limited.cause)
		assert.same(object, limited.object)
		assert.equal("Normal", limited.type)
		assert.equal("Started", limited.reason)
		assert.equal("(combined from similar events): m4", limited.message)
		assert.equal(2, limited.count)
		assert.equal(fixtures.now + 2, limited.first)
		assert.equal(fixtures.now + 3, limited.last)
		object.component, object.host, object.type = "spec", "node-1", "Normal"
		assert.same(object, limited.spam_key)
		assert.is_true(limited.tokens > 0 and limited.tokens < 0.1)
		assert.is_true(limited.next_token_in > 290 and limited.next_token_in < 300)
		s.clock:advance(limited.next_token_in)
		limited = s.broadcaster:explain(pod)[1].suppressed[2]
		assert.is_true(limited.tokens > 0.999)
		assert.is_true(limited.next_token_in < 0.001)
	end)

	it("lists drops by cause", function()
		local s = fixtures.setup()
		s.server.answers[1] = function() return nil, 422 end
		s.recorder:event(pod, "Warning", "Failed", "m")
		s.broadcaster:poll()
		local what = s.broadcaster:explain(pod)[1].suppressed[1]
		assert.equal("dropped", what.stage)
		assert.equal(what.cause, what.why)
		assert.equal("rejected", what.cause)
		assert.equal("Failed", what.reason)
		assert.equal("Warning", what.type)
	end)

	it("takes an object, a reference, or nil for all objects, and lists each sink apart", function()
		local s = fixtures.setup { correlator = { burst_size = 1, qps = 0, spam_key_func = function(event)
			return "by " .. event.reason
		end } }
		s.broadcaster:start_recording_to_sink(fixtures.server().sink, { correlator = { burst_size = 100 } })
		for _ = 1, 2 do
			s.recorder:event(pod, "Normal", "A", "m")
			s.recorder:event(fixtures.pod "web-1", "Normal", "B", "m")
		end
		local b = s.broadcaster
		local whole = { kind = "Pod", metadata = { name = "web-0", namespace = "shop" } }
		for _, object in ipairs { pod, whole, evrec.reference(pod) } do
			local sinks = b:explain(object)
			assert.equal(1, #sinks[1].suppressed)
			assert.equal("by A", sinks[1].suppressed[1].spam_key)
			assert.equal(0, sinks[1].suppressed[1].tokens)
			assert.is_nil(sinks[1].suppressed[1].next_token_in)
			assert.equal(0, #sinks[2].suppressed)
		end
		assert.equal(2, #b:explain()[1].suppressed)
		assert.equal(0, #b:explain(fixtures.pod "web-2")[1].suppressed)
		b:shutdown(0)
		assert.equal(2, #b:explain()[1].suppressed)
	end)

	it("raises on misuse, and returns an error once the broadcaster is closed", function()
		local b = evrec.broadcaster { on_error = false }
		assert.same({}, b:explain(pod))
		assert.has_error(function() b:explain(1) end)
		assert.has_error(function() b:explain {} end)
		assert.has_error(function() b.explain({}, pod) end)
		for expected, call in pairs {
			["broadcaster:explain: object: expected an object or a reference, got string"] =
				function() local sinks = b:explain "pod" return sinks end,
			["broadcaster:explain: 'timeout': expected a number of seconds >= 0, got -1"] =
				function() local sinks = b:explain(nil, -1) return sinks end,
		} do
			local _, message = pcall(call)
			local place = debug.getinfo(call, "S")
			assert.equal(("%s:%d: %s"):format(place.short_src, place.linedefined, expected), message)
		end
		if fixtures.has_close then
			assert(load "local b <close> = ...")(b)
			local result, _, name = b:explain(pod)
			assert.is_nil(result)
			assert.equal("closed", name)
		end
	end)
end)
