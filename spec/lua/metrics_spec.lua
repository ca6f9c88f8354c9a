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

	-- By the parser of Prometheus' own client, which is in Debian's Python.
	local function read_by_prometheus(text)
		local path = os.tmpname()
		local file = assert(io.open(path, "w"))
		file:write(text)
		file:close()
		local pipe = assert(io.popen(fixtures.python .. "spec/support/metrics.py <" .. path .. " 2>&1"))
		local samples = {}
		for line in pipe:lines() do
			local kind, name, labels, value = line:match("^(%l+) (%S+) {(.*)} (%d+)$")
			assert.truthy(kind, line)
			samples[name .. "{" .. labels .. "}"] = tonumber(value)
		end
		pipe:close()
		os.remove(path)
		return samples
	end

	it("are what Prometheus reads", function()
		local s = fixtures.setup { correlator = { burst_size = 2 } }
		local server = fixtures.server()
		s.broadcaster:start_recording_to_sink(server.sink)
		server.answers[1] = function() return nil, 422 end
		for _ = 1, 5 do
			s.recorder:event(pod, "Normal", "R", "m")
		end
		s.broadcaster:poll()
		local text = s.broadcaster:metrics()
		local samples = read_by_prometheus(text)
		assert.equal(5, samples["evrec_recorded_total{}"])
		assert.equal(3, samples["evrec_sink_rate_limited_total{name='lua', sink='0'}"])
		assert.equal(1, samples["evrec_sink_created_total{name='lua', sink='0'}"])
		assert.equal(2, samples["evrec_sink_dropped_total{cause='rejected', name='lua', sink='1'}"])
		-- All that is written is read, and the other way round.
		local count = 0
		for _ in pairs(parse(text)) do
			count = count + 1
		end
		for _ in pairs(samples) do
			count = count - 1
		end
		assert.equal(0, count)
	end)

	it("are what Prometheus reads, also where a name has to be escaped", function()
		local stats = fixtures.setup().broadcaster:stats()
		stats.sinks[1].name = 'a"b\\c\nd{e="f"}'
		local samples = read_by_prometheus(metrics.format(stats))
		assert.equal(0, samples[ [[evrec_sink_created_total{name='a"b\\c\nd{e="f"}', sink='0'}]] ])
	end)

	it("need no sink", function()
		local stats = fixtures.setup().broadcaster:stats()
		stats.sinks = {}
		assert.equal(0, parse(metrics.format(stats)).evrec_recorded_total)
	end)
end)
