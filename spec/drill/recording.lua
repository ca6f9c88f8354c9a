-- Records 100 events a second until it is killed: half of them are about new objects, half about the same ten. Notes
-- each in a file, once it is recorded.
--
-- usage: luajit recording.lua OPTIONS NAMESPACE FILE
--
-- OPTIONS: a file with a list of sinks' options as JSON; each gets every event. FILE gets a line for each event: the
-- time of the note, the object.
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local Pair = require "pair"
local process = require "process"
local socket = require "socket"

local sinks, namespace = cjson.decode(cluster.read(arg[1])), arg[2]
local notes = assert(io.open(arg[3], "w"))
notes:setvbuf "no"

local broadcasters = {}
for i, sink in ipairs(sinks) do
	broadcasters[i] = evrec.broadcaster { correlator = { burst_size = 1000000 } }
	broadcasters[i]:start_recording_to_sink(evrec.sink.kubernetes(sink))
end
local pair = Pair.new(broadcasters)

local function record(name)
	local pod = { kind = "Pod", apiVersion = "v1", namespace = namespace, name = name }
	pair:event(pod, "Normal", "Drill", "recorded until killed")
	notes:write(("%.6f %s\n"):format(process.time(), name))
end

local begun = process.time()
for n = 1, 6000 do
	record("new-" .. n)
	record("regular-" .. n % 10)
	pair:poll()
	socket.sleep(math.max(0, begun + n / 50 - process.time()))
end
