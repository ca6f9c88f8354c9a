-- An operator: every few seconds it looks at the ConfigMaps with the label check=numbers, and records Events about
-- them.
local evrec = require "evrec"
local client = require "client"
local socket = require "socket"

local interval = tonumber(os.getenv "INTERVAL") or 5

local broadcaster = evrec.broadcaster {}
broadcaster:start_recording_to_sink(evrec.sink.kubernetes { spool = os.getenv "SPOOL" })
local recorder = broadcaster:new_recorder { component = "number-operator" }

-- Kubernetes ends a pod by SIGTERM: evrec then writes what waits, or spools it, and ends the process.
assert(evrec.on_signal { "TERM", "INT", timeout = 2 })

--- Records what is wrong with an object: again in each round, which evrec makes one Event with a count.
local function is_good(object)
	local good = true
	for key, value in pairs(object.data or {}) do
		if not tonumber(value) then
			recorder:eventf(object, "Warning", "BadValue", "%s: expected a number, got '%s'", key, value)
			good = false
		end
	end
	return good
end

local path = "/api/v1/namespaces/" .. client.namespace .. "/configmaps?labelSelector=check%3Dnumbers"
local reconciled = {} -- the version that was found good, by the object's uid

while true do
	local objects, message = client.list(path)
	if objects then
		local before = reconciled
		reconciled = {}
		for _, object in ipairs(objects) do
			local uid, version = object.metadata.uid, object.metadata.resourceVersion
			if is_good(object) then
				reconciled[uid] = version
				if before[uid] ~= version then
					recorder:event(object, "Normal", "Reconciled", "All values are numbers")
				end
			end
		end
	else
		io.stderr:write("operator: ", message, "\n")
	end
	socket.sleep(interval)
end
