-- The table of requests in lua/README.md, "The new Events API": a container that crashes 10,000 times in two hours. The
-- rows of client-go were measured with v0.37.2.
local evrec = require "evrec"
local fixtures = require "fixtures"

local turns, hours = 10000, 2

-- Records the loop, and then lets an hour go by. Returns the creates, the patches, the bytes of their JSON, the events
-- that the server has, and the sum of their counts. Unless `late`, it polls before each turn too.
local function storm(api, note, late)
	local clock = evrec.fake_clock(fixtures.now)
	local seen = { creates = 0, patches = 0, bytes = 0, events = 0, count = 0 }
	local counts = {}
	local function count_of(event)
		return event.series and event.series.count or event.count or 1
	end
	local b = evrec.broadcaster { clock = clock, on_error = false }
	b:start_recording_to_sink(evrec.sink.lua {
		api = api,
		create = function(event)
			seen.creates, seen.bytes = seen.creates + 1, seen.bytes + #event:to_json(api)
			counts[event.metadata.name] = count_of(event)
		end,
		patch = function(event, patch)
			-- The API server is not told a state.
			patch = patch:gsub(',"state":"%a+"', "")
			seen.patches, seen.bytes = seen.patches + 1, seen.bytes + #patch
			counts[event.metadata.name] = count_of(event)
		end,
	})
	local r = b:new_recorder { component = "kubelet", host = "node-1" }
	local pod = evrec.reference(fixtures.pod())
	for i = 1, turns do
		clock:set(fixtures.now + 1 + (i - 1) * hours * 3600 / turns)
		if not late then
			b:poll()
		end
		assert.is_true(r:event(pod, "Warning", "BackOff", note:format(i)))
		b:poll()
	end
	for _ = 1, 60 do
		clock:advance(60)
		b:poll()
	end
	for _, n in pairs(counts) do
		seen.events, seen.count = seen.events + 1, seen.count + n
	end
	local stats = b:stats()
	assert.is_nil(fixtures.fault(stats))
	assert.equal(seen.creates, stats.created)
	return seen, stats.sinks[1].patched
end

-- The table's row for a recorder, in the same form.
local function row(who, notes)
	for line in io.lines "lua/README.md" do
		local cells = {}
		for cell in line:gmatch "| ([^|]-) +%f[|]" do
			cells[#cells + 1] = cell
		end
		if cells[1] == who and cells[2] == notes then
			local numbers = {}
			for i = 3, 7 do
				numbers[i] = tonumber((cells[i]:gsub(",", "")))
			end
			return { creates = numbers[3], patches = numbers[4], bytes = numbers[5], events = numbers[6], count = numbers[7] }
		end
	end
end

describe("a storm", function()
	for _, case in ipairs {
		{ who = 'evrec, `api = "v1"`', api = "v1" },
		{ who = 'evrec, `api = "events.k8s.io/v1"`', api = "events.k8s.io/v1" },
	} do
		it("makes as many requests as the table says: " .. case.who, function()
			local same = storm(case.api, "back-off 300 s restarting failed container")
			local different = storm(case.api, "back-off %d s restarting failed container")
			assert.same(row(case.who, "the same"), same)
			assert.same(row(case.who, "different"), different)
		end)
	end

	it("has its heartbeats also if each poll comes after a recording call", function()
		local seen, patched = storm("events.k8s.io/v1", "back-off", true)
		assert.equal(1, seen.creates)
		assert.equal(10000, seen.count)
		assert.equal(5, patched)
		assert.equal(6, seen.patches) -- the last says Finished, and has no occurrence: an API server does not get it
	end)
end)
