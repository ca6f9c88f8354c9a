-- What examples/nginx.conf loads: one broadcaster, made in the master, used by each worker for itself.
--
-- Made in the master (init_by_lua) it reads the kubeconfig or the service account with the master's rights. Nothing is
-- started there: the thread that sends begins with a worker's first event.
local evrec = require "evrec"

local nginx = {}

local broadcaster = evrec.broadcaster {
	on_error = function(message, name) ngx.log(ngx.ERR, "evrec: ", name, ": ", message) end,
	on_drop = function(event, why) ngx.log(ngx.WARN, "evrec: dropped ", event.reason, ": ", why) end,
}
broadcaster:start_recording_to_sink(evrec.sink.kubernetes {})
local recorder = broadcaster:new_recorder { component = "nginx", host = os.getenv "HOSTNAME" or "" }

--- For init_worker_by_lua: answers and errors come back to each worker's Lua once a second.
function nginx.init_worker()
	ngx.timer.every(1, function() broadcaster:poll() end)
end

--- For log_by_lua: an event about the Service behind this location, where its answer was a failure.
---@param namespace string
---@param service string
function nginx.log(namespace, service)
	if ngx.status >= 500 then
		recorder:eventf({ kind = "Service", apiVersion = "v1", namespace = namespace, name = service }, "Warning",
			"UpstreamFailed", "%s %s was answered with %d", ngx.req.get_method(), ngx.var.uri, ngx.status)
	end
end

return nginx
