-- evrec.sink.kubernetes: which API server, and by what credentials. All files are read here, when the sink is made: a
-- proxy that goes into a chroot later takes with it what it needs. (A token file is read again where it still can be.)
local core = require "evrec.core"
local kubeconfig = require "evrec.kubeconfig"

local kubernetes = {}

local service_account = "/var/run/secrets/kubernetes.io/serviceaccount"

-- What is decided here, and what the core is given as it is.
local own_options = {
	ca_file = "string", client_certificate = "string", client_key = "string",
	kubeconfig = "string", context = "string", service_account = "string", api = "string",
}
local core_options = {
	server = true, token = true, token_file = true, insecure_skip_tls_verify = true,
	max_in_flight = true, timeout = true, thread = true, spool = true,
	max_pending = true, max_pending_bytes = true, max_age = true, max_tries = true, full = true,
}

local function fail(message, ...)
	error(message:format(...), 0)
end

local function checked(options)
	local set = {}
	if options ~= nil and type(options) ~= "table" then
		fail("expected a table of options, got %s", type(options))
	end
	for key, value in next, options or {} do
		local kind = own_options[key]
		if not kind and not core_options[key] then
			fail("unknown option '%s'", tostring(key))
		end
		if value ~= core.null then
			if kind and type(value) ~= kind then
				fail("option '%s': expected a %s, got %s", key, kind, type(value))
			end
			set[key] = value
		end
	end
	return set
end

local function check_api(api)
	if api == "events.k8s.io/v1" then
		fail("option 'api': \"events.k8s.io/v1\" cannot be written yet, \"v1\" can")
	elseif api and api ~= "v1" then
		fail("option 'api': expected \"v1\"")
	end
end

local function check_apart(set, one, other)
	if set[one] and set[other] then
		fail("option '%s': not together with '%s'", one, other)
	end
end

local function read_pem(set, option)
	local path = set[option]
	if not path then
		return nil
	end
	local text, why = kubeconfig.read_file(path)
	if not text then
		fail("option '%s': %s", option, why)
	elseif not text:find("-----BEGIN ", 1, true) then
		fail("option '%s': nothing in PEM form in %s", option, path)
	end
	return text
end

-- ---- where to ----

local function environment(name)
	local value = os.getenv(name)
	return value ~= "" and value or nil
end

-- What a pod has; nil outside of one.
local function in_cluster(folder)
	local host, port = environment "KUBERNETES_SERVICE_HOST", environment "KUBERNETES_SERVICE_PORT"
	local token_file = (folder or service_account) .. "/token"
	local token = host and port and io.open(token_file, "rb")
	if not token then
		return nil
	end
	token:close()
	if host:find(":", 1, true) then
		host = "[" .. host .. "]"
	end
	return {
		server = ("https://%s:%s"):format(host, port),
		token_file = token_file,
		ca = kubeconfig.read_file((folder or service_account) .. "/ca.crt"),
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
		return kubeconfig.resolve(kubeconfig.load { set.kubeconfig }, set.context, credentials)
	end
	local here = not set.context and in_cluster(set.service_account)
	if here then
		return here
	end
	if set.service_account then
		fail("option 'service_account': no token in %s, or KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are unset",
			set.service_account)
	end
	local ok, config = pcall(kubeconfig.load, default_kubeconfigs())
	if not ok then
		fail("no API server: not inside a cluster, and %s; the options 'server' or 'kubeconfig' name one", config)
	end
	return kubeconfig.resolve(config, set.context, credentials)
end

-- ---- options ----

-- What was given explicitly takes the place of what was found.
local function override(options, set)
	if set.token ~= nil or set.token_file ~= nil then
		options.token, options.token_file = nil, nil
	end
	for name in next, core_options do
		if set[name] ~= nil then
			options[name] = set[name]
		end
	end
	options.ca = read_pem(set, "ca_file") or options.ca
	options.client_certificate = read_pem(set, "client_certificate") or options.client_certificate
	options.client_key = read_pem(set, "client_key") or options.client_key
	return options
end

local function resolve(options)
	local set = checked(options)
	check_api(set.api)
	check_apart(set, "kubeconfig", "server")
	check_apart(set, "context", "server")
	check_apart(set, "service_account", "server")
	check_apart(set, "service_account", "kubeconfig")
	check_apart(set, "service_account", "context")
	return override(set.server ~= nil and {} or discovered(set), set)
end

--- evrec.sink.kubernetes(options)
function kubernetes.sink(options)
	local ok, result = pcall(resolve, options)
	if not ok then
		error("evrec.sink.kubernetes: " .. tostring(result), 2)
	end
	ok, result = pcall(core.sink_kubernetes, result)
	if not ok then
		-- The core is given what the file holds.
		error((tostring(result):gsub("option 'ca'", "option 'ca_file'")), 2)
	end
	return result
end

return kubernetes
