local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"

local pod = fixtures.pod()

describe("metrics", function()
	local function parse(text)
		local samples, types = {}, {}
		assert.equal("\n", text:sub(-1))
		for line in text:gmatch("([^\n]*)\n") do
			local name, kind = line:match("^# TYPE ([%w_]+) (%w+)$")
			if name then
				assert.is_nil(types[name])
				types[name] = kind
			elseif not line:match("^# HELP [%w_]+ .+$") then
				local key, value = line:match("^([%w_]+{?.*}?) (%d+%.?%d*)$")
				assert.truthy(key, line)
				assert.is_nil(samples[key])
				assert.truthy(types[key:match("^[%w_]+")], line)
				samples[key] = tonumber(value)
			end
		end
		return samples, types
	end

	it("are stats() in Prometheus' text format", function()
		local s = fixtures.setup { correlator = { burst_size = 2 } }
		for _ = 1, 3 do
			s.recorder:event(pod, "Normal", "R", "m")
		end
		s.recorder:event(pod, "Error", "R", "m")
		local samples, types = parse(s.broadcaster:metrics())
		assert.equal(4, samples.evrec_recorded_total)
		assert.equal(1, samples.evrec_invalid_total)
		assert.equal(2, samples['evrec_sink_pending{sink="1",name="lua"}'])
		assert.equal(1, samples['evrec_sink_rate_limited_total{sink="1",name="lua"}'])
		assert.equal(0, samples['evrec_dropped_total{cause="queue_full"}'])
		assert.equal(0, samples['evrec_sink_dropped_total{sink="1",name="lua",cause="rejected"}'])
		assert.equal("gauge", types.evrec_sink_pending)
		assert.equal("counter", types.evrec_recorded_total)
		s.broadcaster:poll()
		samples = parse(s.broadcaster:metrics())
		assert.equal(0, samples['evrec_sink_pending{sink="1",name="lua"}'])
		assert.equal(1, samples['evrec_sink_created_total{sink="1",name="lua"}'])
		assert.equal(1, samples['evrec_sink_coalesced_total{sink="1",name="lua"}'])
	end)

	it("show how a sink is throttled", function()
		local s = fixtures.setup()
		s.server.answers[1] = function() return nil, 429, 7.5 end
		s.recorder:event(pod, "Normal", "R", "m")
		s.broadcaster:poll()
		local samples, types = parse(s.broadcaster:metrics())
		assert.equal(1, samples['evrec_sink_throttle_refused_total{sink="1",name="lua"}'])
		assert.equal(0, samples['evrec_sink_throttle_window{sink="1",name="lua"}'])
		assert.equal(0, samples['evrec_sink_throttle_rate{sink="1",name="lua"}'])
		assert.equal(7.5, samples['evrec_sink_throttle_paused_seconds{sink="1",name="lua"}'])
		assert.equal("counter", types.evrec_sink_throttle_refused_total)
		assert.equal("gauge", types.evrec_sink_throttle_window)
		assert.equal("gauge", types.evrec_sink_throttle_rate)
		assert.equal("gauge", types.evrec_sink_throttle_paused_seconds)
		s.clock:advance(7.5)
		s.broadcaster:poll()
		samples = parse(s.broadcaster:metrics())
		assert.equal(1, samples['evrec_sink_throttle_refused_total{sink="1",name="lua"}'])
		assert.equal(1, samples['evrec_sink_throttle_window{sink="1",name="lua"}'])
		assert.equal(0, samples['evrec_sink_throttle_paused_seconds{sink="1",name="lua"}'])
	end)

	it("show the API of a sink", function()
		local b = evrec.broadcaster { on_error = false }
		b:start_recording_to_sink(evrec.sink.lua { create = print })
		b:start_recording_to_sink(evrec.sink.lua { create = print, api = "events.k8s.io/v1", name = "new" })
		local stats = b:stats()
		assert.equal("v1", stats.sinks[1].api)
		assert.equal("events.k8s.io/v1", stats.sinks[2].api)
		assert.is_nil(stats.ended.api)
		local samples, types = parse(b:metrics())
		assert.equal("gauge", types.evrec_sink_api)
		assert.equal(1, samples['evrec_sink_api{sink="1",name="lua",api="v1"}'])
		assert.equal(1, samples['evrec_sink_api{sink="2",name="new",api="events.k8s.io/v1"}'])
		assert.has_error(function() b:metrics { labels = { api = "x" } } end,
			"broadcaster:metrics: label 'api': evrec sets a label of this name")
	end)

	it("show the series of a sink", function()
		local samples, types = parse(fixtures.setup().broadcaster:metrics())
		for name, kind in pairs {
			counted = "gauge", series_remembered = "gauge", series_ongoing = "gauge", series_begun_total = "counter",
			series_finished_total = "counter", series_evicted_total = "counter",
			series_evicted_singles_total = "counter", series_notes_total = "counter",
			notes_lost_total = "counter",
		} do
			assert.equal(0, samples[("evrec_sink_%s{sink=\"1\",name=\"lua\"}"):format(name)], name)
			assert.equal(kind, types["evrec_sink_" .. name], name)
		end
		assert.equal(0, samples['evrec_sink_series_begun_total{sink="ended"}'])
		assert.is_nil(samples['evrec_sink_counted{sink="ended"}'])
	end)

	it("tell sinks apart", function()
		local s = fixtures.setup()
		s.broadcaster:start_recording_to_sink(fixtures.server().sink)
		local samples = parse(s.broadcaster:metrics())
		assert.equal(0, samples['evrec_sink_created_total{sink="1",name="lua"}'])
		assert.equal(0, samples['evrec_sink_created_total{sink="2",name="lua"}'])
	end)

	it("neither fall nor change their labels if a sink stops", function()
		local s = fixtures.setup { correlator = { burst_size = 1 } }
		s.broadcaster:start_recording_to_sink(fixtures.server().sink)
		for _ = 1, 2 do
			s.recorder:event(pod, "Normal", "R", "m")
		end
		s.server.answers[1] = function() return nil, 429 end
		s.broadcaster:poll()
		s.clock:advance(60)
		s.broadcaster:poll()
		local before = parse(s.broadcaster:metrics())
		assert.equal(0, before['evrec_sink_created_total{sink="ended"}'])
		s.server.answers[1] = function() return nil, 422 end
		s.recorder:event(fixtures.pod("web-1"), "Normal", "R", "m")
		s.watch:stop()
		s.broadcaster:poll()
		s.broadcaster:start_recording_to_sink(fixtures.server().sink)
		local after, types = parse(s.broadcaster:metrics())
		assert.is_nil(after['evrec_sink_created_total{sink="1",name="lua"}'])
		assert.equal(2, after['evrec_sink_created_total{sink="2",name="lua"}'])
		assert.equal(0, after['evrec_sink_created_total{sink="3",name="lua"}'])
		assert.equal(1, after['evrec_sink_created_total{sink="ended"}'])
		assert.equal(1, after['evrec_sink_rate_limited_total{sink="ended"}'])
		assert.equal(1, after['evrec_sink_throttle_refused_total{sink="ended"}'])
		assert.equal(1, after['evrec_sink_dropped_total{sink="ended",cause="rejected"}'])
		assert.is_nil(after['evrec_sink_pending{sink="ended"}'])
		assert.equal(before['evrec_dropped_total{cause="rejected"}'] + 1, after['evrec_dropped_total{cause="rejected"}'])
		-- Returns, for every metric, the sum over all sinks and causes.
		local function sums(samples)
			local of = {}
			for key, value in pairs(samples) do
				local name = key:match("^[%w_]+")
				of[name] = (of[name] or 0) + value
			end
			return of
		end
		local earlier, later = sums(before), sums(after)
		for name, kind in pairs(types) do
			assert.is_true(kind ~= "counter" or later[name] >= earlier[name], name)
		end
	end)

	-- Parses the text by the client library of Prometheus for Python.
	local function read_by_prometheus(text)
		local path = os.tmpname()
		local file = assert(io.open(path, "w"))
		file:write(text)
		file:close()
		local pipe = assert(io.popen(fixtures.python .. "spec/support/metrics.py <" .. path .. " 2>&1"))
		local samples = {}
		for line in pipe:lines() do
			local kind, name, labels, value = line:match("^(%l+) (%S+) {(.*)} (%d+%.?%d*)$")
			assert.truthy(kind, line)
			samples[name .. "{" .. labels .. "}"] = tonumber(value)
		end
		pipe:close()
		os.remove(path)
		return samples
	end

	it("can be read by the parser of Prometheus", function()
		local s = fixtures.setup { correlator = { burst_size = 2 } }
		local server = fixtures.server()
		s.broadcaster:start_recording_to_sink(server.sink)
		server.answers[1] = function() return nil, 422 end
		for _ = 1, 5 do
			s.recorder:event(pod, "Normal", "R", "m")
		end
		s.broadcaster:poll()
		server.answers[1] = function() return nil, 429, 2.5 end
		s.recorder:event(fixtures.pod("web-1"), "Normal", "R", "m")
		s.broadcaster:poll()
		local text = s.broadcaster:metrics()
		local samples = read_by_prometheus(text)
		assert.equal(6, samples["evrec_recorded_total{}"])
		assert.equal(3, samples["evrec_sink_rate_limited_total{name='lua', sink='1'}"])
		assert.equal(2, samples["evrec_sink_created_total{name='lua', sink='1'}"])
		assert.equal(1, samples["evrec_sink_throttle_refused_total{name='lua', sink='2'}"])
		assert.equal(2.5, samples["evrec_sink_throttle_paused_seconds{name='lua', sink='2'}"])
		assert.equal(2, samples["evrec_sink_dropped_total{cause='rejected', name='lua', sink='2'}"])
		-- Prometheus reads as many samples as were written.
		local count = 0
		for _ in pairs(parse(text)) do
			count = count + 1
		end
		for _ in pairs(samples) do
			count = count - 1
		end
		assert.equal(0, count)
	end)

	it("can be read by the parser of Prometheus if a name or a label is escaped", function()
		local b = evrec.broadcaster()
		b:start_recording_to_sink(evrec.sink.lua { create = print, name = 'a"b\\c\nd{e="f"}' })
		local text = b:metrics { labels = { zone = 'x"\\\n}', place = "K\195\182ln" } }
		assert.truthy(fixtures.has(text, [[,name="a\"b\\c\nd{e=\"f\"}"}]]))
		local samples = read_by_prometheus(text)
		local labels = [[{name='a"b\\c\nd{e="f"}', place='Köln', sink='1', zone='x"\\\n}'}]]
		assert.equal(0, samples["evrec_sink_created_total" .. labels])
	end)

	it("are complete without a sink", function()
		assert.equal(0, parse(evrec.broadcaster():metrics()).evrec_recorded_total)
	end)

	it("have the labels of the option in every sample", function()
		local s = fixtures.setup()
		s.recorder:event(pod, "Normal", "R", "m")
		local text = s.broadcaster:metrics { labels = { worker = 3, _host2 = "node-1" } }
		local samples = read_by_prometheus(text)
		assert.equal(1, samples["evrec_recorded_total{_host2='node-1', worker='3'}"])
		assert.equal(1, samples["evrec_sink_pending{_host2='node-1', name='lua', sink='1', worker='3'}"])
		for key in pairs(samples) do
			assert.truthy(fixtures.has(key, "_host2='node-1'") and fixtures.has(key, "worker='3'"), key)
		end
		assert.equal(s.broadcaster:metrics(), s.broadcaster:metrics { labels = {} })
		assert.equal(s.broadcaster:metrics(), s.broadcaster:metrics { labels = cjson.null })
	end)

	it("of several broadcasters are one text, which the parser of Prometheus can read", function()
		local one, two = fixtures.setup(), fixtures.setup()
		one.recorder:event(pod, "Normal", "R", "m")
		two.recorder:event(pod, "Error", "R", "m")
		local text = evrec.metrics({ one.broadcaster, audit = two.broadcaster }, { labels = { worker = "0" } })
		parse(text)
		local samples = read_by_prometheus(text)
		assert.equal(1, samples["evrec_recorded_total{broadcaster='1', worker='0'}"])
		assert.equal(0, samples["evrec_invalid_total{broadcaster='1', worker='0'}"])
		assert.equal(1, samples["evrec_invalid_total{broadcaster='audit', worker='0'}"])
		assert.equal(1, samples["evrec_sink_pending{broadcaster='1', name='lua', sink='1', worker='0'}"])
		assert.equal(0, samples["evrec_sink_created_total{broadcaster='audit', sink='ended', worker='0'}"])
		assert.equal(0, samples["evrec_dropped_total{broadcaster='audit', cause='closed', worker='0'}"])
	end)

	it("of several processes are made of their stats, which may have been JSON", function()
		local one, two = fixtures.setup(), evrec.broadcaster()
		one.recorder:event(pod, "Normal", "R", "m")
		local samples = read_by_prometheus(evrec.metrics({
			["0"] = cjson.decode(cjson.encode(one.broadcaster:stats())), [1] = cjson.decode(cjson.encode(two:stats())),
		}, { by = "worker" }))
		assert.equal(1, samples["evrec_recorded_total{worker='0'}"])
		assert.equal(0, samples["evrec_recorded_total{worker='1'}"])
		assert.equal(1, samples["evrec_sink_pending{name='lua', sink='1', worker='0'}"])
		assert.equal(0, samples["evrec_sink_created_total{sink='ended', worker='1'}"])
	end)

	it("refuse labels that Prometheus refuses, and labels that evrec sets", function()
		local b = evrec.broadcaster()
		for _, case in ipairs {
			{ { ["1st"] = "x" }, "label '1st': a name has letters, digits and underscores" },
			{ { ["a-b"] = "x" }, "label 'a-b': " }, { { [""] = "x" }, "label '': " }, { { ["a\n"] = "x" }, "label 'a\n': " },
			{ { ["\195\182"] = "x" }, "label '\195\182': " },
			{ { __name__ = "x" }, "label '__name__': Prometheus keeps" },
			{ { sink = "x" }, "label 'sink': evrec sets" }, { { name = "x" }, "label 'name': evrec sets" },
			{ { cause = "x" }, "label 'cause': evrec sets" }, { { broadcaster = "x" }, "label 'broadcaster': evrec sets" },
			{ { "x" }, "labels are named by strings, found a number" },
			{ { worker = {} }, "label 'worker': expected a string or a number, got table" },
			{ { worker = true }, "label 'worker': expected a string or a number, got boolean" },
			{ "x", "option 'labels': expected a table, got string" },
		} do
			assert.has_error(function() b:metrics { labels = case[1] } end)
			local _, message = pcall(b.metrics, b, { labels = case[1] })
			assert.truthy(fixtures.has(message, "broadcaster:metrics: "), message)
			assert.truthy(fixtures.has(message, case[2]), message)
			assert.is_false(pcall(evrec.metrics, { b }, { labels = case[1] }))
		end
	end)

	it("refuse values of labels that are not UTF-8", function()
		local b = evrec.broadcaster()
		for _, text in ipairs { "\255", "\195", "a\128", "\192\128", "\224\159\191", "\237\160\128", "\244\144\128\128",
			"\226\194\128" } do
			assert.is_false(pcall(b.metrics, b, { labels = { x = text } }), text)
		end
		for _, text in ipairs { "", "\0", "\127", "\194\128", "\224\160\128", "\237\159\191", "\239\191\189",
			"\244\143\191\191" } do
			assert.is_true(pcall(b.metrics, b, { labels = { x = text } }), text)
		end
	end)

	it("refuse other options, and what is no broadcaster", function()
		local b = evrec.broadcaster()
		local function fails(part, f, ...)
			local ok, message = pcall(f, ...)
			assert.is_false(ok)
			assert.truthy(fixtures.has(message, part), message)
		end
		fails("broadcaster:metrics: unknown option 'lables': did you mean 'labels'?", b.metrics, b, { lables = {} })
		fails("broadcaster:metrics: expected a table of options, got string", b.metrics, b, "worker")
		fails("evrec.metrics: expected a table of broadcasters, got userdata", evrec.metrics, b)
		fails("evrec.metrics: expected a table of broadcasters, got nil", evrec.metrics)
		fails("evrec.metrics: expected a broadcaster or its stats() at 'x', got number", evrec.metrics, { x = 5 })
		fails("evrec.metrics: expected a broadcaster or its stats() at '1', got table", evrec.metrics, { {} })
		fails("evrec.metrics: label '__x': Prometheus keeps", evrec.metrics, { b }, { by = "__x" })
		fails("evrec.metrics: option 'by': 'w' is one of the labels", evrec.metrics, { b }, { by = "w", labels = { w = 1 } })
		fails("evrec.metrics: two broadcasters are named '1'", evrec.metrics, { b, ["1"] = b })
		fails("evrec.metrics: label 'broadcaster': not valid UTF-8", evrec.metrics, { ["\255"] = b })
		fails("unknown option 'label'", evrec.metrics, { b }, { label = {} })
	end)

	it("raise with the position of their caller", function()
		for _, script in ipairs {
			"local evrec = ... local function f()\nevrec.metrics(5) return 1 end\nf() return 1",
			"local evrec = ... local function f(b)\nb:metrics(5) return 1 end\nf(evrec.broadcaster()) return 1",
		} do
			local ok, message = pcall(assert((_G.loadstring or load)(script, "=script")), evrec)
			assert.is_false(ok)
			assert.matches("^script:2: ", message)
		end
	end)
end)
