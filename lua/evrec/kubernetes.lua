-- evrec.sink.kubernetes: finds the API server and the credentials. Reads all files when the sink is made, so that a
-- proxy may go into a chroot afterwards; in HAProxy it looks the server's name up then, too. Only the files of a token
-- and of a client certificate are read again later, if they still can be.
local core = require "evrec.core"
local program = require "evrec.host"
local kubeconfig = require "evrec.kubeconfig"
local options = require "evrec.options"
local pem = require "evrec.pem"

local fail = options.fail

local kubernetes = {}

local service_account = "/var/run/secrets/kubernetes.io/serviceaccount"

-- The options that the core gets unchanged, and checks.
local core_options = {
	server = true, token = true, token_file = true, insecure_skip_tls_verify = true,
	max_in_flight = true, timeout = true, spool = true, state_file = true,
	max_pending = true, max_pending_bytes = true, max_age = true, max_tries = true, full = true,
	name = true, api = true, correlate = true, refresh_interval = true, finish_time = true, max_series = true,
	note_in_key = true, rate_limit = true, resume = true, resume_instances = true,
}

-- All options, those that this file handles with their types.
local known = {
	ca_file = "string", client_certificate = "string", client_key = "string",
	kubeconfig = "string", context = "string", service_account = "string", allow_exec = "table",
}
for name in next, core_options do
	known[name] = true
end

local function check_allow_exec(commands)
	for i, command in next, commands or {} do
		if type(i) ~= "number" or type(command) ~= "string" or command == "" then
			fail("option 'allow_exec': expected a list of commands, such as { \"aws\" }")
		end
	end
end

local function check_apart(set, one, other)
	if set[one] and set[other] then
		fail("option '%s': not together with '%s'", one, other)
	end
end

-- ---- finding the server ----

local function environment(name)
	local value = os.getenv(name)
	return value ~= "" and value or nil
end

-- Returns the server and the token file of the pod's service account; nil outside of a cluster.
local function in_cluster(folder)
	local host, port = environment "KUBERNETES_SERVICE_HOST", environment "KUBERNETES_SERVICE_PORT"
	local token_file = (folder or service_account) .. "/token"
	local token = host and port and io.open(token_file, "rb")
	if not token then
		return nil
	end
	token:close()
	if host:find(":", 1, true) and host:sub(1, 1) ~= "[" then
		host = "[" .. host .. "]"
	end
	return {
		server = ("https://%s:%s"):format(host, port),
		token_file = token_file,
	}
end

local function default_kubeconfigs()
	local paths = {}
	for path in (environment "KUBECONFIG" or ""):gmatch("[^:]+") do
		paths[#paths + 1] = path
	end
	local home = environment "HOME"
	if #paths == 0 and home then
		paths[1] = home .. "/.kube/config"
	end
	return paths
end

local function discovered(set)
	local credentials = set.token ~= nil or set.token_file ~= nil or set.client_certificate ~= nil
	if set.kubeconfig then
		return kubeconfig.resolve(kubeconfig.load { set.kubeconfig }, set.context, credentials, set.allow_exec)
	end
	local here = not set.context and in_cluster(set.service_account)
	if here then
		if set.ca_file == nil and not set.insecure_skip_tls_verify then
			here.ca = pem.read("service account", (set.service_account or service_account) .. "/ca.crt")
		end
		return here
	end
	if set.service_account then
		fail("option 'service_account': no token in %s, or KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are unset",
			set.service_account)
	end
	local ok, config = pcall(kubeconfig.load, default_kubeconfigs())
	if not ok then
		fail("no API server: not inside a cluster, and %s; set $KUBECONFIG, or the option 'kubeconfig' or 'server'", config)
	end
	return kubeconfig.resolve(config, set.context, credentials, set.allow_exec)
end

-- ---- options ----

-- Replaces found options by those that the script gave.
local function override(found, set)
	if set.token ~= nil or set.token_file ~= nil then
		found.token, found.token_file = nil, nil
	end
	-- As in client-go, either option decides alone how the server is verified.
	if set.ca_file ~= nil or set.insecure_skip_tls_verify then
		found.ca, found.insecure_skip_tls_verify = nil, nil
	end
	for name in next, core_options do
		if set[name] ~= nil then
			found[name] = set[name]
		end
	end
	if found.ca and found.insecure_skip_tls_verify then
		fail "kubeconfig: the cluster has a certificate authority, and insecure-skip-tls-verify; remove one of them"
	end
	found.ca = pem.read("option 'ca_file'", set.ca_file) or found.ca
	for _, name in ipairs { "client_certificate", "client_key" } do
		if set[name] then
			found[name], found[name .. "_file"] = pem.read(("option '%s'"):format(name), set[name]), set[name]
		end
	end
	if not (found.client_certificate_file and found.client_key_file) then
		found.client_certificate_file, found.client_key_file = nil, nil -- as in client-go, one alone is not renewed
	end
	return found
end

local function resolve(given)
	if type(given) == "table" and given.thread ~= nil then
		fail "option 'thread': sinks have none; use the option 'drive' of evrec.broadcaster"
	end
	local set = options.checked(given, known)
	check_allow_exec(set.allow_exec)
	check_apart(set, "kubeconfig", "server")
	check_apart(set, "context", "server")
	check_apart(set, "allow_exec", "server")
	check_apart(set, "service_account", "server")
	check_apart(set, "service_account", "kubeconfig")
	check_apart(set, "service_account", "context")
	return override(set.server ~= nil and {} or discovered(set), set)
end

-- Rewrites an error of the core, which has other names for some options.
local function reworded(message, exec)
	message = message:gsub("option 'ca'", "option 'ca_file'")
	local hint = exec and exec.install_hint
	return message:find("option 'exec'", 1, true) and hint and message .. "; " .. hint or message
end

-- Makes a sink of options, for the function of that name.
local function make(given, called)
	local ok, result = pcall(resolve, given)
	if not ok then
		error(called .. ": " .. tostring(result), 3)
	end
	local exec = result.exec
	result.exec = nil
	-- Its workers may start no thread, which another look-up would need.
	result.resolve_early = program.name() == "haproxy" or nil
	ok, result = pcall(core.sink_kubernetes, result, exec)
	if not ok then
		error((reworded(tostring(result), exec):gsub("evrec%.sink%.kubernetes", called)), 3)
	end
	return result
end

--- Tells which server a sink with these options would write to. Raises as kubernetes.sink does.
---@param given? evrec.KubernetesOptions
---@return string URL
function kubernetes.server(given)
	local ok, result = pcall(resolve, given)
	if not ok then
		error("evrec.sink.kubernetes: " .. tostring(result), 2)
	end
	return result.server
end

--- Makes the sink. Raises on misuse, and if it finds no API server; the message names the option.
---@param given? evrec.KubernetesOptions
---@return evrec.Sink
function kubernetes.sink(given)
	local sink = make(given, "evrec.sink.kubernetes")
	return sink
end

--- Makes a source of the events in a cluster. Raises as kubernetes.sink.
---@param given? evrec.KubernetesOptions
---@return evrec.Source
function kubernetes.cluster(given)
	return core.source_cluster(make(given, "evrec.cluster"))
end

--- Returns the namespace that commands are about if none is named: the context's, the pod's in a cluster, else
--- "default". Raises if there is no such kubeconfig or context.
---@param given { kubeconfig?: string, context?: string }
---@return string
function kubernetes.namespace(given)
	local named
	if not given.kubeconfig and not given.context and in_cluster() then
		named = (kubeconfig.read_file(service_account .. "/namespace") or ""):match "%S+"
	else
		local paths = given.kubeconfig and { given.kubeconfig } or default_kubeconfigs()
		named = kubeconfig.namespace(kubeconfig.load(paths), given.context)
	end
	return named or "default"
end

return kubernetes
