-- What examples/haproxy.cfg loads: an action that tells, as a Kubernetes Event, when a Service behind it fails.
--
-- HAProxy's worker may start no thread: evrec notices, and writes from poll(), which the task below calls. The
-- kubeconfig or the service account is read here, before HAProxy goes into its chroot.
local evrec = require "evrec"

local broadcaster = evrec.broadcaster {
	on_error = function(message, name) core.Warning("evrec: " .. name .. ": " .. message) end,
	on_drop = function(event, why) core.Warning("evrec: dropped " .. event.reason .. ": " .. why) end,
}
broadcaster:start_recording_to_sink(evrec.sink.kubernetes {})
local recorder = broadcaster:new_recorder { component = "haproxy", host = os.getenv "HOSTNAME" or "" }

core.register_task(function()
	while true do
		broadcaster:poll()
		core.msleep(20)
	end
end)

core.register_action("evrec_failed", { "http-res" }, function(txn, namespace, service)
	recorder:eventf({ kind = "Service", apiVersion = "v1", namespace = namespace, name = service }, "Warning",
		"UpstreamFailed", "%s was answered with %d", txn.f:method(), txn.f:status())
end, 2)
