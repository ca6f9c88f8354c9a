-- Credential plugins of kubeconfigs (`exec`): checks the command, its arguments and its environment. Functions raise
-- errors as messages without a position.
local host = require "evrec.host"
local numbers = require "evrec.numbers"

local exec = {}

--- Stands for a null in a list of a kubeconfig, so that the list has no gap.
exec.null = {}

-- The kernel takes no environment variable of more than 128 KiB, and no real configuration has a tenth of these levels.
local max_json, max_depth = 65536, 100

local function fail(message, ...)
	error(message:format(...), 0)
end

-- ---- JSON ----

local function quoted(text)
	return '"' .. text:gsub('[%c"\\\127]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function encode_number(number)
	local is_integer = number == math.floor(number) and math.abs(number) < 2 ^ 53
	return numbers.format(is_integer and "%.0f" or "%.17g", number)
end

local function put(out, text)
	out.size = out.size + #text
	if out.size > max_json then
		error("too large", 0)
	end
	out[#out + 1] = text
end

local function encode(out, value, depth)
	if type(value) == "number" then
		return put(out, encode_number(value))
	elseif value == exec.null then
		return put(out, "null")
	elseif type(value) ~= "table" then
		return put(out, type(value) == "string" and quoted(value) or tostring(value))
	elseif depth > max_depth then
		error("nested too deep", 0)
	end
	local is_list = #value > 0
	put(out, is_list and "[" or "{")
	for i, item in ipairs(is_list and value or {}) do
		put(out, i > 1 and "," or "")
		encode(out, item, depth + 1)
	end
	local comma = ""
	for key, item in pairs(is_list and {} or value) do
		put(out, comma .. quoted(tostring(key)) .. ":")
		encode(out, item, depth + 1)
		comma = ","
	end
	put(out, is_list and "]" or "}")
end

-- ---- a user's plugin ----

local function field(plugin, key, kind)
	local value = plugin.fields[key]
	if value ~= nil and type(value) ~= kind then
		fail("%s: exec: %s: expected a %s, got a %s", plugin.place, key, kind, type(value))
	end
	return value
end

-- Returns the results of `read` for the items of a list.
local function list(plugin, key, read)
	local items, entries = {}, 0
	local value = field(plugin, key, "table") or {}
	for _ in pairs(value) do
		entries = entries + 1
	end
	if entries ~= #value then
		fail("%s: exec: %s: expected a list", plugin.place, key)
	end
	for i, item in ipairs(value) do
		read(items, item, ("%s: exec: %s[%d]"):format(plugin.place, key, i))
	end
	return items
end

-- A null is an empty string, as in client-go.
local function read_string(items, item, place)
	item = item == exec.null and "" or item
	if type(item) ~= "string" then
		fail("%s: expected a string, got a %s", place, type(item))
	end
	items[#items + 1] = item
end

local function read_variable(items, item, place)
	if type(item) ~= "table" then
		fail("%s: expected a table, got a %s", place, type(item))
	end
	read_string(items, item.name, place .. ".name")
	read_string(items, item.value, place .. ".value")
end

local function is_allowed(command, allowed)
	for _, entry in ipairs(allowed or {}) do
		if entry == command then
			return true
		end
	end
	return false
end

-- An entry of `allowed` without a slash can only equal a command without one, which is then looked up in $PATH.
local function check_command(plugin, command, allowed)
	if host.name() == "haproxy" then
		fail("%s: 'exec' runs the command '%s', but HAProxy may start no process; keep a token in a file and name that "
			.. "as 'token_file'", plugin.place, command)
	elseif not is_allowed(command, allowed) then
		fail("%s: 'exec' runs the command '%s', which must be allowed by the option allow_exec = { %q }",
			plugin.place, command, command)
	end
end

local function check_mode(plugin)
	local mode = field(plugin, "interactiveMode", "string")
	if mode == "Always" then
		fail("%s: exec: interactiveMode is Always, but there is no terminal", plugin.place)
	elseif mode and mode ~= "Never" and mode ~= "IfAvailable" then
		fail("%s: exec: interactiveMode: expected Never, IfAvailable or Always", plugin.place)
	end
end

-- Returns the cluster's configuration for plugins (client-go's Cluster.Config), in JSON, or nil.
local function config_of(plugin, cluster)
	for _, entry in ipairs(type(cluster.extensions) == "table" and cluster.extensions or {}) do
		if type(entry) == "table" and entry.name == "client.authentication.k8s.io/exec" and entry.extension ~= nil then
			local out = { size = 0 }
			local ok, why = pcall(encode, out, entry.extension, 1)
			return ok and table.concat(out) or fail("%s: exec: the cluster's extension for plugins: %s", plugin.place, why)
		end
	end
end

--- Turns the `exec` of a kubeconfig's user into the second argument of evrec.core.sink_kubernetes.
---@param fields table the value of `exec`
---@param place string the user, in messages
---@param resolve fun(path: string): string resolves a path that begins in the kubeconfig's folder
---@param allowed? string[] the option `allow_exec`
---@param cluster table the fields of the cluster
---@return table
function exec.plugin(fields, place, resolve, allowed, cluster)
	local plugin = { fields = fields, place = place }
	local command = field(plugin, "command", "string")
	if not command or command == "" then
		fail("%s: exec: no command", place)
	end
	command = command:find("/", 1, true) and resolve(command) or command
	check_command(plugin, command, allowed)
	check_mode(plugin)
	local informed = field(plugin, "provideClusterInfo", "boolean") or false
	return {
		command = command,
		args = list(plugin, "args", read_string),
		env = list(plugin, "env", read_variable),
		api_version = field(plugin, "apiVersion", "string") or "",
		provide_cluster_info = informed,
		cluster_config = informed and config_of(plugin, cluster) or nil,
		install_hint = field(plugin, "installHint", "string"),
	}
end

return exec
