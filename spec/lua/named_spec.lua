-- Broadcasters with a name: handles of one, here in one Lua state.
local evrec = require "evrec"

local pod = { kind = "Pod", namespace = "shop", name = "web-0" }
local clock

local function sink(log)
	return evrec.sink.lua {
		create = function(event)
			log[#log + 1] = event.reason
			return {}
		end,
	}
end

local number = 0
local function open(options)
	options = options or {}
	options.name = options.name or "named_spec-" .. number
	options.clock = options.clock or clock
	if options.on_error == nil then
		options.on_error = false
	end
	return evrec.broadcaster(options)
end

describe("a broadcaster with a name", function()
	before_each(function()
		number = number + 1
		clock = evrec.fake_clock(1700000000)
	end)

	it("has its sinks and counters in each handle", function()
		local first, second, log = open(), open(), {}
		local watch = first:start_recording_to_sink(sink(log))

		assert.is_true(first:new_recorder({ component = "a" }):event(pod, "Normal", "One", "m"))
		assert.is_true(second:new_recorder({ component = "a" }):event(pod, "Normal", "Two", "m"))
		second:poll()
		assert.same({}, log)
		first:poll()
		assert.same({ "One", "Two" }, log)
		assert.equal(2, first:stats().recorded)
		assert.equal(2, second:stats().recorded)
		assert.equal(2, watch:stats().created)
		assert.is_true(second:shutdown())
		assert.is_true(first:shutdown())
	end)

	it("combines the events of its handles", function()
		local first, second, log = open(), open(), {}

		first:start_recording_to_sink(sink(log))
		first:new_recorder({ component = "a" }):event(pod, "Normal", "Same", "m")
		second:new_recorder({ component = "a" }):event(pod, "Normal", "Same", "m")
		first:flush()
		assert.same({ "Same" }, log)
		assert.equal(1, first:stats().coalesced)
		first:shutdown()
		second:shutdown()
	end)

	it("names the option in which a handle differs", function()
		local first = open { max_message_bytes = 100 }

		assert.has_error(function() open { max_message_bytes = 200 } end,
			"evrec.broadcaster: option 'max_message_bytes': another handle of the broadcaster 'named_spec-" .. number ..
			"' has a different value")
		assert.has_error(function() open { max_message_bytes = 100, on_drop = print } end)
		first:shutdown()
		assert.is_true(open { max_message_bytes = 200 }:shutdown())
	end)

	it("lets a handle join the sink that another has started, and refuses another configuration", function()
		local first, second, third = open(), open(), open()
		local path = os.tmpname()
		local a = first:start_recording_to_sink(evrec.sink.file { path = path })
		local b = second:start_recording_to_sink(evrec.sink.file { path = path })
		local _, message = pcall(third.start_recording_to_sink, third, evrec.sink.file { path = path .. "x" })

		assert.truthy(message:find("option 'path': differs from that of the sink 'file'", 1, true))
		_, message = pcall(third.start_recording_to_sink, third, evrec.sink.file { path = path, max_pending = 5 })
		assert.truthy(message:find("option 'max_pending': differs", 1, true))
		_, message = pcall(third.start_recording_to_sink, third, evrec.sink.file { path = path },
			{ correlator = { burst_size = 5 } })
		assert.truthy(message:find("option 'burst_size': differs", 1, true))
		assert.equal(1, #first:stats().sinks)
		assert.equal(a:stats().number, b:stats().number)
		a:stop()
		second:new_recorder({ component = "a" }):event(pod, "Normal", "Still", "m")
		assert.equal(1, b:stats().received)
		b:stop()
		second:new_recorder({ component = "a" }):event(pod, "Normal", "Over", "m")
		assert.equal(1, b:stats().received)
		first:shutdown()
		second:shutdown()
		third:shutdown()
		os.remove(path)
	end)

	it("calls a handle's functions in calls of that handle alone", function()
		local current, log, drops = nil, {}, {}
		local function handle(which)
			local b = open {
				on_drop = function(event, why) drops[#drops + 1] = which .. current .. event.reason .. why end,
				correlator = {
					burst_size = 1,
					spam_key_func = function(event)
						assert(current == which)
						return event.reason
					end,
				},
			}

			b:start_recording_to_sink(sink {})
			b:start_event_watcher(function(event) log[#log + 1] = which .. current .. event.reason end)
			return b
		end
		local a, b = handle("a"), handle("b")

		current = "a"
		local recorder = a:new_recorder { component = "x" }
		recorder:event(pod, "Normal", "One", "m")
		recorder:event(pod, "Normal", "One", "m")
		assert.same({ "aaOne", "aaOne" }, log)
		assert.same({ "aaOnerate_limited" }, drops)
		current = "b"
		b:poll()
		assert.same({ "aaOne", "aaOne", "bbOne", "bbOne" }, log)
		assert.equal(1, #drops)
		assert.equal(0, b:stats().callback_errors)
		b:shutdown()
		current = "a"
		a:shutdown()
	end)

	it("asks a handle's functions no more once the handle of the sink was collected", function()
		local asked = 0
		local options = { correlator = { spam_key_func = function() asked = asked + 1 return "key" end } }
		local b, a = open(options), open(options)
		for _, handle in ipairs { a, b } do
			handle:start_recording_to_sink(sink {})
		end
		local recorder = b:new_recorder { component = "x" }
		recorder:event(pod, "Normal", "One", "m")
		assert.equal(1, asked)
		a = nil -- luacheck: ignore
		collectgarbage()
		collectgarbage()
		b:poll()
		collectgarbage()
		collectgarbage()
		recorder:event(pod, "Normal", "Two", "m")
		assert.equal(1, asked)
		assert.equal(0, b:stats().callback_errors)
		b:shutdown()
	end)

	it("queues events that a callback records, and reports callbacks that raise", function()
		local errors, seen, recorder = {}, {}, nil
		local b = open { on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end }

		b:start_event_watcher(function(event)
			seen[#seen + 1] = event.reason
			if event.reason == "Outer" then
				recorder:event(pod, "Normal", "Inner", "m")
				error("oops", 0)
			end
		end)
		recorder = b:new_recorder { component = "x" }
		recorder:event(pod, "Normal", "Outer", "m")
		assert.same({ "Outer", "Inner" }, seen)
		assert.same({ "callback: event watcher: oops" }, errors)
		assert.equal(2, b:stats().broadcast)
		assert.is_true(b:shutdown())
	end)

	it("runs no watcher of a handle while a watcher of another one records", function()
		local handles, recorders, depth, deepest, seen = {}, {}, 0, 0, { 0, 0 }

		for i = 1, 2 do
			handles[i] = open()
			recorders[i] = handles[i]:new_recorder { component = "x" }
			handles[i]:start_event_watcher(function()
				depth = depth + 1
				deepest = math.max(deepest, depth)
				seen[i] = seen[i] + 1
				recorders[3 - i]:event(pod, "Normal", "R", "m")
				depth = depth - 1
			end)
		end
		recorders[1]:event(pod, "Normal", "R", "m")
		assert.same({ 1, 0 }, seen)
		recorders[1]:event(pod, "Normal", "R", "m")
		assert.same({ 3, 0 }, seen)
		handles[2]:shutdown(0)
		assert.truthy(seen[2] >= 5)
		assert.equal(1, deepest)
		handles[1]:shutdown(0)
	end)

	it("counts an on_error that raises, and does not call it with its own error", function()
		local messages = {}
		local function on_error(message)
			messages[#messages + 1] = message
			if #messages < 100 then -- a recording call that calls it again and again would never end
				error("boo", 0)
			end
		end
		local b, other = open { on_error = on_error }, open { on_error = on_error }

		b:start_event_watcher(function() error("oops", 0) end)
		for _, handle in ipairs { b, other, b, b } do
			assert.is_true(handle:new_recorder({}):event(pod, "Normal", "R", "m"))
		end
		other:shutdown()
		b:shutdown()
		for _, message in ipairs(messages) do
			assert.equal("event watcher: oops", message)
		end
		assert.equal(4, #messages)
		assert.equal(8, b:stats().callback_errors)
	end)

	it("is a new one after the last handle was shut down", function()
		local first, second = open(), open()

		first:shutdown()
		local message, name = select(2, first:new_recorder({}):event(pod, "Normal", "R", "m"))
		assert.same({ "the broadcaster is shut down", "closed" }, { message, name })
		assert.is_true(second:new_recorder({}):event(pod, "Normal", "R", "m"))
		second:shutdown()
		assert.equal(0, open():stats().recorded)
	end)

	it("frees a handle that is collected, with its sinks in Lua", function()
		local log = {}
		local kept = open()

		do
			local b = open()
			b:start_recording_to_sink(sink(log))
			b:new_recorder({ component = "x" }):event(pod, "Normal", "Lost", "m")
		end
		collectgarbage()
		collectgarbage()
		assert.is_true(kept:new_recorder({ component = "x" }):event(pod, "Normal", "Kept", "m"))
		kept:poll()
		assert.same({}, log)
		assert.equal(0, #kept:stats().sinks)
		assert.equal(1, kept:stats().ended.dropped.closed)
		kept:shutdown()
	end)
end)
