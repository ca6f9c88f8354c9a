-- A callback that fails is counted and reported to on_error, and disturbs nothing else.
local fixtures = require "fixtures"
local tmpfiles = require "tmpfiles"

local pod = fixtures.pod()

local wrong = {
	["raises"] = function() error("boo") end,
	["raises a table"] = function() error({}) end,
	["raises nil"] = function() error() end,
	["yields"] = function() coroutine.yield() end,
	["overflows the stack"] = fixtures.overflow,
}
local wrong_answers = {
	["returns nothing"] = function() end,
	["returns nil"] = function() return nil, nil end,
	["returns numbers"] = function() return 5, 5 end,
	["returns tables"] = function() return {}, {} end,
}

describe("a callback", function()
	local errors, s

	after_each(function() collectgarbage "restart" end)

	local function setup(options)
		options = options or {}
		errors = {}
		options.on_error = options.on_error or function(message, name) errors[#errors + 1] = { message, name } end
		s = fixtures.setup(options)
	end

	local function record(message)
		assert.is_true(s.recorder:event(pod, "Normal", "R", message or "m"))
	end

	-- Runs in a coroutine, so that a callback could yield.
	local function check_report(what, calls)
		coroutine.wrap(function()
			for _ = 1, calls do
				record()
			end
			s.broadcaster:poll()
		end)()
		local stats = s.broadcaster:stats()
		assert.is_true(stats.callback_errors >= 1)
		assert.equal("callback", errors[1][2])
		assert.truthy(errors[1][1]:find(what .. ": ", 1, true), errors[1][1])
		assert.equal(stats.callback_errors, #errors)
		assert.is_nil(fixtures.fault(stats))
	end

	for how, func in pairs(wrong) do
		it("of a watcher that " .. how .. " is counted and reported", function()
			setup()
			local after = s.broadcaster:watch()
			s.broadcaster:start_event_watcher(func)
			check_report("event watcher", 1)
			assert.equal("m", after:next().message)
		end)

		it("of a log that " .. how .. " is counted and reported", function()
			setup()
			s.broadcaster:start_logging(func)
			check_report("event watcher", 1)
		end)

		it("on_drop that " .. how .. " is counted and reported", function()
			setup { on_drop = func, correlator = { burst_size = 1 } }
			check_report("on_drop", 2)
			assert.equal(1, s.broadcaster:stats().rate_limited)
		end)

		it("on_error that " .. how .. " is counted, and not reported", function()
			setup { on_error = func }
			s.broadcaster:start_event_watcher(function() error("boo") end)
			coroutine.wrap(record)()
			assert.equal(2, s.broadcaster:stats().callback_errors)
			record()
			assert.equal(4, s.broadcaster:stats().callback_errors)
		end)
	end

	for _, set in ipairs { wrong, wrong_answers } do
		for how, func in pairs(set) do
			for _, option in ipairs { "key_func", "message_func", "spam_key_func" } do
				it(("%s that %s is counted and reported, and the default replaces it"):format(option, how), function()
					setup { correlator = { max_events = 1, [option] = func } }
					check_report(option, 2)
					assert.equal(1, #s.server.writes)
					assert.equal("(combined from similar events): m", s.server.writes[1].event.message)
					assert.equal(2, s.server.writes[1].event.count)
					assert.equal(s.broadcaster:stats().callback_errors, s.watch:stats().correlator.callback_errors)
				end)
			end
		end
	end

	it("key_func may record an event, which is queued", function()
		local recorded
		setup { correlator = { key_func = function(event)
			if not recorded then
				recorded = true
				record "from inside"
			end
			return event.reason, event.message
		end } }
		local watch = s.broadcaster:watch()
		record "outside"
		assert.equal("outside", watch:next().message)
		assert.equal("from inside", watch:next().message)
		local stats = s.broadcaster:stats()
		assert.equal(2, stats.broadcast)
		assert.equal(0, stats.callback_errors)
		assert.is_nil(fixtures.fault(stats))
	end)

	it("gets the event with the name under which it is written", function()
		local seen
		setup { correlator = { spam_key_func = function(event)
			seen = event
			return "k"
		end } }
		record()
		s.broadcaster:poll()
		assert.equal(s.server.writes[1].name, seen.metadata.name)
		assert.equal("spec", seen.source.component)
	end)

	it("may change the table of the event that is being recorded", function()
		local object = fixtures.pod()
		local annotations = { a = ("x"):rep(100) .. "1" }
		setup { correlator = { key_func = function()
			object.name, object.kind, annotations.a = nil, nil, nil
			collectgarbage()
			collectgarbage()
			return "a", "b"
		end } }
		local other = fixtures.server()
		s.broadcaster:start_recording_to_sink(other.sink)
		object.name = "web-" .. ("y"):rep(50)
		assert.is_true(s.recorder:annotated_eventf(object, annotations, "Normal", "R", "%s", ("z"):rep(100)))
		s.broadcaster:poll()
		local e = other.writes[1].event
		assert.equal("web-" .. ("y"):rep(50), e.involvedObject.name)
		assert.equal(("x"):rep(100) .. "1", e.metadata.annotations.a)
		assert.equal(("z"):rep(100), e.message)
	end)

	it("may drop all references to the broadcaster", function()
		setup()
		local watch
		watch = s.broadcaster:start_event_watcher(function()
			watch:stop()
			watch = nil
			collectgarbage()
			collectgarbage()
		end)
		record()
		record()
		assert.equal(0, s.broadcaster:stats().callback_errors)
	end)
end)

describe("a recursion without end that records events", function()
	local calls = {
		event = function(r) return r:event(pod, "Normal", "R", "m") end,
		emit = function(r) return r:emit { regarding = pod, related = pod, type = "Normal", reason = "R", note = "m" } end,
	}

	after_each(function() collectgarbage "restart" end)

	for name, record in pairs(calls) do
		it("leaves the broadcaster as it was, by recorder:" .. name, function()
			local s, seen = fixtures.setup(), 0
			s.broadcaster:start_event_watcher(function() seen = seen + 1 end)
			local function overflow()
				record(s.recorder)
				return overflow() .. ""
			end
			fixtures.interpret()
			collectgarbage "stop"
			assert.is_false(pcall(overflow))
			local before = seen
			assert.is_true(record(s.recorder))
			assert.equal(before + 1, seen)
			local ok, stats, message = s.broadcaster:flush(5)
			assert.equal(stats.refused.memory == 0, ok, message)
			assert.equal(name == "emit", stats.refused.memory > 0)
			assert.equal(0, stats.queued)
			assert.is_nil(fixtures.fault(stats))
		end)
	end
end)

-- The names are string literals in the C sources: arguments of these functions, and problems of outcomes.
describe("the names of errors", function()
	local tellers = {
		"outbox_report", "outbox_queue_message", "hub_tell_error", "share_tell", "tell", "kind_of", "problem_of",
	}

	local function sources()
		local pipe = assert(io.popen "cat csrc/*/*.c")
		local text = pipe:read "*a"
		pipe:close()
		return text
	end

	it("are all in lua/README.md", function()
		local text, found, listed = sources(), {}, {}
		local function look(part)
			for name in part:gmatch '"(%l[%l_]*)"' do
				found[name] = true
			end
		end
		for _, teller in ipairs(tellers) do
			for arguments in text:gmatch("[^%w_]" .. teller .. "(%b())") do
				look(arguments)
			end
			for body in text:gmatch("[^%w_]" .. teller .. "%b()\n(%b{})") do
				look(body)
			end
		end
		for name in text:gmatch 'problem = ("[%l_]+")' do
			look(name)
		end
		for name in tmpfiles.read("lua/README.md"):match("\n## Errors\n(.-)\n## "):gmatch "`([%l_]+)`" do
			listed[name] = true
		end
		assert.is_true(found.resume and found.share_refused and found.throttled and found.warning)
		for name in pairs(found) do
			assert.is_true(listed[name], name)
		end
	end)
end)
