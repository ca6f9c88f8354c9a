-- Series (correlate = "series") as a script sees them: a sink in Lua under a fake clock.
local evrec = require "evrec"
local fixtures = require "fixtures"
local series_sink = require "series_sink"

local pod = fixtures.pod()
local node = { kind = "Node", name = "n" }
local setup, states_of = series_sink.setup, series_sink.states_of

describe("a series", function()
	it("is a create, then a patch, and then a count in memory", function()
		local s = setup()
		s.record()
		s.broadcaster:poll()
		assert.same({ "create" }, s.news())
		local first = s.writes[1].event
		assert.same({
			kind = "Event", apiVersion = "v1", metadata = { name = first.metadata.name, namespace = "shop" },
			involvedObject = pod, reason = "BackOff", message = "m", type = "Warning", action = "BackOff",
			eventTime = "2023-11-14T22:13:20.000000Z", reportingComponent = "spec", reportingInstance = "node-1",
		}, first)
		s.clock:advance(1.5)
		s.record()
		s.broadcaster:poll()
		assert.equal("patch", s.writes[2].verb)
		assert.equal(first.metadata.name, s.writes[2].event.metadata.name)
		assert.equal(first.eventTime, s.writes[2].event.eventTime)
		local series = { count = 2, lastObservedTime = "2023-11-14T22:13:21.500000Z", state = "Ongoing" }
		assert.same({ series = series }, s.writes[2].patch)
		assert.same(series, s.writes[2].event.series)
		s.clock:advance(60)
		s.record(1000)
		s.broadcaster:poll()
		assert.equal(2, #s.writes)
		local stats = s.stats()
		assert.equal(1000, stats.counted)
		assert.equal(0, stats.pending)
		assert.equal(1, stats.created)
		assert.equal(1, stats.patched)
		assert.same({
			series = 1, ongoing = 1, begun = 1, finished = 0, evicted = 0, evicted_singles = 0, notes = 0,
		}, stats.series)
		assert.equal(1000, s.broadcaster:stats().counted)
		assert.truthy(fixtures.has(s.broadcaster:metrics(), 'evrec_sink_counted{sink="1",name="lua"} 1000\n'))
		assert.truthy(fixtures.has(s.broadcaster:metrics(), 'evrec_sink_series_ongoing{sink="1",name="lua"} 1\n'))
		assert.truthy(fixtures.has(s.broadcaster:metrics(), 'evrec_sink_series_begun_total{sink="1",name="lua"} 1\n'))
	end)

	it("is written every refresh_interval, and once it is finished", function()
		local s = setup()
		for minute = 0, 29 do
			s.at(minute * 60)
			s.record()
		end
		s.at(1799)
		assert.same({ "create", "patch 2 Ongoing" }, s.news())
		assert.equal(28, s.stats().counted)
		s.at(1800)
		assert.same({ "patch 30 Ongoing" }, s.news())
		assert.equal(0, s.stats().counted)
		s.record()
		s.at(2519)
		assert.same({}, s.news())
		-- Last seen at 1800 s: 2160 s is not later than that by more than finish_time, 2520 s is.
		s.at(2520)
		assert.same({ "patch 31 Finished" }, s.news())
		local stats = s.stats()
		assert.equal(0, stats.counted)
		assert.equal(0, stats.series.series)
		assert.equal(1, stats.series.finished)
		s.record()
		s.broadcaster:poll()
		assert.same({ "create" }, s.news())
		assert.is_true(s.writes[1].event.metadata.name ~= s.writes[#s.writes].event.metadata.name)
	end)

	it("that went on no further is told to be finished by a patch of its own", function()
		local s = setup()
		s.record(2)
		s.at(1)
		s.news()
		s.at(720)
		assert.same({ "patch 2 Finished" }, s.news())
	end)

	it("has the options refresh_interval and finish_time", function()
		local s = setup { refresh_interval = 10, finish_time = 25 }
		for second = 0, 9 do
			s.at(second)
			s.record()
		end
		s.news()
		s.at(10)
		assert.same({ "patch 10 Ongoing" }, s.news())
		s.record()
		s.at(20)
		assert.same({ "patch 11 Ongoing" }, s.news())
		s.at(50)
		assert.same({ "patch 11 Finished" }, s.news())
	end)

	it("tells its states to watchers, queues and logs", function()
		local s = setup()
		local states, lines, seen = states_of(s.broadcaster), {}, {}
		local queue = s.broadcaster:watch()
		s.broadcaster:start_logging(function(format, ...) lines[#lines + 1] = format:format(...) end)
		s.broadcaster:start_structured_logging(function(_, fields) seen[#seen + 1] = fields end)
		s.record(3)
		s.at(720)
		assert.same({ "BackOff Ongoing 2", "BackOff Finished 3" }, states)
		local queued = {}
		for event in function() return queue:next() end do
			queued[#queued + 1] = event.series and event.series.state or "event"
		end
		table.sort(queued)
		assert.same({ "Finished", "Ongoing", "event", "event", "event" }, queued)
		assert.equal(5, #lines)
		assert.matches("^Event%(.*%): type: 'Warning' reason: 'BackOff' m$", lines[1])
		assert.matches("^Event%(.*%): type: 'Warning' reason: 'BackOff' series: 'Finished' count: '3' m$", lines[5])
		assert.equal(5, #seen)
		assert.is_nil(seen[1].seriesState)
		assert.equal("Finished", seen[5].seriesState)
		assert.equal("3", seen[5].seriesCount)
	end)

	it("is told by the first of several sinks alone", function()
		local s = setup()
		local states = states_of(s.broadcaster)
		s.broadcaster:start_recording_to_sink(evrec.sink.lua { create = function() end, correlate = "series" })
		s.record(2)
		assert.same({ "BackOff Ongoing 2" }, states)
		s.watch:stop()
		s.broadcaster:poll()
		s.record(2, "Failed")
		assert.same({ "BackOff Ongoing 2", "Failed Ongoing 2" }, states)
	end)

	it("is listed by evrec.testing.recorder", function()
		local t = evrec.testing.recorder { component = "c", instance = "i", broadcaster = { on_error = false } }
		t.broadcaster:start_recording_to_sink(evrec.sink.lua {
			create = function() end, patch = function() end, correlate = "series",
		})
		t:action_eventf(pod, node, "Normal", "R", "A", "m%d", 1)
		assert.equal("i", t.events[1].instance)
		assert.equal("A", t.events[1].action)
		assert.same(node, t.events[1].related)
		assert.is_nil(t.events[1].series)
		t:action_eventf(pod, node, "Normal", "R", "A", "m%d", 2)
		assert.equal(3, #t.events)
		local told = t.events[2].series or t.events[3].series
		assert.equal("Ongoing", told.state)
		assert.equal(2, told.count)
		local strings = t:strings()
		table.sort(strings)
		assert.same({ "Normal R m1", "Normal R m2", "Normal R m2 (series Ongoing, 2)" }, strings)
	end)

	it("shows its state as a string", function()
		local s = setup()
		local queue = s.broadcaster:watch()
		s.record(2)
		local states = {}
		for event in function() return queue:next() end do
			states[#states + 1] = tostring(event):match "^evrec%.event: .* BackOff .*(%(series .*%))$"
		end
		assert.same({ "(series Ongoing, 2)" }, states)
		assert.is_nil(tostring(evrec.event { series = { count = 2 } }):find("series", 1, true))
	end)

	it("is written by flush, shutdown and the stop of its sink, as ongoing", function()
		for what, finish in pairs {
			flush = function(s) return s.broadcaster:flush(1) end,
			shutdown = function(s) return s.broadcaster:shutdown(1) end,
			stop = function(s)
				s.watch:stop()
				s.broadcaster:poll()
				return true
			end,
		} do
			local s = setup()
			s.record(2)
			s.broadcaster:poll()
			s.record(3)
			s.news()
			assert.is_true(finish(s), what)
			assert.same({ "patch 5 Ongoing" }, s.news(), what)
			assert.equal(0, s.broadcaster:stats().counted)
			assert.equal(0, s.broadcaster:stats().pending)
			assert.equal(3, s.broadcaster:stats().coalesced + s.broadcaster:stats().patched - 1)
		end
	end)

	it("goes on after a flush", function()
		local s = setup()
		s.record(3)
		s.broadcaster:flush(1)
		s.record(2)
		s.broadcaster:poll()
		assert.equal(2, s.stats().counted)
		s.news()
		s.at(720)
		assert.same({ "patch 5 Finished" }, s.news())
	end)

	it("merges messages, and explain lists them", function()
		local s = setup()
		for i = 1, 5 do
			s.record(1, "BackOff", "m" .. (i < 5 and i or 4))
			s.broadcaster:poll()
		end
		assert.same({ "create", "patch 2 Ongoing" }, s.news())
		assert.equal("m1", s.writes[1].event.message)
		assert.is_nil(s.writes[2].patch.message)
		assert.equal("m2", s.writes[2].event.message)
		assert.equal(3, s.stats().series.notes)
		local stages = {}
		for _, what in ipairs(s.broadcaster:explain(pod)[1].suppressed) do
			stages[what.stage] = what
		end
		assert.equal("merged", stages.merged.why)
		assert.equal("BackOff", stages.merged.reason)
		assert.is_true(stages.merged.count > 0)
		s.at(720)
		for _, what in ipairs(s.broadcaster:explain(pod)[1].suppressed) do
			stages[what.stage] = what
		end
		assert.equal("finished", stages.finished.why)
		assert.equal(5, stages.finished.count)
		assert.is_nil(stages.finished.cause)
		for _, stage in pairs(stages) do
			assert.is_nil(stage.spam_key)
			assert.is_nil(stage.tokens)
			assert.is_nil(stage.next_token_in)
		end
	end)

	it("has one message with note_in_key", function()
		local s = setup { note_in_key = true }
		for _ = 1, 2 do
			s.record(1, "BackOff", "m1")
			s.record(1, "BackOff", "m2")
		end
		s.broadcaster:poll()
		s.record(1, "BackOff", "m2")
		assert.equal(2, s.stats().series.begun)
		assert.equal(0, s.stats().series.notes)
		local names = {}
		for _, write in ipairs(s.writes) do
			names[write.event.metadata.name] = write.event.message
		end
		local messages = {}
		for _, message in pairs(names) do
			messages[#messages + 1] = message
		end
		table.sort(messages)
		assert.same({ "m1", "m2" }, messages)
	end)

	it("is finished early for a new event, if max_series is reached", function()
		local s = setup { max_series = 1 }
		local states = states_of(s.broadcaster)
		s.record(2, "A")
		s.broadcaster:poll()
		s.record(1, "A")
		s.broadcaster:poll()
		s.news()
		assert.equal(1, s.stats().counted)
		s.record(1, "B")
		s.broadcaster:poll()
		local writes = s.news()
		table.sort(writes)
		assert.same({ "create", "patch 3 Finished" }, writes)
		assert.same({ "A Ongoing 2", "A Finished 3" }, states)
		local stats = s.stats()
		assert.equal(1, stats.series.evicted)
		assert.equal(1, stats.series.finished)
		assert.equal(1, stats.series.series)
		assert.equal(0, stats.counted)
	end)

	it("consists of events that are equal but for their messages", function()
		local s = setup()
		local base = { regarding = pod, related = node, type = "Normal", reason = "R", action = "A", note = "m" }
		local function record(changes)
			local what = {}
			for name, value in pairs(base) do
				what[name] = value
			end
			for name, value in pairs(changes) do
				what[name] = value
			end
			assert.is_true(s.recorder:emit(what))
			s.broadcaster:poll()
		end
		record {}
		local changed = fixtures.pod()
		changed.resourceVersion, changed.fieldPath = "7", "spec"
		record { regarding = changed, note = "n", labels = { a = "b" } }
		assert.same({ "create", "patch 2 Ongoing" }, s.news())
		for _, changes in ipairs {
			{ type = "Warning" }, { reason = "S" }, { action = "B" }, { regarding = fixtures.pod "web-1" },
			{ related = { kind = "Node", name = "o" } },
		} do
			record(changes)
			assert.same({ "create" }, s.news())
		end
		s.recorder = s.broadcaster:new_recorder { component = "spec", instance = "i" }
		record {}
		assert.same({ "create" }, s.news())
		assert.equal("i", s.writes[#s.writes].event.reportingInstance)
	end)

	it("has the action and the related object of action_eventf", function()
		local s = setup()
		assert.is_true(s.recorder:action_eventf(pod, node, "Normal", "R", "A", "%s", "m"))
		s.broadcaster:poll()
		local e = s.writes[1].event
		assert.equal("A", e.action)
		assert.same(node, e.related)
		assert.is_true(s.recorder:action_eventf(pod, node, "Normal", "R", "B", "m"))
		s.broadcaster:poll()
		assert.same({ "create", "create" }, s.news())
	end)

	it("goes on if its patch finds no event", function()
		local s = setup()
		s.record()
		s.broadcaster:poll()
		s.answers[1] = function() return nil, 404 end
		s.record()
		s.broadcaster:poll()
		assert.same({ "create", "patch 2 Ongoing", "create" }, s.news())
		assert.equal(2, s.writes[3].event.series.count)
	end)

	it("needs tokens with rate_limit, and counts what has none", function()
		local s = setup({ rate_limit = true }, { correlator = { burst_size = 2, qps = 1 / 60 } })
		for _ = 1, 3 do
			s.record(1, "A")
			s.broadcaster:poll()
		end
		s.record(1, "B")
		s.broadcaster:poll()
		assert.same({ "create", "patch 2 Ongoing" }, s.news())
		assert.equal(1, s.stats().counted)
		assert.equal(1, s.stats().rate_limited)
		assert.equal(1, #s.drops)
		assert.equal("rate_limited", s.drops[1].why)
		assert.equal("B", s.drops[1].event.reason)
		local what = s.broadcaster:explain(pod)[1].suppressed[1]
		assert.equal("rate_limited", what.stage)
		assert.is_true(what.tokens < 1)
		assert.is_true(what.next_token_in > 59 and what.next_token_in <= 60)
		s.at(60)
		s.record(1, "B")
		s.broadcaster:poll()
		assert.same({ "create" }, s.news())
		assert.equal(2, s.writes[3].event.series.count)
	end)

	it("counts a spam_key_func that fails, and takes the default key", function()
		local s = setup({ rate_limit = true }, { correlator = { spam_key_func = function() error "no key" end } })
		s.record(2)
		s.broadcaster:poll()
		assert.equal(2, s.stats().correlator.callback_errors)
		assert.equal(2, s.broadcaster:stats().callback_errors)
		assert.equal(0, s.stats().rate_limited)
	end)

	it("begins without a token, and its count is written in time", function()
		local s = setup({ rate_limit = true }, { correlator = { burst_size = 1, qps = 1e-6 } })
		local function storm()
			for _ = 1, 1000 do
				s.record()
				s.broadcaster:poll()
			end
		end
		storm()
		assert.same({ "create" }, s.news())
		assert.equal(999, s.stats().counted)
		assert.equal(0, s.stats().rate_limited)
		s.at(720)
		s.broadcaster:poll()
		assert.same({ "patch 1000 Finished" }, s.news())
		s = setup({ rate_limit = true }, { correlator = { burst_size = 1, qps = 1e-6 } })
		storm()
		assert.is_true(s.broadcaster:shutdown(1))
		assert.same({ "create", "patch 1000 Ongoing" }, s.news())
	end)
end)
