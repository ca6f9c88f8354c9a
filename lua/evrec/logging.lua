-- Writes events to a log, as client-go's StartLogging and StartStructuredLogging do.
local core = require "evrec.core"

local logging = {}

-- Go's short escapes.
local ESCAPES = {
	['"'] = '\\"', ["\\"] = "\\\\", ["\a"] = "\\a", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
	["\t"] = "\\t", ["\v"] = "\\v",
}

local function go_quoted(text)
	return '"' .. text:gsub('[%c"\\\127]', function(c)
		return ESCAPES[c] or ("\\x%02x"):format(c:byte())
	end) .. '"'
end

-- Formats a reference as Go does for %#v.
local function go_reference(object)
	local function field(name)
		return go_quoted(object[name] or "")
	end
	return ("v1.ObjectReference{Kind:%s, Namespace:%s, Name:%s, UID:%s, APIVersion:%s, ResourceVersion:%s, FieldPath:%s}")
		:format(field "kind", field "namespace", field "name", field "uid", field "apiVersion",
			field "resourceVersion", field "fieldPath")
end

-- Returns the state and the count of the event's series as strings; nil if the event does not tell a state.
local function state_of(event)
	local series = event.series
	return series and series.state and { state = series.state, count = ("%d"):format(series.count or 0) } or nil
end

local function check(broadcaster, log, method)
	if not core.is_broadcaster(broadcaster) then
		error(("broadcaster:%s: called with '.', use ':'"):format(method), 3)
	elseif type(log) ~= "function" then
		error(("broadcaster:%s: expected a function, got %s"):format(method, type(log)), 3)
	end
end

--- broadcaster:start_logging(log). Raises on misuse.
---@param broadcaster evrec.Broadcaster
---@param log fun(format: string, ...: string)
---@return evrec.Watch? watch
---@return string? message, string? name `"closed"` or `"memory"`
function logging.start(broadcaster, log)
	check(broadcaster, log, "start_logging")
	return broadcaster:start_event_watcher(function(event)
		local object, kind, reason = go_reference(event.involvedObject or {}), event.type or "", event.reason or ""
		local series = state_of(event)
		if series then
			log("Event(%s): type: '%s' reason: '%s' series: '%s' count: '%s' %s", object, kind, reason, series.state,
				series.count, event.message or "")
		else
			log("Event(%s): type: '%s' reason: '%s' %s", object, kind, reason, event.message or "")
		end
	end)
end

--- broadcaster:start_structured_logging(log). Raises on misuse.
---@param broadcaster evrec.Broadcaster
---@param log fun(message: string, fields: table<string, string>)
---@return evrec.Watch? watch
---@return string? message, string? name `"closed"` or `"memory"`
function logging.start_structured(broadcaster, log)
	check(broadcaster, log, "start_structured_logging")
	return broadcaster:start_event_watcher(function(event)
		local object = event.involvedObject or {}
		local name = object.name or ""
		local series = state_of(event) or {}
		log("Event occurred", {
			object = object.namespace and object.namespace .. "/" .. name or name,
			fieldPath = object.fieldPath or "",
			kind = object.kind or "",
			apiVersion = object.apiVersion or "",
			type = event.type or "",
			reason = event.reason or "",
			message = event.message or "",
			seriesState = series.state,
			seriesCount = series.count,
		})
	end)
end

return logging
