-- How many writes may wait for a sink, how long, and which are dropped first.
local evrec = require "evrec"
local fixtures = require "fixtures"

local nan, inf = 0 / 0, 1 / 0

describe("the limits of a sink", function()
	local s

	--- Makes a broadcaster with a sink in Lua, which answers as the function `s.answer` does, or, if it is nil,
	--- succeeds.
	local function setup(limits)
		s = { writes = {}, drops = {}, errors = {}, clock = evrec.fake_clock(fixtures.now) }
		local function write(event)
			s.writes[#s.writes + 1] = event.involvedObject.name
			if s.answer then
				return s.answer(event)
			end
		end
		limits.create = write
		s.broadcaster = evrec.broadcaster {
			clock = s.clock,
			on_drop = function(event, why) s.drops[#s.drops + 1] = event.involvedObject.name .. " " .. why end,
			on_error = function(_, name) s.errors[#s.errors + 1] = name end,
		}
		s.watch = s.broadcaster:start_recording_to_sink(evrec.sink.lua(limits))
		s.recorder = s.broadcaster:new_recorder { component = "spec" }
	end

	local function record(name, kind, namespace)
		local object = fixtures.pod(name)
		object.namespace = namespace or object.namespace
		assert.is_true(s.recorder:event(object, kind or "Normal", "R", "m"))
		assert.is_nil(fixtures.fault(s.broadcaster:stats()))
	end

	local function poll()
		s.broadcaster:poll()
		assert.is_nil(fixtures.fault(s.broadcaster:stats()))
	end

	it("are refused out of their range, and the message names the option", function()
		local wrong = {
			max_pending = { 0, -1, 1.5, 1e8, nan, inf, "5", {} },
			max_pending_bytes = { 0, -1, 1.5, 1e30, nan, inf, "5", {} },
			max_age = { -1, nan, inf, 1e12, "5", {} },
			max_tries = { -1, 1.5, 1e10, nan, inf, "5", {} },
			full = { "", "drop", "drop_newest\0", "DROP_OLDEST", "wait", 5, true, {} },
		}
		local sinks = {
			file = { path = "-" },
			lua = { create = print },
			kubernetes = { server = "https://s" },
		}
		for name, required in pairs(sinks) do
			for option, values in pairs(wrong) do
				for _, value in ipairs(values) do
					local options = { [option] = value }
					for key, given in pairs(required) do
						options[key] = given
					end
					local ok, message = pcall(evrec.sink[name], options)
					assert.is_false(ok)
					assert.truthy(fixtures.has(message, ("evrec.sink.%s: option '%s'"):format(name, option)), message)
				end
			end
			for _, full in ipairs { "drop_newest", "drop_oldest" } do
				local options = { max_pending = 1, max_pending_bytes = 1, max_age = 0, max_tries = 0, full = full }
				for key, given in pairs(required) do
					options[key] = given
				end
				assert.equal("userdata", type(evrec.sink[name](options)))
			end
		end
	end)

	it("keep the oldest writes by default, and Warnings above all", function()
		setup { max_pending = 2 }
		record "a"
		record "b"
		record "c"
		record("d", "Warning")
		poll()
		assert.same({ "a", "d" }, s.writes)
		assert.same({ "c queue_full", "b queue_full" }, s.drops)
		assert.equal(2, s.watch:stats().dropped.queue_full)
	end)

	it("drop the oldest writes if full is drop_oldest, Warnings last", function()
		setup { max_pending = 2, full = "drop_oldest" }
		record("a", "Warning")
		record "b"
		record "c"
		record "d"
		poll()
		assert.same({ "a", "d" }, s.writes)
		assert.same({ "b queue_full", "c queue_full" }, s.drops)
		record("e", "Warning")
		record("f", "Warning")
		record("g", "Normal")
		record("h", "Warning")
		poll()
		assert.same({ "a", "d", "f", "h" }, s.writes)
		assert.same({ "g queue_full", "e queue_full" }, { s.drops[3], s.drops[4] })
	end)

	it("bound the memory of waiting writes", function()
		setup {}
		record "a"
		local each = s.watch:stats().pending_bytes
		assert.is_true(each > 500 and each < 3000, each)
		poll()
		assert.equal(0, s.watch:stats().pending_bytes)
		setup { max_pending_bytes = 2 * each }
		record "a"
		record "b"
		record "c"
		assert.same({ "c queue_full" }, s.drops)
		assert.equal(2 * each, s.watch:stats().pending_bytes)
		assert.truthy(fixtures.has(s.broadcaster:metrics(),
			('evrec_sink_pending_bytes{sink="1",name="lua"} %d'):format(2 * each)))
	end)

	it("drop a write max_age after its last occurrence", function()
		setup { max_age = 60 }
		s.answer = function() return nil, 503, 300 end
		record "a"
		record "b"
		poll()
		s.clock:advance(50)
		record "b"
		s.clock:advance(10)
		poll()
		assert.same({}, s.drops)
		s.clock:advance(0.5)
		poll()
		assert.same({ "a expired" }, s.drops)
		s.clock:advance(50)
		poll()
		assert.same({ "a expired", "b expired" }, s.drops)
		local stats = s.watch:stats()
		assert.equal(3, stats.dropped.expired)
		assert.equal(0, stats.pending)
		assert.truthy(fixtures.has(s.broadcaster:metrics(),
			'evrec_sink_dropped_total{sink="1",name="lua",cause="expired"} 3'))
	end)

	it("drop a write after an hour by default, and never with a max_age of 0", function()
		for age, kept in pairs { [3600] = false, [0] = true } do
			setup { max_age = age }
			s.answer = function() return nil, 503 end
			record "a"
			poll()
			s.clock:advance(3601)
			s.answer = nil
			poll()
			assert.equal(kept and 1 or 0, s.watch:stats().created)
			assert.same(kept and {} or { "a expired" }, s.drops)
		end
	end)

	it("measure max_age by a clock that does not step back", function()
		setup { max_age = 60 }
		s.answer = function() return nil, 503 end
		record "a"
		record "b"
		poll()
		s.clock:set(fixtures.now - 3600)
		record "c"
		s.clock:advance(1)
		s.answer = nil
		poll()
		assert.equal(3, s.watch:stats().created)
		assert.same({}, s.drops)
		s.answer = function() return nil, 503, 300 end
		record "d"
		poll()
		s.clock:set(fixtures.now - 7200)
		s.clock:advance(61)
		poll()
		assert.same({ "d expired" }, s.drops)
	end)

	it("drop a write after max_tries, if set", function()
		setup { max_tries = 3 }
		s.answer = function() return nil, 500 end
		record "a"
		for _ = 1, 5 do
			poll()
			s.clock:advance(40)
		end
		assert.same({ "a", "a", "a" }, s.writes)
		assert.same({ "a max_tries" }, s.drops)
		assert.equal(1, s.watch:stats().dropped.max_tries)
	end)

	it("drop writes to a namespace that refused", function()
		setup {}
		s.answer = function(event)
			if event.metadata.namespace == "closed" then
				return nil, 403
			end
		end
		for i = 1, 5 do
			record("a" .. i, "Normal", "closed")
		end
		record "b"
		poll()
		assert.same({ "a1", "b" }, s.writes)
		assert.equal(5, s.watch:stats().dropped.forbidden)
		assert.equal(5, #s.drops)
		assert.same({ "forbidden" }, s.errors)
		s.answer = nil
		s.clock:advance(29)
		record("a6", "Normal", "closed")
		poll()
		assert.equal("a6 forbidden", s.drops[6])
		s.clock:advance(1)
		record("a7", "Normal", "closed")
		record("a8", "Normal", "closed")
		poll()
		assert.same({ "a1", "b", "a7", "a8" }, s.writes)
	end)
end)
