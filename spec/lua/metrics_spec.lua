local fixtures = require "fixtures"
local metrics = require "evrec.metrics"

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
				local key, value = line:match("^([%w_]+{?.*}?) (%d+)$")
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
		assert.equal(2, samples['evrec_sink_pending{sink="0",name="lua"}'])
		assert.equal(1, samples['evrec_sink_rate_limited_total{sink="0",name="lua"}'])
		assert.equal(0, samples['evrec_dropped_total{cause="queue_full"}'])
		assert.equal(0, samples['evrec_sink_dropped_total{sink="0",name="lua",cause="rejected"}'])
		assert.equal("gauge", types.evrec_sink_pending)
		assert.equal("counter", types.evrec_recorded_total)
		s.broadcaster:poll()
		samples = parse(s.broadcaster:metrics())
		assert.equal(0, samples['evrec_sink_pending{sink="0",name="lua"}'])
		assert.equal(1, samples['evrec_sink_created_total{sink="0",name="lua"}'])
		assert.equal(1, samples['evrec_sink_coalesced_total{sink="0",name="lua"}'])
	end)

	it("tell sinks apart", function()
		local s = fixtures.setup()
		s.broadcaster:start_recording_to_sink(fixtures.server().sink)
		local samples = parse(s.broadcaster:metrics())
		assert.equal(0, samples['evrec_sink_created_total{sink="0",name="lua"}'])
		assert.equal(0, samples['evrec_sink_created_total{sink="1",name="lua"}'])
	end)

	it("escape what is in labels", function()
		local stats = fixtures.setup().broadcaster:stats()
		stats.sinks[1].name = 'a"b\\c\nd'
		assert.truthy(fixtures.has(metrics.format(stats), [[name="a\"b\\c\nd"]]))
	end)

	it("need no sink", function()
		local stats = fixtures.setup().broadcaster:stats()
		stats.sinks = {}
		assert.equal(0, parse(metrics.format(stats)).evrec_recorded_total)
	end)
end)
