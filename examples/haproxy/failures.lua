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

-- Made once, not for each request: a reference to each Service, and a message for each status. Events whose messages
-- differ are different ones, so a message names the cause and nothing of the request, such as its URI.
local references, messages = {}, {}

local function reference(namespace, service)
	local names = references[namespace] or {}
	references[namespace] = names
	names[service] = names[service]
		or evrec.reference { kind = "Service", apiVersion = "v1", namespace = namespace, name = service }
	return names[service]
end

local function message(status)
	messages[status] = messages[status] or ("Requests are answered with %d"):format(status)
	return messages[status]
end

-- Records when a server with `check` goes down or comes up, about the Service that has the backend's name.
require("evrec.haproxy").record_servers(recorder)

core.register_action("record_failure", { "http-res" }, function(txn, namespace, service)
	recorder:event(reference(namespace, service), "Warning", "UpstreamFailed", message(txn.f:status()))
end, 2)
