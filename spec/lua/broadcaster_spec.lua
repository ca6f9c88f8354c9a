local evrec = require "evrec"
local fixtures = require "fixtures"

local pod = fixtures.pod()

local function messages(watch)
	local list = {}
	for event in function() return watch:next() end do
		list[#list + 1] = event.message
	end
	return table.concat(list, " ")
end

describe("a broadcaster", function()
	local s
	before_each(function() s = fixtures.setup() end)
	after_each(function() assert.is_nil(fixtures.fault(s.broadcaster:stats())) end)

	local function record(message, name)
		return s.recorder:event(fixtures.pod(name), "Normal", "R", message)
	end

	it("shows each watcher every event since its start, in order", function()
		local first, called = s.broadcaster:watch(), {}
		record "a"
		local second = s.broadcaster:watch()
		s.broadcaster:start_event_watcher(function(event) called[#called + 1] = event.message end)
		record "b"
		record "c"
		assert.equal("a b c", messages(first))
		assert.equal("b c", messages(second))
		assert.equal("b c", table.concat(called, " "))
	end)

	it("returns nil from an empty queue", function()
		assert.equal(1, select("#", s.broadcaster:watch():next()))
	end)

	it("gives all watchers the same name of an event", function()
		local first, second = s.broadcaster:watch(), s.broadcaster:watch()
		record "a"
		s.broadcaster:poll()
		local name = first:next().metadata.name
		assert.equal(name, second:next().metadata.name)
		assert.equal(name, s.server.writes[1].name)
	end)

	it("drops events of a full queue, and of no other watch", function()
		local small, large = s.broadcaster:watch { queue_length = 2, full = "drop" }, s.broadcaster:watch()
		for i = 1, 5 do
			record("m" .. i)
		end
		assert.same({ queued = 2, dropped = 3 }, small:stats())
		assert.same({ queued = 5, dropped = 0 }, large:stats())
		assert.equal("m1 m2", messages(small))
		assert.equal("m1 m2 m3 m4 m5", messages(large))
		assert.equal(3, s.broadcaster:stats().watch_dropped)
		record "m6"
		assert.equal("m6", messages(small))
	end)

	it("lets a queue hold 1000 events by default", function()
		local watch = s.broadcaster:watch()
		for i = 1, 1001 do
			record("m" .. i)
		end
		assert.same({ queued = 1000, dropped = 1 }, watch:stats())
	end)

	it("gives a stopped watch no further events", function()
		local queue, calls = s.broadcaster:watch(), 0
		local watcher = s.broadcaster:start_event_watcher(function() calls = calls + 1 end)
		record "a"
		assert.is_true(queue:stop())
		assert.is_true(watcher:stop())
		s.watch:stop()
		record "b"
		assert.equal("a", messages(queue))
		assert.equal(1, calls)
		assert.is_true(queue:stop())
		assert.is_true(watcher:close())
		assert.is_true(s.watch:close(1))
		assert.is_true(s.watch:close(0))
		assert.equal(1, #s.server.writes)
		assert.equal(1, s.watch:stats().received)
	end)

	it("lets a watcher stop itself and start others", function()
		local calls, later, watcher = 0, nil, nil
		watcher = s.broadcaster:start_event_watcher(function()
			calls = calls + 1
			watcher:stop()
			later = s.broadcaster:watch()
		end)
		record "a"
		collectgarbage()
		record "b"
		assert.equal(1, calls)
		assert.equal("b", messages(later))
	end)

	it("gives each sink a correlator, whose options replace the broadcaster's one by one", function()
		local s2 = fixtures.setup { correlator = { burst_size = 3, max_events = 2 } }
		local other = fixtures.server()
		s2.broadcaster:start_recording_to_sink(other.sink, { correlator = { burst_size = 1 } })
		for i = 1, 4 do
			s2.recorder:event(pod, "Normal", "R", "m" .. i)
			s2.broadcaster:poll()
		end
		local sinks = s2.broadcaster:stats().sinks
		assert.equal(1, sinks[1].rate_limited)
		assert.equal(3, sinks[2].rate_limited)
		assert.equal("(combined from similar events): m2", s2.server.writes[2].event.message)
		assert.equal(2, sinks[1].correlator.aggregated)
		local stats = s2.broadcaster:stats()
		for _, field in ipairs { "created", "patched", "coalesced", "rate_limited", "pending", "retries" } do
			assert.equal(sinks[1][field] + sinks[2][field], stats[field])
		end
		assert.equal(0, sinks[2].correlator.aggregated)
	end)

	it("forgets a stopped sink once its events are written, and keeps its counters", function()
		local other = s.broadcaster:start_recording_to_sink(fixtures.server().sink)
		s.recorder:event(pod, "Normal", "R", "m")
		s.watch:stop()
		local stats = s.broadcaster:stats()
		assert.equal(2, #stats.sinks)
		assert.equal(1, stats.sinks[1].pending)
		assert.equal(0, stats.ended.received)
		s.broadcaster:poll()
		stats = s.broadcaster:stats()
		assert.equal(1, #stats.sinks)
		assert.equal(2, stats.sinks[1].number)
		assert.equal(1, stats.ended.created)
		assert.is_nil(stats.ended.number)
		assert.is_nil(stats.ended.name)
		assert.equal(2, stats.created)
		assert.is_nil(fixtures.fault(stats))
		assert.equal(1, #s.broadcaster:explain())
		assert.equal(2, s.broadcaster:explain()[1].number)
		assert.equal(1, s.watch:stats().created)
		assert.equal(1, s.watch:stats().number)
		assert.equal(2, other:stats().number)
	end)

	it("calls the functions given for a sink instead of the broadcaster's", function()
		local clock = evrec.fake_clock(fixtures.now)
		local b = evrec.broadcaster { clock = clock, on_error = false, correlator = {
			max_events = 1, message_func = function() return "broadcaster's" end,
		} }
		local one, two = fixtures.server(), fixtures.server()
		b:start_recording_to_sink(one.sink)
		b:start_recording_to_sink(two.sink, { correlator = { message_func = function() return "sink's" end } })
		b:new_recorder():event(pod, "Normal", "R", "m")
		b:poll()
		assert.equal("broadcaster's", one.writes[1].event.message)
		assert.equal("sink's", two.writes[1].event.message)
	end)

	it("passes rate limited events to on_drop, and lists their objects in stats", function()
		local drops = {}
		local s2 = fixtures.setup {
			correlator = { burst_size = 1, qps = 0 },
			on_drop = function(event, why)
				drops[#drops + 1] = table.concat({ event.involvedObject.name, event.reason, why }, " ")
			end,
		}
		for _, reason in ipairs { "A", "B", "B" } do
			s2.recorder:event(pod, "Normal", reason, "m")
		end
		assert.same({ "web-0 B rate_limited", "web-0 B rate_limited" }, drops)
		assert.same({ { kind = "Pod", namespace = "shop", name = "web-0", reason = "B", count = 2, why = "rate_limited" } },
			s2.broadcaster:stats().sinks[1].suppressed)
	end)

	it("queues events that its callbacks record, and never recurses into a callback", function()
		local depth, deepest, seen = 0, 0, {}
		s.broadcaster:start_event_watcher(function(event)
			depth = depth + 1
			deepest = math.max(deepest, depth)
			seen[#seen + 1] = event.message
			if event.message == "a" then
				assert.is_true(record "b")
				assert.equal(1, s.broadcaster:stats().queued)
				assert.is_nil(fixtures.fault(s.broadcaster:stats()))
			end
			depth = depth - 1
		end)
		record "a"
		record "c"
		assert.equal("a b c", table.concat(seen, " "))
		assert.equal(1, deepest)
	end)

	it("drops events once callbacks record without end", function()
		local refused
		s.broadcaster:start_event_watcher(function()
			for _ = 1, 1500 do
				local _, _, name = record "more"
				refused = refused or name
			end
		end)
		record "a"
		assert.equal("dropped", refused)
		local stats = s.broadcaster:stats()
		assert.is_true(stats.dropped.queue_full > 0)
		assert.is_nil(fixtures.fault(stats))
	end)

	it("refuses flush and shutdown from inside its callbacks", function()
		local flush, shutdown
		s.broadcaster:start_event_watcher(function()
			flush = { s.broadcaster:flush(0) }
			shutdown = { s.broadcaster:shutdown(0) }
			s.broadcaster:poll()
		end)
		record "a"
		for _, result in ipairs { flush, shutdown } do
			assert.is_nil(result[1])
			assert.equal("invalid", result[3])
		end
		assert.is_true(record "b")
	end)

	it("flushes, and refuses events after shutdown, which is idempotent", function()
		record "a"
		local ok, stats = s.broadcaster:flush()
		assert.is_true(ok)
		assert.equal(1, stats.created)
		assert.equal(0, stats.pending)
		record("b", "web-1")
		ok, stats = s.broadcaster:shutdown(1)
		assert.is_true(ok)
		assert.equal(2, stats.created)
		assert.is_true((s.broadcaster:shutdown()))
		assert.is_true((s.broadcaster:close()))
		assert.is_true((s.broadcaster:flush(0)))
		for _, method in ipairs { "watch", "start_event_watcher", "start_recording_to_sink", "start_logging" } do
			local argument = method ~= "watch" and print or nil
			if method == "start_recording_to_sink" then
				argument = s.server.sink
			end
			local watch, message, name = s.broadcaster[method](s.broadcaster, argument)
			assert.is_nil(watch)
			assert.equal("string", type(message))
			assert.equal("closed", name)
		end
	end)

	it("gives up a flush after the timeout, and returns false with the counters", function()
		local dropped = {}
		local s2 = fixtures.setup { on_drop = function(event, why) dropped[#dropped + 1] = event.message .. " " .. why end }
		for i = 1, 100 do
			s2.server.answers[i] = function() return nil, 503 end
		end
		s2.recorder:event(pod, "Normal", "R", "a")
		local ok, stats = s2.broadcaster:flush(0)
		assert.is_false(ok)
		assert.equal(1, stats.pending)
		ok, stats = s2.broadcaster:shutdown(0)
		assert.is_false(ok)
		assert.equal(0, stats.pending)
		assert.equal(1, stats.dropped.closed)
		assert.same({ "a closed" }, dropped)
	end)

	it("refuses invalid timeouts", function()
		for _, timeout in ipairs { -1, 0 / 0, 1 / 0, "1", {} } do
			for _, method in ipairs { "flush", "shutdown", "close" } do
				local ok, message = pcall(s.broadcaster[method], s.broadcaster, timeout)
				assert.is_false(ok)
				assert.truthy(message:find("'timeout'", 1, true), message)
			end
			assert.is_false(pcall(s.watch.close, s.watch, timeout))
		end
		assert.is_true(record "still open")
	end)

	it("logs as client-go does", function()
		local lines = {}
		s.broadcaster:start_logging(function(format, ...) lines[#lines + 1] = format:format(...) end)
		local object = { kind = "Pod", name = 'a"b', namespace = "shop", uid = "u\n", apiVersion = "v1",
			fieldPath = "\1\a\b\t\v\f\r\27\127" }
		s.recorder:event(object, "Warning", "BackOff", "Back-off")
		assert.equal("Event(v1.ObjectReference{Kind:\"Pod\", Namespace:\"shop\", Name:\"a\\\"b\", UID:\"u\\n\", "
			.. [[APIVersion:"v1", ResourceVersion:"", FieldPath:"\x01\a\b\t\v\f\r\x1b\x7f"}): ]]
			.. "type: 'Warning' reason: 'BackOff' Back-off",
			lines[1])
	end)

	it("logs with fields as client-go does", function()
		local seen = {}
		s.broadcaster:start_structured_logging(function(message, fields) seen[#seen + 1] = { message, fields } end)
		record "m"
		s.recorder:event({ kind = "Node", name = "n" }, "Normal", "R", "")
		assert.same({ "Event occurred", { object = "shop/web-0", fieldPath = "", kind = "Pod", apiVersion = "v1",
			type = "Normal", reason = "R", message = "m" } }, seen[1])
		assert.equal("n", seen[2][2].object)
		assert.equal("", seen[2][2].message)
	end)

	it("raises if a log is not a function", function()
		for _, method in ipairs { "start_logging", "start_structured_logging", "start_event_watcher" } do
			assert.has_error(function() s.broadcaster[method](s.broadcaster, "x") end)
			assert.has_error(function() s.broadcaster[method](s.broadcaster) end)
		end
	end)

	it("works inside coroutines", function()
		local seen = {}
		s.broadcaster:start_event_watcher(function(event) seen[#seen + 1] = event.message end)
		local step = coroutine.wrap(function()
			record "a"
			coroutine.yield()
			record "b"
		end)
		step()
		record "c"
		step()
		collectgarbage()
		record "d"
		assert.equal("a c b d", table.concat(seen, " "))
	end)
end)
