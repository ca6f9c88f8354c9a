-- Kubeconfig files: read, merged as kubectl merges them, and turned into the options of a Kubernetes sink. What goes
-- wrong is raised as a message without a position, which never holds a token or a key.
local kubeconfig = {}

local function fail(message, ...)
	error(message:format(...), 0)
end

-- ---- files ----

--- The contents of a file, or nil and why not.
---@param path string
---@return string? text
---@return string? why
function kubeconfig.read_file(path)
	local file, why = io.open(path, "rb")
	if not file then
		return nil, why
	end
	local text
	text, why = file:read("*a")
	file:close()
	return text, why and path .. ": " .. why
end

local function folder_of(path)
	return path:match("^(.*/)[^/]*$") or ""
end

-- Relative paths of a kubeconfig start from its own folder.
local function resolved(path, folder)
	return path:sub(1, 1) == "/" and path or folder .. path
end

-- ---- parsing ----

-- A copy without nulls, which stand for unset fields. YAML can name a table within itself: `copies` knows those seen.
local function without(null, value, copies)
	if value == null then
		return nil
	end
	if type(value) ~= "table" then
		return value
	end
	if not copies[value] then
		local copy = {}
		copies[value] = copy
		for key, inner in pairs(value) do
			copy[key] = without(null, inner, copies)
		end
	end
	return copies[value]
end

-- What a parser says, without its own place in the file system, and without what it quotes: an unquoted secret may be
-- taken for an alias, or for anything else.
local function complaint(message)
	message = tostring(message):gsub("^%S-%.lua:%d+: ", "")
	for _, quoting in ipairs { "value", "reference", "merge event", "sequence element %d+" } do
		message = message:gsub("(invalid .-" .. quoting .. "): .*$", "%1")
	end
	return message
end

local function parse_with(module, parse, null, text)
	local loaded, library = pcall(require, module)
	if not loaded then
		return nil, nil, true
	end
	local ok, document = pcall(library[parse], text)
	if not ok then
		return nil, complaint(document)
	end
	return without(library[null], document, {})
end

-- JSON is YAML too, but its reader is there more often; what begins like JSON can still be YAML.
local function parse(text, path)
	local json = text:find("^%s*{") ~= nil
	local document, why, missing
	if json then
		document, why, missing = parse_with("cjson", "decode", "null", text)
	end
	if document == nil then
		local yaml, yaml_why, no_yaml = parse_with("lyaml", "load", "null", text)
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
	if type(document) ~= "table" then
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

-- `into` gets what the list names and what it does not have yet, each with the file that it is from.
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

--- Reads and merges kubeconfigs: the first file that names a thing decides about it. Files that are not there are left
--- out; one at least has to be.
---@param paths string[]
---@return table config
function kubeconfig.load(paths)
	local config = { contexts = {}, clusters = {}, users = {}, paths = table.concat(paths, ":") }
	local found, missing = false, nil
	for _, path in ipairs(paths) do
		local text, why = kubeconfig.read_file(path)
		if text then
			merge(config, parse(text, path), path)
			found = true
		else
			missing = missing or why
		end
	end
	if not found then
		fail("cannot read the kubeconfig: %s", missing or "no file is named")
	end
	return config
end

-- ---- what a context says ----

local base64 = {}
for i, c in ipairs { ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):byte(1, -1) } do
	base64[c] = i - 1
end

--- Decodes base64; nil where it is none.
---@param text string
---@return string?
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

-- An entry of a kubeconfig, with the words for messages about it.
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

-- What a file holds, or the base64 beside it, which comes first.
local function data_or_file(entry, key)
	local data, path = string_field(entry, key .. "-data"), string_field(entry, key)
	if data then
		return kubeconfig.decode_base64(data) or fail("%s: %s: '%s-data' is not base64", entry.path, entry.place, key)
	end
	if path then
		local text, why = kubeconfig.read_file(resolved(path, folder_of(entry.path)))
		return text or fail("%s: %s: '%s': %s", entry.path, entry.place, key, why)
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

local elsewhere = "; give what it would yield as the option 'token', or keep it in a file and name that as 'token_file'"

local function apply_user(options, entry)
	refuse(entry, "exec", elsewhere)
	refuse(entry, "auth-provider", elsewhere)
	refuse(entry, "username", elsewhere)
	refuse(entry, "password", elsewhere)
	for _, key in ipairs { "as", "as-uid", "as-groups", "as-user-extra" } do
		refuse(entry, key)
	end
	local token_file = string_field(entry, "tokenFile")
	options.token_file = token_file and resolved(token_file, folder_of(entry.path))
	options.token = not token_file and string_field(entry, "token") or nil
	options.client_certificate = data_or_file(entry, "client-certificate")
	options.client_key = data_or_file(entry, "client-key")
end

--- What a context says, as options of core's Kubernetes sink.
---@param config table what load returned
---@param context? string nil: the current one
---@param anonymous? boolean leave the context's user out: its credentials are given otherwise
---@return table options server, ca, token, token_file, client_certificate, client_key, insecure_skip_tls_verify
function kubeconfig.resolve(config, context, anonymous)
	context = context or config.current
	if not context then
		fail("%s: no current context; name one by the option 'context'", config.paths)
	end
	local entry, options = entry_of(config, "context", context), {}
	local cluster = string_field(entry, "cluster") or fail("%s: %s: no cluster", entry.path, entry.place)
	apply_cluster(options, entry_of(config, "cluster", cluster))
	local user = string_field(entry, "user")
	if user and not anonymous then
		apply_user(options, entry_of(config, "user", user))
	end
	return options
end

return kubeconfig
