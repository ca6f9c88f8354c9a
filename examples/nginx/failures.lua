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

-- If OpenTelemetry's variables name a collector, it gets the events as well, as log records.
if os.getenv "OTEL_EXPORTER_OTLP_ENDPOINT" or os.getenv "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT" then
	broadcaster:start_recording_to_sink(evrec.sink.otlp {})
end
local recorder = broadcaster:new_recorder { component = "nginx", host = os.getenv "HOSTNAME" or "" }

--- For exit_worker_by_lua: writes what waits, for 1 s at most. If one worker takes longer, nginx kills the others as
--- soon as that one has ended: then they could not tell which events they lost.
function failures.exit_worker()
	broadcaster:shutdown(1)
end

--- For init_by_lua: returns a function for log_by_lua, which records an event about the Service behind this location if
--- its answer was a failure.
---@param namespace string
---@param service string
---@return fun()
function failures.logger(namespace, service)
	local reference = evrec.reference { kind = "Service", apiVersion = "v1", namespace = namespace, name = service }

	-- An event for each status, prepared once, not for each request. Events whose messages differ are different ones, so
	-- a message names the cause and nothing of the request, such as its URI.
	local events = {}

	local function prepare(status)
		events[status] = recorder:prepare {
			regarding = reference,
			type = "Warning",
			reason = "UpstreamFailed",
			note = ("Requests are answered with %d"):format(status),
		}
		return events[status]
	end

	return function()
		local status = ngx.status
		if status >= 500 then
			local event = events[status] or prepare(status)
			event:record()
		end
	end
end

return failures
