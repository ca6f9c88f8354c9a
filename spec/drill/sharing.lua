-- Records 125 events a second by a recorder that it shares with other processes, until it is told to end; then flushes
-- and ends in order. Notes each event in a file once it is recorded.
--
-- usage: luajit sharing.lua OPTIONS NAME FOLDER
--
-- OPTIONS: a file with a table as JSON: `share`, `sink` (the options of the sink), `namespace`. NAME: a name of this
-- process that no other has. FOLDER: the process notes each object in a line of NAME.notes, and in between "= N", the
-- occurrences that are pending; reads the number of the present round in `round`, ends once there is a file `end`, and
-- leaves its stats as JSON in NAME.stats.
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local process = require "process"
local socket = require "socket"

local options, name, folder = cjson.decode(cluster.read(arg[1])), arg[2], arg[3]
local batches = 25 -- a second: of one new event, and four known ones
local notes = assert(io.open(("%s/%s.notes"):format(folder, name), "w"))
notes:setvbuf "no"

local errors = {}
local broadcaster = evrec.broadcaster {
	share = options.share,
	correlator = { burst_size = 1000000 },
	on_error = function(message, what) errors[what] = message end,
}
broadcaster:start_recording_to_sink(evrec.sink.kubernetes(options.sink))
local recorder = broadcaster:new_recorder { component = "sharing" }

local function record(object)
	local pod = { kind = "Pod", apiVersion = "v1", namespace = options.namespace, name = object }
	assert(recorder:event(pod, "Normal", "Drill", "recorded by many processes"))
	notes:write(object .. "\n")
end

local function is_over()
	local file = io.open(folder .. "/end")
	return file and file:close()
end

local begun, n = process.time(), 0
while not is_over() do
	local round = cluster.read(folder .. "/round"):match "%d+"
	n = n + 1
	-- A new one of this process, or one that all see at once.
	record(n % 5 == 0 and ("common-%s-%d"):format(round, math.floor(process.time() * 5))
		or ("new-%s-%s-%d"):format(round, name, n))
	record(("own-%s-%s"):format(round, name))
	for i = 1, 3 do
		record(("known-%s-%d"):format(round, (n + i) % 10))
	end
	broadcaster:poll()
	notes:write(("= %d\n"):format(broadcaster:stats().pending))
	socket.sleep(math.max(0, begun + n / batches - process.time()))
end
local flushed = broadcaster:flush(60)
local stats = broadcaster:stats()
broadcaster:shutdown(10)
cluster.write(("%s/%s.stats.new"):format(folder, name), cjson.encode {
	flushed = flushed, errors = errors, before = stats, after = broadcaster:stats(),
})
assert(os.rename(("%s/%s.stats.new"):format(folder, name), ("%s/%s.stats"):format(folder, name)))
