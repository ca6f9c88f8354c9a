-- The beginning and the end: how the module affects its surroundings, and when the collector frees its objects.
local evrec = require "evrec"
local fixtures = require "fixtures"

local pod = fixtures.pod()

local function collect()
	for _ = 1, 4 do
		collectgarbage()
	end
end

describe("the module", function()
	it("sets no global", function()
		local before = {}
		for key in pairs(_G) do
			before[key] = true
		end
		for name in pairs(package.loaded) do
			if name:find("^evrec") then
				package.loaded[name] = nil
			end
		end
		local again = require "evrec"
		for key in pairs(_G) do
			assert.truthy(before[key], key)
		end
		assert.equal("userdata", type(again.clock()))
		-- Objects of the first and the second require have the same types.
		assert.truthy(again.broadcaster { clock = evrec.fake_clock(0) })
	end)

	it("has a version", function()
		assert.truthy(evrec._VERSION:find("^%d+%.%d+%.%d+$"))
	end)

	it("refuses a core of another version", function()
		local loaded = {}
		for name, module in pairs(package.loaded) do
			if name:find("^evrec") then
				loaded[name] = module
			end
		end
		package.loaded["evrec"] = nil
		package.loaded["evrec.core"] = { version = "0.0.1" }
		local ok, message = pcall(require, "evrec")
		for name, module in pairs(loaded) do
			package.loaded[name] = module
		end
		assert.is_false(ok)
		assert.truthy(fixtures.has(message, "0.0.1"), message)
		assert.truthy(fixtures.has(message, "restart"))
	end)

	it("hides its metatables", function()
		local s = fixtures.setup()
		local objects = { s.broadcaster, s.recorder, s.watch, s.clock, s.server.sink, evrec.correlator(),
			evrec.reference(pod), evrec.event {},
			s.recorder:prepare { regarding = pod, type = "Normal", reason = "R", note = "m" } }
		for _, object in ipairs(objects) do
			assert.is_false(getmetatable(object))
			assert.truthy(tostring(object):find("^evrec%."), tostring(object))
			for _, name in ipairs { "__gc", "__close", "__index", "__name" } do
				local ok, value = pcall(function() return object[name] end)
				assert.is_true(not ok or value == nil)
			end
		end
	end)

	it("opens no file, and looks up no name, before it is used", function()
		local sink = evrec.sink.kubernetes { server = "https://evrec.invalid" }
		local b = evrec.broadcaster { on_error = false }
		assert.truthy(b:start_recording_to_sink(sink))
		assert.is_true((b:shutdown(0)))
	end)
end)

describe("collecting", function()
	before_each(fixtures.interpret)

	local function weak(...)
		return setmetatable({ ... }, { __mode = "v" })
	end

	it("frees a broadcaster together with the objects that refer to it", function()
		local seen = weak()
		do
			local s = fixtures.setup {
				on_error = function() end,
				correlator = { key_func = function(event) return event.reason, event.message end },
			}
			local b = s.broadcaster
			b:start_event_watcher(function() return b, s end)
			b:start_logging(function() return b end)
			b:start_recording_to_sink(evrec.sink.lua { create = function() return b:stats() and true end })
			s.recorder:event(pod, "Normal", "R", "m")
			b:poll()
			seen[1], seen[2] = b, s.recorder
		end
		collect()
		assert.is_nil(seen[1])
		assert.is_nil(seen[2])
	end)

	it("spares a broadcaster whose recorder is referenced, with its watchers and sinks", function()
		local server, calls = fixtures.server(), 0
		local recorder
		do
			local b = evrec.broadcaster { clock = evrec.fake_clock(fixtures.now), on_error = false }
			b:start_recording_to_sink(server.sink)
			b:start_event_watcher(function()
				calls = calls + 1
				b:watch()
			end)
			recorder = b:new_recorder()
		end
		server.sink = nil
		for _ = 1, 3 do
			collect()
			assert.is_true(recorder:event(pod, "Normal", "R", "m"))
		end
		assert.equal(3, calls)
	end)

	it("spares a broadcaster whose watch is referenced", function()
		local watch
		do
			local b = evrec.broadcaster { on_error = false }
			watch = b:watch()
			b:new_recorder():event(pod, "Normal", "R", "m")
		end
		collect()
		assert.equal("m", watch:next().message)
		assert.is_nil(watch:next())
	end)

	it("stops a queue that nothing references", function()
		local b = evrec.broadcaster { on_error = false }
		local recorder = b:new_recorder()
		b:watch { queue_length = 1 }
		collect()
		recorder:event(pod, "Normal", "R", "m")
		recorder:event(pod, "Normal", "R", "m")
		assert.equal(0, b:stats().watch_dropped)
	end)

	it("frees the function of a stopped watcher", function()
		local b, seen = evrec.broadcaster { on_error = false }, weak()
		do
			local upvalue = {}
			local watch = b:start_event_watcher(function() return upvalue end)
			seen[1], seen[2] = upvalue, watch
			watch:stop()
		end
		collect()
		assert.is_nil(seen[1])
		assert.is_nil(seen[2])
		assert.is_true(b:new_recorder():event(pod, "Normal", "R", "m"))
	end)

	it("frees the functions of stopped sinks once their events are written", function()
		local b, kept = evrec.broadcaster { clock = evrec.fake_clock(0), on_error = false }, weak()
		local recorder, count = b:new_recorder(), 0
		local function start(i)
			local sink, correlator = {}, {}
			local watch = b:start_recording_to_sink(evrec.sink.lua {
				create = function()
					count = count + #sink + 1
				end,
			}, { correlator = { spam_key_func = function() return "key" .. #correlator end } })
			kept[2 * i], kept[2 * i + 1] = sink, correlator
			recorder:event(pod, "Normal", "R", "m")
			return watch
		end
		for i = 1, 10 do
			start(i):stop()
			collect()
			assert.truthy(kept[2 * i])
			assert.truthy(kept[2 * i + 1])
			b:poll()
			assert.equal(i, count)
			collect()
			assert.is_nil(kept[2 * i])
			assert.is_nil(kept[2 * i + 1])
		end
		assert.equal(10, b:stats().created)
	end)

	it("spares events that are referenced", function()
		local event, result
		do
			local s = fixtures.setup()
			local watch = s.broadcaster:watch()
			s.recorder:event(pod, "Normal", "R", "m")
			event = watch:next()
			result = evrec.correlator():correlate(event)
		end
		collect()
		assert.equal("m", event.message)
		assert.equal("m", result.event.message)
	end)

	it("frees thousands of objects of each type", function()
		collect()
		local before = collectgarbage "count"
		for i = 1, 300 do
			local s = fixtures.setup()
			s.broadcaster:start_event_watcher(function() return s end)
			s.recorder:event(pod, "Normal", "R", "m" .. i)
			s.broadcaster:poll()
			if i % 3 == 0 then
				s.broadcaster:shutdown(0)
			end
		end
		collect()
		assert.is_true(collectgarbage "count" < before + 200)
	end)

	it("lets a finalizer of another object record", function()
		if _VERSION == "Lua 5.1" then
			return
		end
		local s = fixtures.setup()
		local result
		setmetatable({}, { __gc = function() result = { s.recorder:event(pod, "Normal", "R", "m") } end })
		collect()
		assert.is_true(result[1])
	end)
end)

describe("closing", function()
	if not fixtures.has_close then
		it("is a feature of Lua 5.4 alone", function() assert.is_true(true) end)
		return
	end

	-- A to-be-closed variable, in a string, because other Luas cannot parse it.
	local function with(object, f)
		return assert(load [[
			local object, f = ...
			local closing <close> = object
			return f(closing)
		]])(object, f)
	end

	it("ends a broadcaster without waiting, and tells later calls what that left unwritten", function()
		local s = fixtures.setup()
		s.recorder:event(pod, "Normal", "R", "m")
		with(s.broadcaster, function() end)
		assert.equal("closed", select(3, s.recorder:event(pod, "Normal", "R", "m")))
		assert.equal("invalid", select(3, s.recorder:event()))
		for _, method in ipairs { "flush", "shutdown", "close" } do
			local ok, stats, message = s.broadcaster[method](s.broadcaster)
			assert.is_false(ok)
			assert.equal(1, stats.pending)
			assert.equal(1, stats.recorded)
			assert.equal("1 event was not written yet when __close ended the broadcaster, which waits for nothing: "
				.. "call shutdown before", message)
		end
		assert.equal(1, s.broadcaster:stats().recorded)
		for _, method in ipairs { "poll", "watch", "new_recorder", "start_event_watcher" } do
			local result, _, name = s.broadcaster[method](s.broadcaster)
			assert.is_nil(result)
			assert.equal("closed", name)
		end
		local stats_of_watch, _, name = s.watch:stats()
		assert.is_nil(stats_of_watch)
		assert.equal("closed", name)
		assert.is_false((s.watch:close()))
		with(s.broadcaster, function() end)
		assert.equal(0, #s.server.writes)
		assert.equal("string", type(s.broadcaster:metrics()))
	end)

	it("ends a broadcaster that has written all", function()
		local s = fixtures.setup()
		s.recorder:event(pod, "Normal", "R", "m")
		assert.is_true((s.broadcaster:flush(5)))
		with(s.broadcaster, function() end)
		assert.is_true((s.broadcaster:shutdown()))
		assert.is_true(s.watch:close())
	end)

	it("ends a broadcaster from inside its own callback, once the callback returns", function()
		local s = fixtures.setup()
		local after = s.broadcaster:watch()
		s.broadcaster:start_event_watcher(function()
			with(s.broadcaster, function() end)
			assert.equal("closed", select(3, s.broadcaster:watch()))
		end)
		assert.is_true(s.recorder:event(pod, "Normal", "R", "m"))
		assert.equal("closed", select(3, s.recorder:event(pod, "Normal", "R", "m")))
		assert.equal("m", after:next().message)
	end)

	it("stops a watch", function()
		local s = fixtures.setup()
		local calls = 0
		with(s.broadcaster:start_event_watcher(function() calls = calls + 1 end), function()
			s.recorder:event(pod, "Normal", "R", "m")
		end)
		s.recorder:event(pod, "Normal", "R", "m")
		assert.equal(1, calls)
	end)

	it("happens before an error propagates", function()
		local s = fixtures.setup()
		assert.has_error(function() with(s.broadcaster, function() error("boo") end) end)
		assert.equal("closed", select(3, s.recorder:event(pod, "Normal", "R", "m")))
	end)
end)
