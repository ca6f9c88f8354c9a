-- The script of a host: records an event for each request, and notes it once it is recorded.
--
-- $HOSTS_SETTINGS names a file of Lua that returns
--   { sink = OPTIONS, namespace = NAME, notes = PATH, share = NAME, name = NAME }
-- Without `notes` nothing is noted.
local evrec = require "evrec"

local settings = dofile(os.getenv "HOSTS_SETTINGS")
local broadcaster = evrec.broadcaster {
	name = settings.name, share = settings.share, correlator = { burst_size = 1000000 },
}
broadcaster:start_recording_to_sink(evrec.sink.kubernetes(settings.sink))
local recorder = broadcaster:new_recorder { component = "hosts", host = "here" }

-- Opened before a worker gives up its rights and its root folder. Each line is one write(), so all processes
-- may append.
local notes = settings.notes and assert(io.open(settings.notes, "a"))
if notes then
	notes:setvbuf "no"
end

local recording = { broadcaster = broadcaster }

--- Records an event about the object that the path of a request names, "/new-1".
function recording.record(path)
	local name = path:match "[%w-]+"
	local pod = { kind = "Pod", apiVersion = "v1", namespace = settings.namespace, name = name }
	local recorded, message = recorder:event(pod, "Warning", "Asked", "a request")
	if notes then
		notes:write(recorded and name .. "\n" or "refused: " .. message .. "\n")
	end
end

return recording
