-- Events as lines of a log, as client-go's StartLogging and StartStructuredLogging write them.
local logging = {}

local function go_quoted(text)
	return '"' .. text:gsub('[%c"\\\127]', function(c)
		local short = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
		return short[c] or ("\\x%02x"):format(c:byte())
	end) .. '"'
end

-- What Go prints for %#v.
local function go_reference(object)
	local function field(name)
		return go_quoted(object[name] or "")
	end
	return ("v1.ObjectReference{Kind:%s, Namespace:%s, Name:%s, UID:%s, APIVersion:%s, ResourceVersion:%s, FieldPath:%s}")
		:format(field "kind", field "namespace", field "name", field "uid", field "apiVersion",
			field "resourceVersion", field "fieldPath")
end

local function check_function(log, method)
	if type(log) ~= "function" then
		error(("broadcaster:%s: expected a function, got %s"):format(method, type(log)), 3)
	end
end

--- b:start_logging(function(format, ...) end)
function logging.start(broadcaster, log)
	check_function(log, "start_logging")
	return broadcaster:start_event_watcher(function(event)
		log("Event(%s): type: '%s' reason: '%s' %s", go_reference(event.involvedObject or {}), event.type or "",
			event.reason or "", event.message or "")
	end)
end

--- b:start_structured_logging(function(message, fields) end)
function logging.start_structured(broadcaster, log)
	check_function(log, "start_structured_logging")
	return broadcaster:start_event_watcher(function(event)
		local object = event.involvedObject or {}
		local name = object.name or ""
		log("Event occurred", {
			object = object.namespace and object.namespace .. "/" .. name or name,
			fieldPath = object.fieldPath or "",
			kind = object.kind or "",
			apiVersion = object.apiVersion or "",
			type = event.type or "",
			reason = event.reason or "",
			message = event.message or "",
		})
	end)
end

return logging
