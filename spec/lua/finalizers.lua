-- Finalizers that record, or change or take what a function of evrec uses: cases of finalizer_cases.lua.
local evrec = require "evrec"
local finalizer_cases = require "finalizer_cases"
local fixtures = require "fixtures"
local garbage = require "garbage"

local describe, it, equal = finalizer_cases.describe, finalizer_cases.it, finalizer_cases.equal
local with_finalizers, at_each = finalizer_cases.with_finalizers, finalizer_cases.at_each
local pod = fixtures.pod()

-- Makes a broadcaster with a few suppressed events of each stage, and a function that adds more, soon more than a sink
-- remembers.
local function suppressing()
	local s = fixtures.setup { correlator = { burst_size = 1, max_events = 2 } }
	s.broadcaster:start_recording_to_sink(fixtures.server().sink)
	local count = 0
	function s.more()
		for _ = 1, 3 do
			count = count + 1
			local object = fixtures.pod(("x"):rep(count % 200) .. count)
			for i = 1, 3 do
				s.recorder:event(object, "Normal", "R" .. count, ("m"):rep(count % 100) .. i)
			end
		end
	end
	s.more()
	return s
end

describe("a finalizer that records", function()
	local function suppressed(s, method, ...)
		local ran, first, second = with_finalizers(s.more, nil, s.broadcaster[method], s.broadcaster, ...)
		assert(ran > 10)
		return first, second
	end

	local function check_stats(stats)
		equal(nil, fixtures.fault(stats))
		equal(2, #stats.sinks)
		for _, sink in ipairs(stats.sinks) do
			local sum = 0
			for _, what in ipairs(sink.suppressed) do
				assert(what.name:find("^x*%d+$"), what.name)
				assert(what.reason:find("^R%d+$"), what.reason)
				equal("rate_limited", what.why)
				sum = sum + what.count
			end
			-- The sink remembers 128 entries, each of two events.
			equal(math.min(sink.rate_limited, 256), sum)
		end
	end

	it("leaves stats() a copy of one moment", function()
		check_stats((suppressed(suppressing(), "stats")))
		check_stats(select(2, suppressed(suppressing(), "shutdown", 0)))
	end)

	it("leaves metrics() complete", function()
		assert(fixtures.has(suppressed(suppressing(), "metrics"), "evrec_sink_received_total"))
	end)

	it("leaves explain() complete", function()
		local sinks = suppressed(suppressing(), "explain")
		equal(2, #sinks)
		for _, sink in ipairs(sinks) do
			equal("lua", sink.name)
			assert(#sink.suppressed > 2)
			for _, what in ipairs(sink.suppressed) do
				assert(what.object.name:find("^x*%d+$"), what.object.name)
				assert(what.message:find("m*%d$"), what.message)
				equal("spec", what.spam_key.component)
				equal(what.reason, what.aggregate_key.reason)
			end
		end
	end)

	it("leaves explain() the keys that callbacks returned", function()
		local function long(event)
			return ("k"):rep(100) .. event.involvedObject.name
		end
		local s = fixtures.setup { correlator = { burst_size = 1, spam_key_func = long, lru_cache_size = 10,
			key_func = function(event) return long(event), event.message end } }
		local count = 0
		local function more()
			for _ = 1, 5 do
				count = count + 1
				for _ = 1, 2 do
					s.recorder:event(fixtures.pod("p" .. count), "Normal", "R", "m")
				end
			end
		end
		more()
		local _, sinks = with_finalizers(more, nil, s.broadcaster.explain, s.broadcaster)
		for _, what in ipairs(sinks[1].suppressed) do
			local key = ("k"):rep(100) .. what.object.name
			equal(key, what.spam_key or key) -- nil: evrec has forgotten the key
			equal(key, what.aggregate_key or key)
		end
	end)

	it("does not change the event and the patch of a correlation", function()
		local c = evrec.correlator { burst_size = 1000, max_events = 1, clock = evrec.fake_clock(fixtures.now) }
		local function event(name, message)
			return evrec.event { involvedObject = fixtures.pod(name), reason = "R", type = "Normal", message = message }
		end
		local function combined(message)
			return "(combined from similar events): " .. message
		end
		local mine, name, count = event("mine", "m"), nil, 0
		-- Both change the state of the event in the correlator: the message of its aggregate, its name, its resource
		-- version.
		local function others()
			count = count + 1
			local other = event("other" .. count % 3, ("n"):rep(count * 50))
			assert(c:correlate(other))
			local answer = event("mine", combined "m"):to_table()
			answer.metadata = { name = name, namespace = "shop", resourceVersion = ("7"):rep(count * 50) }
			assert(c:update_state(answer))
		end
		name = c:correlate(mine).event.metadata.name
		for i = 2, 5 do
			local ran, result = with_finalizers(others, nil, c.correlate, c, mine)
			assert(ran > 2)
			equal(name, result.event.metadata.name)
			equal("mine", result.event.involvedObject.name)
			equal(combined "m", result.event.message)
			equal(i, result.event.count)
			assert(fixtures.has(result.patch, '"count":' .. ("%d"):format(i)), result.patch)
			assert(fixtures.has(result.patch, combined "m"), result.patch)
			equal(false, result.skip)
			equal("aggregated", result.why)
		end
	end)

	it("does not change the event of a correlation in another finalizer", function()
		local c = evrec.correlator { burst_size = 1000, max_events = 1, clock = evrec.fake_clock(fixtures.now) }
		local events, faults, calls = {}, {}, 0
		for i = 1, 4 do
			events[i] = evrec.event { involvedObject = fixtures.pod("pod" .. i), reason = "R", type = "Normal", message = "m" }
		end
		-- Correlates the i-th event while a finalizer may do the same with the next one.
		local function correlate(i, tables)
			if events[i] then
				garbage.make(function()
					local ok, message = pcall(correlate, i + 1, tables)
					faults[#faults + 1] = not ok and message or nil
				end)
				collectgarbage "restart" -- Lua 5.3 and LuaJIT stop the collector while a finalizer runs
				for _ = 1, tables do
					setmetatable({}, nil) -- changes the allocation that runs the finalizer
				end
				local result = c:correlate(events[i])
				equal("pod" .. i, result.event.involvedObject.name)
				calls = calls + 1
			end
		end
		garbage.collect_always()
		for tables = 0, 20 do
			correlate(1, tables % 4)
		end
		garbage.collect_normally()
		equal(nil, faults[1])
		assert(calls > 20)
	end)

	it("does not change the arguments that a recording call has read", function()
		local s, made = fixtures.setup(), 0
		at_each(function(n)
			local object, note = fixtures.pod("pod-" .. n), ("n"):rep(50) .. n
			local fields = { regarding = object, type = "Normal", reason = "Reason" .. n, note = note,
				annotations = { a = ("a"):rep(50) .. n }, related = fixtures.pod("related-" .. n) }
			local ran, ok, _, why = with_finalizers(function()
				object.name = nil
				for key in pairs(fields) do
					fields[key] = nil
				end
				s.recorder:eventf(pod, "Normal", "Other", "%s", ("o"):rep(n))
			end, n, s.recorder.emit, s.recorder, fields)
			s.broadcaster:poll()
			for _, write in ipairs(s.server.writes) do
				local e = write.event
				if e.involvedObject.name == "pod-" .. n then
					made = made + 1
					equal(("n"):rep(50) .. n, e.message)
					equal(("a"):rep(50) .. n, e.metadata.annotations.a)
					equal("related-" .. n, e.related.name)
				end
			end
			assert(ok or why == "invalid")
			return ran
		end)
		assert(made > 0)
	end)
end)

describe("a finalizer", function()
	it("that takes the last event of a queue makes next return nil", function()
		at_each(function(n)
			local s = fixtures.setup()
			local watch = s.broadcaster:watch()
			s.recorder:event(pod, "Normal", "R", "m")
			local taken
			local ran, event = with_finalizers(function() taken = watch:next() end, n, watch.next, watch)
			equal("m", (event or taken).message)
			assert(event == nil or taken == nil)
			return ran
		end)
	end)

	it("that takes the oldest event of a queue makes next return the one after it", function()
		at_each(function(n)
			local s = fixtures.setup()
			local watch = s.broadcaster:watch()
			local messages = { "short", ("long"):rep(100) }
			for _, message in ipairs(messages) do
				s.recorder:event(pod, "Normal", "R", message)
			end
			local taken
			local ran, event = with_finalizers(function() taken = watch:next() end, n, watch.next, watch)
			if taken then
				-- The finalizer may have run before next looked at the queue, or after next had taken its event.
				local first = taken.message == messages[1]
				equal(messages[first and 1 or 2], taken.message)
				equal(messages[first and 2 or 1], event.message)
				equal(nil, watch:next())
			else
				equal(messages[1], event.message)
				equal(messages[2], watch:next().message)
			end
			return ran
		end)
	end)

	it("that polls does not take the functions of a sink that is being started", function()
		at_each(function(n)
			local s, called = fixtures.setup(), 0
			local start = s.broadcaster.start_recording_to_sink
			local function choose()
				called = called + 1
				return "key"
			end
			s.watch:stop()
			local ran = with_finalizers(function() s.broadcaster:poll() end, n, start, s.broadcaster, s.server.sink,
				{ correlator = { spam_key_func = choose } })
			collectgarbage()
			collectgarbage()
			s.recorder:event(pod, "Normal", "R", "m")
			equal(1, called)
			return ran
		end)
	end)

	it("that removes an option does not change the copy of the constructor", function()
		at_each(function(n)
			local b = evrec.broadcaster { clock = evrec.fake_clock(fixtures.now), on_error = false }
			local watch = b:watch()
			local options = { component = ("c"):rep(50) .. n, host = ("h"):rep(50) .. n }
			local ran, recorder = with_finalizers(function() options.component, options.host = nil, nil end, n,
				b.new_recorder, b, options)
			recorder:event(pod, "Normal", "R", "m")
			local source = watch:next().source
			if source then -- the constructor copied the options before they were removed
				equal(("c"):rep(50) .. n, source.component)
				equal(("h"):rep(50) .. n, source.host)
			end
			return ran
		end)
		for _, constructor in ipairs { "broadcaster", "correlator" } do
			at_each(function(n)
				local options = { clock = evrec.fake_clock(fixtures.now) }
				local ran = with_finalizers(function() options.clock = nil end, n, evrec[constructor], options)
				return ran
			end)
		end
		at_each(function(n)
			local options = { path = "/dev/null" .. ("/"):rep(50) .. n }
			-- Both outcomes are legal: a sink, or the error that the path is missing.
			return (with_finalizers(function() options.path = nil end, n, pcall, evrec.sink.file, options))
		end)
		at_each(function(n)
			local text = ("x"):rep(50) .. n
			local options = { endpoint = "http://" .. text, headers = { [text] = text }, resource = { [text] = text } }
			local function change()
				options.headers[text], options.resource[text] = nil, nil
				options.endpoint, options.headers, options.resource = nil, {}, {}
			end
			return (with_finalizers(change, n, pcall, evrec.sink.otlp, options))
		end)
	end)

	it("that closes a reader leaves the event whole that is being read", function()
		local path = os.tmpname()
		local s = fixtures.setup()
		s.broadcaster:start_recording_to_sink(evrec.sink.file { path = path })
		s.recorder:event(pod, "Normal", "R", ("m"):rep(500))
		assert(s.broadcaster:shutdown(5))
		at_each(function(n)
			local next_event, _, _, reader = evrec.lines { path = path }:query {}
			local ran, event, json = with_finalizers(function() reader:close() end, n, next_event)
			if event then
				assert(json:find('^{".*"}$') or json:find('^{".*}$'), json)
				equal(("m"):rep(500), json:match '"message":"(m*)"')
			end
			return ran
		end)
		os.remove(path)
	end)

	it("that changes annotations makes the call invalid, or does not change the event", function()
		at_each(function(n)
			local s = fixtures.setup()
			local annotations = { a = "1", b = "2" }
			local ran, ok, _, name = with_finalizers(function()
				for i = 1, 100 do
					annotations["key" .. i] = ("v"):rep(100)
				end
				annotations.a, annotations.b = {}, nil
			end, n, s.recorder.annotated_eventf, s.recorder, pod, annotations, "Normal", "R", "m")
			if ok then
				s.broadcaster:poll()
				local written = s.server.writes[1].event.metadata.annotations
				equal("1", written.a)
				equal("2", written.b)
				equal(nil, written.key1)
			else
				equal("invalid", name)
			end
			equal(nil, fixtures.fault(s.broadcaster:stats()))
			return ran
		end)
	end)
end)

finalizer_cases.run(...)
