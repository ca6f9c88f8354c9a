-- Loaded by haproxy.cfg: an action that records a Kubernetes Event if a Service behind the proxy fails.
--
-- HAProxy runs this file before it goes into its chroot, so the kubeconfig or the service account is read with its
-- first rights. A worker of HAProxy cannot start a thread. evrec notices this, and writes in a task of HAProxy, which
-- it registers with the first event.
local evrec = require "evrec"

-- EVENTS names a file that gets the events instead; "-" is standard output.
local file = os.getenv "EVENTS"
local broadcaster = evrec.broadcaster {}
broadcaster:start_recording_to_sink(file and evrec.sink.file { path = file } or evrec.sink.kubernetes {})
local recorder = broadcaster:new_recorder { component = "haproxy", host = os.getenv "HOSTNAME" or "" }

-- A reference to each Service, made once: recording against it costs about half as much as with a new table.
local references = {}

local function reference(namespace, service)
	local names = references[namespace] or {}
	references[namespace] = names
	names[service] = names[service]
		or evrec.reference { kind = "Service", apiVersion = "v1", namespace = namespace, name = service }
	return names[service]
end

-- Records when a server with `check` goes down or comes up, about the Service that has the backend's name.
require("evrec.haproxy").record_servers(recorder)

core.register_action("record_failure", { "http-res" }, function(txn, namespace, service)
	recorder:eventf(reference(namespace, service), "Warning", "UpstreamFailed", "%s %s was answered with %d",
		txn.f:method(), txn:get_var "txn.path", txn.f:status())
end, 2)
