-- trace.lua PATH OBJECTS OCCURRENCES REASONS: writes a trace of random occurrences, a hundred a second by its clock.
-- Each object has five reasons. The message of REASONS of them differs each time.
local evrec = require "evrec"

local path, objects, occurrences, differing = arg[1], tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4])

local CHUNK = 5000 -- occurrences between two flushes; a trace drops what it cannot keep

math.randomseed(1)
local clock = evrec.fake_clock(1700000000)
local broadcaster = evrec.broadcaster { clock = clock }
broadcaster:start_trace(path, { max_bytes = 4e9 })
local recorder = broadcaster:new_recorder { component = "kubelet", host = "node-1" }

local function reference(i)
	return {
		kind = "Pod", apiVersion = "v1", namespace = "team-" .. i % 40, name = ("web-%d-5d8f9c7b6d-x%d"):format(i % 400, i),
		uid = ("0d9e4b5a-1f2c-4d3e-9a8b-%012d"):format(i),
	}
end

for i = 1, occurrences do
	clock:advance(0.01)
	local reason = math.random(5)
	local message = reason <= differing and ("Container image pulled in %d ms"):format(math.random(100000))
		or "Back-off restarting failed container web"
	assert(recorder:event(reference(math.random(objects)), "Warning", "ReasonNumber" .. reason, message))
	if i % CHUNK == 0 then
		assert(broadcaster:flush(60))
	end
end
assert(broadcaster:shutdown(60))
