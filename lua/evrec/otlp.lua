-- evrec.sink.otlp: the options of a script, with defaults from the environment, as the specification of OpenTelemetry's
-- exporters says. No message holds an entry of a list of headers, since its value may be a secret.
local core = require "evrec.core"
local program = require "evrec.host"
local options = require "evrec.options"
local pem = require "evrec.pem"

local fail = options.fail

local otlp = {}

-- The longest timeout of the core, in ms; 0 means "no limit" in the environment.
local max_timeout = 3600 * 1000

local grpc_advice = "evrec has no gRPC; set OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=http/protobuf, and as "
	.. "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT the receiver's port for HTTP, 4318 by default: http://localhost:4318/v1/logs"

-- ---- values of variables ----

local function decoded(text)
	if text:gsub("%%%x%x", ""):find("%", 1, true) then
		return nil
	end
	return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- Calls add(number, name, value) for each entry of a list in the format of W3C Baggage, such as "a=1,b=%202". Values
-- are percent-encoded. White space around names and values does not count, nor do empty entries. Messages number the
-- entries.
local function each_pair(variable, list, add)
	local number = 0
	for entry in (list .. ","):gmatch "([^,]*)," do
		number = number + 1
		local name, value = entry:match "^%s*([^=]-)%s*=%s*(.-)%s*$"
		if name then
			value = decoded(value) or fail("%s: entry %d: a '%%' without two hexadecimal digits", variable, number)
			add(number, name, value)
		elseif entry:find "%S" then
			fail("%s: entry %d has no '=' (name=value,name=value)", variable, number)
		end
	end
end

-- A later header replaces an earlier one, also if their names differ in case.
local function read_headers(list, variable)
	local headers, spelt = {}, {}
	each_pair(variable, list, function(number, name, value)
		if not name:find "^[%w!#$%%&'*+.^_`|~-]+$" then
			fail("%s: entry %d: its name is not a header's name", variable, number)
		elseif value:gsub("\t", ""):find "%c" then
			fail("%s: entry %d: the value has a control character", variable, number)
		end
		local before = spelt[name:lower()]
		if before then
			headers[before] = nil
		end
		headers[name], spelt[name:lower()] = value, name
	end)
	return headers
end

local function read_resource(list, variable)
	local resource = {}
	each_pair(variable, list, function(number, name, value)
		name = decoded(name) or fail("%s: entry %d: a '%%' without two hexadecimal digits", variable, number)
		if name == "" then
			fail("%s: entry %d has no name", variable, number)
		end
		resource[name] = value
	end)
	return resource
end

local function read_word(words, advice)
	return function(value, variable)
		local word = value:lower()
		if advice[word] then
			fail("%s: %s", variable, advice[word])
		end
		return words[word] or fail("%s: expected %s, got \"%s\"", variable, advice.expected, value)
	end
end

local function read_timeout(value, variable)
	local ms = value:find "^%d+$" and tonumber(value) or fail("%s: expected milliseconds, got \"%s\"", variable, value)
	return (ms == 0 and max_timeout or math.min(ms, max_timeout)) / 1000
end

-- The base URL with the path of logs, and one slash between them.
local function append_path(url)
	local base, rest = url:match "^([^?#]*)(.*)$"
	return base:gsub("/+$", "") .. "/v1/logs" .. rest
end

local function read_path(path, variable)
	return pem.read(variable, path)
end

-- ---- the environment ----

-- The options that a variable sets: OTEL_EXPORTER_OTLP_LOGS_<name> or else OTEL_EXPORTER_OTLP_<name>.
local variables = {
	headers = { "HEADERS", read_headers },
	timeout = { "TIMEOUT", read_timeout },
	compression = { "COMPRESSION", read_word({ gzip = "gzip", none = "none" }, { expected = '"gzip" or "none"' }) },
	encoding = { "PROTOCOL", read_word({ ["http/protobuf"] = "protobuf", ["http/json"] = "json" },
		{ expected = '"http/protobuf" or "http/json"', grpc = grpc_advice }) },
	ca_file = { "CERTIFICATE", read_path },
	client_certificate = { "CLIENT_CERTIFICATE", read_path },
	client_key = { "CLIENT_KEY", read_path },
}

-- The value of a variable that is set: an empty one counts as unset.
local function value_of(getenv, variable)
	local value = getenv(variable)
	return value ~= "" and value or nil
end

local function exporter_value(getenv, name)
	for _, prefix in ipairs { "OTEL_EXPORTER_OTLP_LOGS_", "OTEL_EXPORTER_OTLP_" } do
		local value = value_of(getenv, prefix .. name)
		if value then
			return value, prefix .. name
		end
	end
end

local function add_endpoint(set, origins, getenv)
	local url, variable = exporter_value(getenv, "ENDPOINT")
	if url and set.endpoint == nil then
		set.endpoint = variable == "OTEL_EXPORTER_OTLP_ENDPOINT" and append_path(url) or url
		origins.endpoint = variable
	end
end

-- Attributes of the script win over OTEL_SERVICE_NAME, and this wins over OTEL_RESOURCE_ATTRIBUTES.
local function add_resource(set, origins, getenv)
	local list, service = value_of(getenv, "OTEL_RESOURCE_ATTRIBUTES"), value_of(getenv, "OTEL_SERVICE_NAME")
	if not list and not service or set.resource ~= nil and type(set.resource) ~= "table" then
		return
	end
	local resource = list and read_resource(list, "OTEL_RESOURCE_ATTRIBUTES") or {}
	resource["service.name"] = service or resource["service.name"]
	local origin = list and "OTEL_RESOURCE_ATTRIBUTES" or "OTEL_SERVICE_NAME"
	if list and service then
		origin = "OTEL_RESOURCE_ATTRIBUTES or OTEL_SERVICE_NAME"
	end
	origins[set.resource == nil and "resource" or "merged"] = origin
	for name, value in next, set.resource or {} do
		if value ~= core.null then
			resource[name] = value
		end
	end
	set.resource = resource
end

local function check_timeout(timeout)
	if timeout ~= nil and not (type(timeout) == "number" and timeout > 0 and timeout <= max_timeout / 1000) then
		fail("option 'timeout': expected a number of seconds, more than 0 and at most 3600, got %s",
			type(timeout) == "number" and tostring(timeout) or type(timeout))
	end
end

--- Completes a script's options by the environment. Raises a message without a position that names the option or the
--- variable. The core checks the rest, also the names of options.
---@param given table
---@param getenv fun(name: string): string? os.getenv, or a test's own
---@return table options for core.sink_otlp: with the texts of PEM files instead of their paths
---@return table<string, string> origins the variables that options come from; `merged`: those that add to `resource`
function otlp.settings(given, getenv)
	local set, origins = {}, {}
	options.refuse_colon(given)
	for name, value in next, given do
		if value ~= core.null then
			set[name] = value
		end
	end
	for _, name in ipairs { "ca_file", "client_certificate", "client_key" } do
		if set[name] ~= nil and type(set[name]) ~= "string" then
			fail("option '%s': expected a string, got %s", name, type(set[name]))
		end
		set[name] = pem.read(("option '%s'"):format(name), set[name])
	end
	check_timeout(set.timeout)
	add_endpoint(set, origins, getenv)
	for option, row in next, variables do
		local value, variable = exporter_value(getenv, row[1])
		if value and set[option] == nil then
			set[option], origins[option] = row[2](value, variable), variable
		end
	end
	add_resource(set, origins, getenv)
	return set, origins
end

-- Rewrites an error of the core about an option: names the variable that the option comes from.
local function reworded(message, origins)
	local front, option, why = message:match "^(evrec%.sink%.otlp: )option '([%w_]+)'(.*)$"
	if not front then
		return message
	end
	option = option == "ca" and "ca_file" or option
	local variable = origins[option]
	if option == "resource" and origins.merged then
		return ("%soption 'resource'%s (or in %s)"):format(front, why, origins.merged)
	elseif not variable then
		return ("%soption '%s'%s"):format(front, option, why)
	elseif variable == "OTEL_EXPORTER_OTLP_ENDPOINT" then
		why = why:gsub("(such as http://localhost:4318)/v1/logs$", "%1")
	end
	why = why:gsub(": needs (client_%w+)$", function(other)
		return (": needs OTEL_EXPORTER_OTLP_%s, or the option '%s'"):format(other:upper(), other)
	end)
	return front .. variable .. why
end

--- Makes the sink. Raises on misuse; the message names the option or the variable.
---@param given? evrec.OtlpOptions
---@return evrec.Sink
function otlp.sink(given)
	if given ~= nil and type(given) ~= "table" then
		error("evrec.sink.otlp: expected a table of options, got " .. type(given), 2)
	end
	local ok, set, origins = pcall(otlp.settings, given or {}, os.getenv)
	if not ok then
		error("evrec.sink.otlp: " .. tostring(set), 2)
	end
	-- HAProxy's workers may start no thread, which a later look-up of the server's name would need.
	local result
	ok, result = pcall(core.sink_otlp, set, program.name() == "haproxy")
	if not ok then
		error(reworded(tostring(result), origins), 2)
	end
	return result
end

return otlp
