-- The first script of the README: records two events about a ConfigMap, which `kubectl get events` then shows.
local evrec = require "evrec"

-- Raises an error if it finds no cluster; the message says where it has looked, and what to do.
local found, sink = pcall(evrec.sink.kubernetes)
if not found then
	io.stderr:write(sink, "\n")
	os.exit(1)
end
local broadcaster = evrec.broadcaster {}
broadcaster:start_recording_to_sink(sink)
local recorder = broadcaster:new_recorder { component = "my-operator" }

local settings = { kind = "ConfigMap", apiVersion = "v1", namespace = "default", name = "settings" }
recorder:event(settings, "Normal", "Reloaded", "Settings were read again")
recorder:eventf(settings, "Warning", "BadValue", "%s: expected a number, got %q", "timeout", "soon")

-- If an event is lost, evrec says on standard error which one, and why.
if not broadcaster:shutdown(5) then
	os.exit(1)
end
print "written"
