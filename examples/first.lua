-- The README's first script: two events about a ConfigMap, for `kubectl get events` to show.
local evrec = require "evrec"

local broadcaster = evrec.broadcaster {}
broadcaster:start_recording_to_sink(evrec.sink.kubernetes {})
local recorder = broadcaster:new_recorder { component = "my-operator" }

local settings = { kind = "ConfigMap", apiVersion = "v1", namespace = "default", name = "settings" }
recorder:event(settings, "Normal", "Reloaded", "Settings were read again")
recorder:eventf(settings, "Warning", "BadValue", "%s: expected a number, got %q", "timeout", "soon")

print(broadcaster:shutdown(5) and "written" or "not all was written in time")
