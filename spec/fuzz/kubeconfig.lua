-- The checks of kubeconfig_fuzz.c: two files of any bytes yield options of the right types, or a message for people
-- that holds no secret.
local kubeconfig = require "evrec.kubeconfig"
local lyaml = require "lyaml"

-- The secret of the corpus and the dictionary.
local secret = "S3CRET"
local secret_keys = { "token", "password", "client-key-data" }

local files = {}

-- A file that a kubeconfig names exists, unless its name contains "missing".
function kubeconfig.read_file(path)
	local text = files[path] or not path:find("missing", 1, true) and "-----BEGIN CERTIFICATE-----\n"
	if text then
		return text
	end
	return nil, path .. ": No such file or directory", 2
end

-- ---- messages ----

local function count(text, pattern)
	return select(2, text:gsub(pattern, ""))
end

-- Whether the text holds the secret only as the value of a secret key, be it tagged, quoted or an alias.
local function only_secrets(text)
	local n = 0
	text = text:gsub("!%S*%s+", "")
	for _, key in ipairs(secret_keys) do
		n = n + count(text, key:gsub("%-", "%%-") .. "[\"']?%s*:%s*[\"'*&!]?" .. secret)
	end
	return n == count(text, secret)
end

-- Whether a document uses the secret as a name, which a message may contain.
local function tells(value, seen)
	if type(value) == "string" then
		return value:find(secret, 1, true) ~= nil
	elseif type(value) ~= "table" or seen[value] then
		return false
	end
	seen[value] = true
	for key, inner in pairs(value) do
		local hidden = type(inner) == "string" and (key == "token" or key == "password" or key == "client-key-data")
		if tells(key, seen) or (not hidden and tells(inner, seen)) then
			return true
		end
	end
	return false
end

local function may_tell(text)
	local ok, document = pcall(lyaml.load, text)
	if not ok then
		return not only_secrets(text)
	end
	return tells(document, {})
end

local function check_message(message, context)
	assert(type(message) == "string", "an error that is no message")
	assert(message:find("^config%-%d") or message:find("^cannot read the kubeconfig: "), message)
	local told = message:find(secret, 1, true) and not context:find(secret, 1, true)
	if told and not may_tell(files["config-1"]) and not may_tell(files["config-2"]) then
		error("a secret is told: " .. message)
	end
end

-- ---- options ----

local types = {
	server = "string", ca = "string", token = "string", token_file = "string", client_certificate = "string",
	client_key = "string", client_certificate_file = "string", client_key_file = "string",
	insecure_skip_tls_verify = "boolean", exec = "table",
}

local exec_types = {
	command = "string", args = "table", env = "table", api_version = "string", provide_cluster_info = "boolean",
	cluster_config = "string", install_hint = "string",
}
local allowed_commands = { "aws", "/opt/aws" }

local function check_exec(exec)
	for name, value in pairs(exec) do
		assert(type(value) == exec_types[name], name)
	end
	assert(exec.command == "aws" or exec.command == "/opt/aws", "a command that is not allowed")
	assert(#exec.env % 2 == 0)
	for _, list in ipairs { exec.args, exec.env } do
		for _, item in ipairs(list) do
			assert(type(item) == "string")
		end
	end
end

local function check_options(options, anonymous)
	for name, value in pairs(options) do
		assert(type(value) == types[name], name)
	end
	check_exec(options.exec or { command = "aws", args = {}, env = {} })
	assert(options.server ~= "" and options.server ~= nil)
	assert(not (options.token and options.token_file))
	assert(not (options.exec and (options.token or options.token_file)))
	assert(not anonymous or not (options.token or options.token_file or options.client_key or options.exec))
end

-- ---- base64 ----

local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local function encode_base64(bytes)
	local out = bytes:gsub("..?.?", function(group)
		local a, b, c = group:byte(1, 3)
		local number = a * 65536 + (b or 0) * 256 + (c or 0)
		local four = ""
		for i = 3, 0, -1 do
			local digit = math.floor(number / 64 ^ i) % 64 + 1
			four = four .. digits:sub(digit, digit)
		end
		return four:sub(1, #group + 1) .. ("="):rep(3 - #group)
	end)
	return out
end

local function check_base64(text)
	local decoded = kubeconfig.decode_base64(text)
	assert(kubeconfig.decode_base64(encode_base64(text)) == text)
	if decoded then
		local given, again = text:gsub("%s", ""), encode_base64(decoded)
		assert(#given == #again and decoded == kubeconfig.decode_base64(again))
		-- The last digit may have bits that belong to no byte.
		local whole = #given:gsub("=", "") - 1
		assert(given:sub(1, whole) == again:sub(1, whole))
	end
end

-- ----

--- Returns server, token, ca, client_certificate, client_key, each nil if the kubeconfig lacks it.
return function(first, other, context, anonymous)
	files["config-1"], files["config-2"] = first, other
	check_base64(first:sub(1, 512))
	local ok, config = pcall(kubeconfig.load, { "config-0-missing", "config-1", other ~= "" and "config-2" or nil })
	if not ok then
		return check_message(config, context)
	end
	local resolved, options = pcall(kubeconfig.resolve, config, context ~= "" and context or nil, anonymous,
		allowed_commands)
	if not resolved then
		return check_message(options, context)
	end
	check_options(options, anonymous)
	return options.server, options.token, options.ca, options.client_certificate, options.client_key
end
