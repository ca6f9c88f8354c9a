-- broadcaster:start_trace: what the file holds, and who may write it. Replays of it are in cli_replay_spec.lua.
local cjson = require "cjson"
local evrec = require "evrec"
local read = require("tmpfiles").read

local START = 1700000000

describe("broadcaster:start_trace", function()
	local path, clock, errors

	local function broadcaster(options)
		options = options or {}
		options.clock = clock
		options.drive = options.drive or "poll"
		options.on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end
		return evrec.broadcaster(options)
	end

	local function lines()
		local found = {}
		for line in read(path):gmatch "[^\n]+" do
			found[#found + 1] = cjson.decode(line)
		end
		return found
	end

	before_each(function()
		path, clock, errors = os.tmpname(), evrec.fake_clock(START), {}
		os.remove(path)
	end)
	after_each(function() os.remove(path) end)

	local pod = { kind = "Pod", apiVersion = "v1", namespace = "shop", name = "web-0" }

	it("writes each event as it was recorded, and equal ones as short lines", function()
		local b = broadcaster()
		b:start_trace(path)
		local r = b:new_recorder { component = "test" }
		for i = 1, 3 do
			clock:set(START + i)
			r:event(pod, "Normal", "Started", "m")
		end
		r:past_eventf(pod, START - 100, "Normal", "Started", "m")
		r:annotated_eventf(pod, { team = "blue" }, "Normal", "Started", "m")
		assert.is_true((b:shutdown(1)))
		local found = lines()
		assert.equal(6, #found)
		assert.equal(1, found[1].evrec_trace)
		assert.equal("fake", found[1].clock)
		assert.equal(25, found[1].correlator.burst_size)
		assert.equal("web-0", found[2].event.involvedObject.name)
		assert.equal("test", found[2].event.source.component)
		assert.same({ id = 1, t = START + 2 }, found[3])
		assert.same({ id = 1, t = START + 3, at = START - 100 }, found[5])
		assert.equal(2, found[6].id)
		assert.same({ team = "blue" }, found[6].event.metadata.annotations)
		assert.same({}, errors)
	end)

	it("writes the keys that the functions of the correlator chose", function()
		local b = broadcaster { correlator = {
			burst_size = 3,
			key_func = function(event) return event.reason, event.message end,
			spam_key_func = function(event) return event.reason ~= "Plain" and event.reason or nil end,
		} }
		b:start_trace(path)
		local r = b:new_recorder { component = "test" }
		r:event(pod, "Normal", "Started", "m\0")
		r:event(pod, "Normal", "Plain", "m")
		b:shutdown(1)
		local found = lines()
		assert.is_true(found[1].spam_key_func)
		assert.equal(3, found[1].correlator.burst_size)
		assert.same({ aggregate = "Started", ["local"] = "m\0", spam = "Started" }, found[2].keys)
		assert.same({ aggregate = "Plain", ["local"] = "m" }, found[3].keys)
	end)

	it("takes what was recorded between its start and its stop", function()
		local b = broadcaster()
		local r = b:new_recorder { component = "test" }
		r:event(pod, "Normal", "Before", "m")
		local watch = b:start_trace(path, { max_bytes = 1e6 })
		r:event(pod, "Normal", "Started", "m")
		assert.is_true(watch:close(1))
		r:event(pod, "Normal", "After", "m")
		assert.equal(1, watch:stats().created)
		assert.equal("trace", watch:stats().name)
		b:shutdown(1)
		local found = lines()
		assert.equal(2, #found)
		assert.equal("Started", found[2].event.reason)
	end)

	-- The thread of a sink that was stopped holds the file until it has ended.
	it("may be started anew once it was closed", function()
		for name in pairs { [""] = true, [path] = true } do
			local b = broadcaster { drive = "thread", name = name ~= "" and name or nil }
			local r = b:new_recorder { component = "test" }
			for _ = 1, 20 do
				local watch = b:start_trace(path)
				r:event(pod, "Normal", "Started", "m")
				assert.is_true(watch:close(5))
				assert.equal(1, watch:stats().created)
			end
			assert.equal(0, #b:stats().sinks)
			b:shutdown(5)
			assert.same({}, errors)
			assert.equal(2, #lines())
		end
	end)

	it("tells of a gap, and of a file that it may not write", function()
		local b = broadcaster { on_drop = function() end }
		b:start_trace(path)
		local r = b:new_recorder { component = "test" }
		for _ = 1, 10010 do
			r:event(pod, "Normal", "Started", "m")
		end
		assert.is_false((b:flush(1)))
		assert.same({ lost = 10, from = START, to = START }, lines()[2])
		local other = broadcaster { on_drop = function() end }
		other:start_trace "/proc/version"
		other:new_recorder({ component = "test" }):event(pod, "Normal", "Started", "m")
		other:shutdown(1)
		assert.equal(1, #errors)
		assert.truthy(errors[1]:find("^trace: trace: /proc/version"))
		b:shutdown(1)
	end)

	it("is one file for the handles of a name", function()
		local name = "trace " .. path
		local first, second = broadcaster { name = name }, broadcaster { name = name }
		first:start_trace(path)
		second:start_trace(path)
		first:new_recorder({ component = "a" }):event(pod, "Normal", "Started", "m")
		second:new_recorder({ component = "b" }):event(pod, "Normal", "Started", "m")
		second:shutdown(1)
		first:shutdown(1)
		assert.equal(3, #lines())
		assert.same({}, errors)
	end)

	it("refuses misuse", function()
		local b = broadcaster()
		assert.error_matches(function() b:start_trace(path, { max_bytes = 1 }) end, "max_bytes")
		assert.error_matches(function() b:start_trace(path, { max = 1 }) end, "unknown option 'max'")
		assert.error_matches(function() b:start_trace "" end, "path")
		assert.error_matches(function() b:start_trace() end, "string expected")
		assert.error_matches(function() b:start_trace(5) end, "string expected, got number")
		local shared = evrec.broadcaster { share = "@trace" .. path, drive = "poll", on_error = false }
		assert.error_matches(function() shared:start_trace(path) end, "'share': a trace cannot be shared")
		shared:shutdown(0)
		b:shutdown(1)
		local watch, message, code = b:start_trace(path)
		assert.is_nil(watch)
		assert.truthy(message)
		assert.equal("closed", code)
	end)
end)

describe("evrec.replay", function()
	it("refuses misuse", function()
		local function refuses(variants, message)
			assert.error_matches(function() evrec.replay(variants) end, message)
		end
		refuses(nil, "table expected")
		refuses({}, "must be 1 to 8")
		refuses({ {}, {}, {}, {}, {}, {}, {}, {}, {} }, "must be 1 to 8")
		refuses({ { burst = 1 } }, "unknown option 'burst'")
		refuses({ burst_size = 1 }, "expected a list of tables of options, got a table with other keys")
		refuses({ {}, qps = 0 }, "expected a list of tables of options, got a table with other keys")
		assert.error_matches(function() evrec.replay({ {} }):feed(5) end, "string expected, got number")
	end)
end)
