-- Reads kubeconfig files, merges them as kubectl does, and turns a context into options of a Kubernetes sink. Functions
-- raise errors as messages without a position. No message ever holds a token or a key.
local exec = require "evrec.exec"

local kubeconfig = {}

-- A Secret cannot hold a larger file, and no real kubeconfig has a tenth of these levels.
local max_bytes, max_depth = 1024 * 1024, 100

local enoent = 2 -- of errno.h

local function fail(message, ...)
	error(message:format(...), 0)
end

-- ---- files ----

--- Returns the contents of a file. Never raises.
---@param path string
---@param most? integer how many bytes to read at most; nil: all
---@return string? text
---@return string? why a message, if the file cannot be read
---@return integer? code the errno
function kubeconfig.read_file(path, most)
	local file, why, code = io.open(path, "rb")
	if not file then
		return nil, why, code
	end
	local text
	text, why, code = file:read(most or "*a")
	file:close()
	if why then
		return nil, path .. ": " .. why, code
	end
	return text or "" -- file:read(number) returns nil for an empty file
end

local function folder_of(path)
	return path:match("^(.*/)[^/]*$") or ""
end

-- Relative paths in a kubeconfig start from the folder of the kubeconfig.
local function resolved(path, folder)
	return path:sub(1, 1) == "/" and path or folder .. path
end

-- ---- parsing ----

local function check_depth(depth, path)
	if depth > max_depth then
		fail("%s: nested deeper than %d levels, too deep for a kubeconfig", path, max_depth)
	end
end

-- Raises if a YAML document is nested too deep, before lyaml.load sees it: libyaml visits every open flow collection
-- for each token, so the time to load a document grows with the square of its depth. libyaml's events come one by one,
-- and the first event that is too deep ends the reading. Malformed YAML passes, because lyaml.load reports it.
local function check_yaml_depth(text, path)
	if not pcall(require, "lyaml") then
		return
	end
	local next_event, depth = require("yaml").parser(text), 0 -- the C module below lyaml
	while true do
		local ok, event = pcall(next_event)
		if not ok or not event then
			return
		elseif event.type:find("_START$") then
			depth = depth + 1
		elseif event.type:find("_END$") then
			depth = depth - 1
		end
		check_depth(depth - 2, path) -- two levels are STREAM_START and DOCUMENT_START
	end
end

-- Returns a copy without the nulls, which stand for unset fields. A list keeps its nulls, as exec.null. `copies` maps
-- each table to its copy, because in YAML a table can contain itself.
local function without(null, value, path, copies, depth)
	if value == null then
		return nil
	end
	if type(value) ~= "table" then
		return value
	end
	check_depth(depth, path)
	if not copies[value] then
		local copy = {}
		copies[value] = copy
		for key, inner in pairs(value) do
			copy[key] = without(null, inner, path, copies, depth + 1)
			if inner == null and type(key) == "number" then
				copy[key] = exec.null
			end
		end
	end
	return copies[value]
end

-- Returns the message of a parser without its position in the parser's source, and without text of the document. Such
-- text may be a secret: a parser may take an unquoted one for an alias, or for anything else.
local function complaint(message)
	message = tostring(message):gsub("^%S-%.lua:%d+: ", "")
	for _, quoting in ipairs { "value", "reference", "merge event", "sequence element %d+" } do
		message = message:gsub("(invalid .-" .. quoting .. "): .*$", "%1")
	end
	return message
end

local function parse_with(module, parse, null, text, path)
	local loaded, library = pcall(require, module)
	if not loaded then
		return nil, nil, true
	end
	local ok, document = pcall(library[parse], text)
	if not ok then
		return nil, complaint(document)
	end
	return without(library[null], document, path, {}, 1)
end

-- Tries JSON first: JSON is YAML, too, but lua-cjson is installed more often than lyaml. A text that begins like JSON
-- can still be YAML. Returns nil if nothing is in the text, or comments alone.
local function parse(text, path)
	if not text:find "%S" then
		return nil
	end
	local json = text:find("^%s*{") ~= nil
	local document, why, missing
	if json then
		document, why, missing = parse_with("cjson", "decode", "null", text, path)
	end
	if document == nil then
		check_yaml_depth(text, path)
		local yaml, yaml_why, no_yaml = parse_with("lyaml", "load", "null", text, path)
		if not no_yaml then
			document, why = yaml, yaml_why
		elseif not json then
			fail("%s: reading YAML needs lyaml (Debian: lua-yaml; LuaRocks: lyaml); "
				.. "`kubectl config view --raw -o json` writes it as JSON", path)
		elseif missing then
			fail("%s: reading JSON needs lua-cjson (Debian and LuaRocks: lua-cjson)", path)
		end
	end
	if why then
		fail("%s: malformed: %s", path, why)
	end
	if document ~= nil and type(document) ~= "table" then
		fail("%s: not a kubeconfig", path)
	end
	return document
end

-- ---- merging ----

local function expect(value, kind, path, place)
	if value ~= nil and type(value) ~= kind then
		fail("%s: %s: expected a %s, got a %s", path, place, kind, type(value))
	end
	return value
end

-- Adds the entries of the list whose names are not in `into` yet, each with the path of its file.
local function merge_list(into, list, singular, path)
	for i, entry in ipairs(list or {}) do
		local place = ("%ss[%d]"):format(singular, i)
		expect(entry, "table", path, place)
		local name = expect(entry.name, "string", path, place .. ".name")
		if name and not into[name] then
			into[name] = { fields = expect(entry[singular], "table", path, place .. "." .. singular) or {}, path = path }
		end
	end
end

local function merge(config, document, path)
	local context = expect(document["current-context"], "string", path, "current-context")
	if context and context ~= "" then
		config.current = config.current or context
	end
	for _, singular in ipairs { "context", "cluster", "user" } do
		local plural = singular .. "s"
		merge_list(config[plural], expect(document[plural], "table", path, plural), singular, path)
	end
end

-- The texts that pipes had, by the path of their descriptor.
local from_pipes = {}

-- Reads a kubeconfig. `--kubeconfig <(command)` of a shell names a pipe, which is empty after the first reading, and a
-- command reads its kubeconfig for the server, and again for the namespace.
local function read_config(path)
	local text, why, code = kubeconfig.read_file(path, max_bytes + 1)
	if text and (path:find "^/dev/fd/%d+$" or path:find "^/proc/self/fd/%d+$" or path == "/dev/stdin") then
		from_pipes[path] = text ~= "" and text or from_pipes[path]
		text = from_pipes[path] or ""
	end
	return text, why, code
end

--- Reads and merges kubeconfigs. If two files define the same entry, the first file wins. Skips files that do not
--- exist, and empty ones, as kubectl does. Raises if there is no other, and if a file cannot be read, is malformed, too
--- large or too deep.
---@param paths string[]
---@return table config for kubeconfig.resolve
function kubeconfig.load(paths)
	local config = { contexts = {}, clusters = {}, users = {}, paths = table.concat(paths, ":") }
	local found, missing, empty = false, nil, nil
	for _, path in ipairs(paths) do
		local text, why, code = read_config(path)
		if text then
			if #text > max_bytes then
				fail("%s: larger than %d bytes, too large for a kubeconfig", path, max_bytes)
			end
			local document = parse(text, path)
			if document then
				merge(config, document, path)
				found = true
			else
				empty = empty or path
			end
		elseif code == enoent then
			missing = missing or why
		else
			fail("cannot read the kubeconfig: %s", why)
		end
	end
	if not found and empty then
		fail("%s: not a kubeconfig, but an empty file", empty)
	elseif not found then
		fail("cannot read the kubeconfig: %s", missing or "no file is named")
	end
	return config
end

-- ---- a context's options ----

local base64 = {}
for i, c in ipairs { ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):byte(1, -1) } do
	base64[c] = i - 1
end

--- Decodes base64. White space is ignored.
---@param text string
---@return string? bytes nil: the text is not base64
function kubeconfig.decode_base64(text)
	text = text:gsub("%s", "")
	local digits = text:match("^([%w+/]*)=?=?$")
	if not digits or #text % 4 ~= 0 then
		return nil
	end
	local out, bits, count = {}, 0, 0
	for i = 1, #digits do
		bits, count = bits * 64 + base64[digits:byte(i)], count + 6
		if count >= 8 then
			count = count - 8
			local byte = math.floor(bits / 2 ^ count)
			out[#out + 1] = string.char(byte)
			bits = bits - byte * 2 ^ count
		end
	end
	return table.concat(out)
end

-- Finds an entry of a kubeconfig. `place` names the entry in messages.
local function entry_of(config, kind, name)
	local entry = config[kind .. "s"][name]
	if not entry then
		fail("%s: there is no %s '%s'", config.paths, kind, name)
	end
	return { fields = entry.fields, path = entry.path, place = ("%s '%s'"):format(kind, name) }
end

local function string_field(entry, key)
	local value = expect(entry.fields[key], "string", entry.path, entry.place .. ": " .. key)
	return value ~= "" and value or nil
end

local function refuse(entry, key, advice)
	local value = entry.fields[key]
	if value ~= nil and value ~= "" then
		fail("%s: %s: '%s' is not supported%s", entry.path, entry.place, key, advice or "")
	end
end

-- Returns the option's value of `tokenFile`. As in client-go, a token takes the place of a file that cannot be read.
local function token_file_of(entry, token)
	local path = string_field(entry, "tokenFile")
	path = path and resolved(path, folder_of(entry.path))
	local has_token = path and (kubeconfig.read_file(path, max_bytes) or ""):find "%S"
	return (has_token or not token) and path or nil
end

-- Returns the decoded `-data` field, or, without it, the contents of the file that the field names, and its path.
local function data_or_file(entry, key)
	local data, path = string_field(entry, key .. "-data"), string_field(entry, key)
	if data then
		return kubeconfig.decode_base64(data) or fail("%s: %s: '%s-data' is not base64", entry.path, entry.place, key)
	end
	if path then
		path = resolved(path, folder_of(entry.path))
		local text, why = kubeconfig.read_file(path)
		if text == "" then
			why = path .. ": is empty" -- without an authority the system's would count
		end
		return not why and text or fail("%s: %s: '%s': %s", entry.path, entry.place, key, why), path
	end
end

local function apply_cluster(options, entry)
	refuse(entry, "tls-server-name")
	refuse(entry, "proxy-url")
	options.server = string_field(entry, "server") or fail("%s: %s: no 'server'", entry.path, entry.place)
	options.ca = data_or_file(entry, "certificate-authority")
	options.insecure_skip_tls_verify =
		expect(entry.fields["insecure-skip-tls-verify"], "boolean", entry.path, entry.place .. ": insecure-skip-tls-verify")
end

local elsewhere = "; give a token as the option 'token', or the path of a file with it as 'token_file'"

-- The credentials of a plugin are not used beside a token, as in client-go.
local function apply_exec(options, entry, cluster, allow_exec)
	local fields, folder = expect(entry.fields.exec, "table", entry.path, entry.place .. ": exec"), folder_of(entry.path)
	if fields and not options.token and not options.token_file then
		options.exec = exec.plugin(fields, entry.path .. ": " .. entry.place, function(path)
			path = resolved((path:gsub("^%./+", "")), folder)
			return path:find("/", 1, true) and path or "./" .. path -- a mere name would be looked up in $PATH
		end, allow_exec, cluster.fields)
	end
end

local function apply_user(options, entry)
	refuse(entry, "auth-provider", elsewhere)
	refuse(entry, "username", elsewhere)
	refuse(entry, "password", elsewhere)
	for _, key in ipairs { "as", "as-uid", "as-groups", "as-user-extra" } do
		local value = entry.fields[key]
		if type(value) ~= "table" or next(value) ~= nil then
			refuse(entry, key)
		end
	end
	local token = string_field(entry, "token")
	options.token_file = token_file_of(entry, token)
	options.token = not options.token_file and token or nil
	options.client_certificate, options.client_certificate_file = data_or_file(entry, "client-certificate")
	options.client_key, options.client_key_file = data_or_file(entry, "client-key")
end

--- Turns a context into options for evrec.core.sink_kubernetes. Raises if an entry is missing, wrong, or not supported.
---@param config table from kubeconfig.load
---@param context? string nil: the current one
---@param anonymous? boolean ignore the user of the context, because the script gives the credentials
---@param allow_exec? string[] commands that a plugin may be
---@return table options server, ca, token, token_file, client_certificate, client_key, client_certificate_file,
---client_key_file, insecure_skip_tls_verify, exec
function kubeconfig.resolve(config, context, anonymous, allow_exec)
	context = context or config.current
	if not context then
		fail("%s: no current context; name one by the option 'context'", config.paths)
	end
	local entry, options = entry_of(config, "context", context), {}
	local cluster = string_field(entry, "cluster") or fail("%s: %s: no cluster", entry.path, entry.place)
	cluster = entry_of(config, "cluster", cluster)
	apply_cluster(options, cluster)
	local user = string_field(entry, "user")
	-- As in client-go, a user's credentials are not sent in clear.
	if user and not anonymous and not options.server:find "^http://" then
		user = entry_of(config, "user", user)
		apply_user(options, user)
		apply_exec(options, user, cluster, allow_exec)
	end
	return options
end

--- Returns the namespace of a context. Raises if there is no such context.
---@param config table from kubeconfig.load
---@param context? string nil: the current one
---@return string? namespace nil: the context names none
function kubeconfig.namespace(config, context)
	context = context or config.current
	return context and string_field(entry_of(config, "context", context), "namespace")
end

return kubeconfig
