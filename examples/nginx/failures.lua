-- Loaded by nginx.conf: records an Event if a Service behind nginx fails.
--
-- The master loads this file (init_by_lua): it has the whole environment, and reads a kubeconfig or a service account
-- with its own rights, so that the workers need no right to read any file, and nginx.conf no `env`. Each worker uses
-- its own copy of the broadcaster. With its first event evrec starts the thread that sends, and a timer of nginx, which
-- takes the server's answers.
local evrec = require "evrec"

local failures = {}

-- EVENTS names a file that gets the events instead; "-" is standard output.
local file = os.getenv "EVENTS"
local broadcaster = evrec.broadcaster {}
broadcaster:start_recording_to_sink(file and evrec.sink.file { path = file } or evrec.sink.kubernetes {})
local recorder = broadcaster:new_recorder { component = "nginx", host = os.getenv "HOSTNAME" or "" }

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

--- For exit_worker_by_lua: writes what waits, for 2 s at most.
function failures.exit_worker()
	broadcaster:shutdown(2)
end

--- For log_by_lua: records an event about the Service behind this location if its answer was a failure.
---@param namespace string
---@param service string
function failures.log(namespace, service)
	local status = ngx.status
	if status >= 500 then
		recorder:event(reference(namespace, service), "Warning", "UpstreamFailed", message(status))
	end
end

return failures
