-- Events of a sink in the new style (events.k8s.io/v1): made fit, dropped as unfit, and written in each form.
local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"
local series_sink = require "series_sink"

local pod = fixtures.pod()
local node = { kind = "Node", name = "n" }
local setup = series_sink.setup

describe("an event of a sink in the new style", function()
	it("is made fit for the API server", function()
		local s = setup({}, { max_message_bytes = 4096 })
		local queue = s.broadcaster:watch()
		local r = s.broadcaster:new_recorder { component = "spec" }
		assert.is_true(r:action_eventf(pod, nil, "Normal", ("r"):rep(200), ("a"):rep(1000), ("m"):rep(2000)))
		s.broadcaster:poll()
		local recorded, written = queue:next(), s.writes[1].event
		assert.equal(2000, #recorded.message)
		assert.equal(200, #recorded.reason)
		assert.equal(1000, #recorded.action)
		assert.is_true(#written.message <= 1024 and #written.message > 1000)
		assert.is_true(#written.reason <= 128 and #written.reason > 100)
		assert.is_true(#written.action <= 128 and #written.action > 100)
		assert.matches("^spec%-.", written.reportingInstance)
		assert.is_true(#written.reportingInstance <= 128)
		r = s.broadcaster:new_recorder { component = "spec", instance = ("i"):rep(1000) }
		assert.is_true(r:event(pod, "Normal", "R", "m"))
		s.broadcaster:poll()
		assert.is_true(#s.writes[2].event.reportingInstance <= 128)
	end)

	it("is dropped as unfit by this sink alone if nothing can make it fit", function()
		local s = setup()
		local other = fixtures.server()
		s.broadcaster:start_recording_to_sink(other.sink)
		for _, component in ipairs { "not a name", "", "a/b/c" } do
			local r = s.broadcaster:new_recorder { component = component }
			assert.is_true(r:event(pod, "Normal", "R", "m" .. component))
		end
		assert.is_true(s.recorder:action_eventf(node, pod, "Normal", "R", "A", "m"))
		s.broadcaster:poll()
		assert.equal(0, #s.writes)
		assert.equal(4, #other.writes)
		assert.equal(4, #s.drops)
		assert.equal("unfit", s.drops[1].why)
		assert.equal("not a name", s.drops[1].event.reportingComponent)
		local stats = s.stats()
		assert.equal(4, stats.dropped.unfit)
		assert.equal(0, stats.series.series)
		assert.equal(4, s.broadcaster:stats().dropped.unfit)
		local what = s.broadcaster:explain(pod)[1].suppressed[1]
		assert.equal("dropped", what.stage)
		assert.equal("unfit", what.cause)
		local ok, _, message = s.broadcaster:flush(1)
		assert.is_false(ok)
		assert.truthy(fixtures.has(message, "unfit"), message)
	end)

	it("that is unfit is told with the reason", function()
		local errors = {}
		local b = evrec.broadcaster {
			clock = evrec.fake_clock(fixtures.now),
			on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end,
		}
		b:start_recording_to_sink(evrec.sink.lua { api = "events.k8s.io/v1", create = function() end })
		local r = b:new_recorder { component = "not a name" }
		for _ = 1, 3 do
			assert.is_true(r:event(pod, "Normal", "R", "m"))
		end
		b:poll()
		assert.same({ 'unfit: lua: reportingController: "not a name" is no qualified name' }, errors)
		local _, _, message = b:flush(1)
		assert.truthy(fixtures.has(message, "is no qualified name"), message)
	end)

	it("is whole for update, and for create alone", function()
		local updates = {}
		local s = setup { patch = false, update = function(event) updates[#updates + 1] = event:to_table() end }
		s.record()
		s.broadcaster:poll()
		s.record()
		s.broadcaster:poll()
		assert.equal(1, #updates)
		assert.equal(2, updates[1].series.count)
		assert.equal("BackOff", updates[1].action)
		s = setup { patch = false }
		s.record()
		s.broadcaster:poll()
		s.record()
		s.broadcaster:poll()
		assert.same({ "create", "create" }, s.news())
		assert.equal(2, s.writes[2].event.series.count)
	end)

	it("may be counted as core/v1 does, and an event in core/v1 be of a series", function()
		local s = setup { correlate = "record" }
		for _ = 1, 3 do
			s.record()
			s.broadcaster:poll()
		end
		assert.same({ "create", "patch 2 Ongoing", "patch 3 Ongoing" }, s.news())
		assert.equal(0, s.stats().counted)
		assert.equal(0, s.stats().series.series)
		for _, api in ipairs { "v1", "auto" } do
			s = setup { api = api, correlate = "series" }
			for _ = 1, 3 do
				s.record()
				s.broadcaster:poll()
			end
			assert.same({ "create", "patch 2 Ongoing" }, s.news())
			assert.is_nil(s.writes[1].event.count)
		end
		s = setup { api = "auto" }
		s.record(3)
		s.broadcaster:poll()
		assert.equal(1, s.stats().series.begun)
		s = setup { api = "v1" }
		s.record(3)
		s.broadcaster:poll()
		assert.equal(0, s.stats().series.begun)
		assert.equal(3, s.writes[1].event.count)
	end)

	it("is a line of a file in the form of its API", function()
		for api, name in pairs { ["v1"] = "message", ["events.k8s.io/v1"] = "note" } do
			local path = os.tmpname()
			local clock = evrec.fake_clock(fixtures.now)
			local b = evrec.broadcaster { clock = clock, on_error = false }
			b:start_recording_to_sink(evrec.sink.file { path = path, api = api, correlate = "series" })
			local r = b:new_recorder { component = "spec", host = "h" }
			for _ = 1, 3 do
				r:event(pod, "Normal", "R", "m")
				assert.is_true(b:flush(5))
			end
			assert.is_true(b:shutdown(5))
			local lines = {}
			for line in io.lines(path) do
				lines[#lines + 1] = cjson.decode(line)
			end
			os.remove(path)
			assert.equal(3, #lines)
			assert.equal(api, lines[1].apiVersion)
			assert.equal("m", lines[1][name])
			assert.is_nil(lines[1].series)
			assert.same({ count = 3, lastObservedTime = "2023-11-14T22:13:20.000000Z", state = "Ongoing" }, lines[3].series)
			assert.equal("2023-11-14T22:13:20.000000Z", lines[3].eventTime)
		end
	end)
end)
