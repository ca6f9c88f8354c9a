local cjson = require "cjson"
local fixtures = require "fixtures"
local kubeconfig = require "evrec.kubeconfig"

local folder, files

local function write(name, text)
	local path = folder .. "." .. name
	local file = assert(io.open(path, "wb"))
	file:write(text)
	file:close()
	files[#files + 1] = path
	return path
end

-- Of a file beside the kubeconfig, its name there.
local function beside(path)
	return path:match("[^/]*$")
end

local yaml = [[
apiVersion: v1
kind: Config
current-context: one
contexts:
- name: one
  context: {cluster: c1, user: u1, namespace: shop}
- name: two
  context:
    cluster: c2
    user: u2
- name: anonymous
  context: {cluster: c1}
clusters:
- name: c1
  cluster:
    server: https://one:6443
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
- name: c2
  cluster:
    server: https://two:6443
    insecure-skip-tls-verify: true
    certificate-authority-data: ~
users:
- name: u1
  user:
    token: secret-token
- name: u2
  user:
    client-certificate-data: Y2VydA==
    client-key-data: a2V5
]]

local function document()
	return {
		["current-context"] = "x",
		contexts = { { name = "x", context = { cluster = "x", user = "x" } } },
		clusters = { { name = "x", cluster = { server = "https://x" } } },
		users = { { name = "x", user = { token = "secret-token" } } },
	}
end

local function resolve(text, context)
	return kubeconfig.resolve(kubeconfig.load { write("config", text) }, context)
end

local function fails(part, f, ...)
	local ok, message = pcall(f, ...)
	assert.is_false(ok)
	assert.truthy(fixtures.has(message, part), message)
	assert.is_false(fixtures.has(message, "secret"))
end

describe("a kubeconfig", function()
	before_each(function()
		folder, files = os.tmpname(), {}
	end)
	after_each(function()
		for _, path in ipairs(files) do
			os.remove(path)
		end
		os.remove(folder)
	end)

	it("is read as YAML", function()
		local ca = "-----BEGIN CERTIFICATE-----\n"
		assert.same({ server = "https://one:6443", ca = ca, token = "secret-token" }, resolve(yaml))
		assert.same({ server = "https://two:6443", insecure_skip_tls_verify = true, client_certificate = "cert",
			client_key = "key" }, resolve(yaml, "two"))
		assert.same({ server = "https://one:6443", ca = ca }, resolve(yaml, "anonymous"))
	end)

	it("is read as JSON, with nulls", function()
		local config = document()
		config.clusters[1].cluster["certificate-authority"] = cjson.null
		config.users[1].user.exec = cjson.null
		assert.same({ server = "https://x", token = "secret-token" }, resolve(cjson.encode(config)))
	end)

	it("is read as YAML where it is YAML that begins like JSON", function()
		assert.equal("https://x", resolve("{contexts: [{name: x, context: {cluster: x}}], current-context: x, "
			.. "clusters: [{name: x, cluster: {server: 'https://x'}}]}").server)
	end)

	it("leaves the user out where that is wanted", function()
		local config = document()
		config.users[1].user = { exec = { command = "aws" } }
		local loaded = kubeconfig.load { write("config", cjson.encode(config)) }
		assert.same({ server = "https://x" }, kubeconfig.resolve(loaded, nil, true))
	end)

	it("finds files beside it, and elsewhere", function()
		local ca, certificate, key, token = write("ca", "CA"), write("crt", "CRT"), write("key", "KEY"), write("token", "T")
		local config = document()
		config.clusters[1].cluster["certificate-authority"] = beside(ca)
		config.users[1].user = { ["client-certificate"] = certificate, ["client-key"] = beside(key),
			tokenFile = beside(token), token = "secret-token" }
		assert.same({ server = "https://x", ca = "CA", client_certificate = "CRT", client_key = "KEY", token_file = token },
			resolve(cjson.encode(config)))
	end)

	it("prefers data to files", function()
		local config = document()
		config.clusters[1].cluster["certificate-authority"] = "nowhere"
		config.clusters[1].cluster["certificate-authority-data"] = "Q0E="
		assert.equal("CA", resolve(cjson.encode(config)).ca)
	end)

	it("is merged from several files: the first that names a thing decides", function()
		local first, second = document(), document()
		first["current-context"] = ""
		first.users[1].user.token = "first"
		first.clusters = nil
		second.users[1].user.token = "second"
		local third = { ["current-context"] = "y" }
		second.contexts[2] = { name = "y", context = { cluster = "x", user = "y" } }
		second.users[2] = { name = "y", user = {} }
		local config = kubeconfig.load {
			folder .. ".missing", write("first", cjson.encode(first)), write("second", cjson.encode(second)),
			write("third", cjson.encode(third)),
		}
		assert.same({ server = "https://x", token = "first" }, kubeconfig.resolve(config))
		assert.same({ server = "https://x" }, kubeconfig.resolve(config, "y"))
	end)

	it("has to be there, and to be one", function()
		fails(folder .. ".none", kubeconfig.load, { folder .. ".none" })
		fails("no file is named", kubeconfig.load, {})
		fails("malformed", resolve, "a: [secret")
		fails("malformed", resolve, "{ \"secret\" ")
		fails("malformed", resolve, "users: !!float secret")
		fails("malformed", resolve, "users: *secret")
		fails("malformed", resolve, "users: { <<: secret }")
		fails("malformed", resolve, "users: { <<: [secret] }")
		fails("not a kubeconfig", resolve, "")
		fails("not a kubeconfig", resolve, "secret")
		fails("contexts: expected a table", resolve, "contexts: secret")
		fails("contexts[1]: expected a table", resolve, "contexts: [secret]")
		fails("contexts[1].name: expected a string", resolve, "contexts: [{name: 5}]")
		fails("contexts[1].context: expected a table", resolve, "contexts: [{name: a, context: secret}]")
		fails("no current context", resolve, "a: b")
		fails("current-context: expected a string", resolve, "current-context: 5")
		fails("there is no context 'x'", resolve, "current-context: x")
		fails("there is no context 'three'", resolve, yaml, "three")
	end)

	it("says what is missing or wrong in it", function()
		local function with(change, part)
			local config = document()
			change(config.clusters[1].cluster, config.users[1].user, config.contexts[1].context)
			fails(part, resolve, cjson.encode(config))
		end
		with(function(cluster) cluster.server = nil end, "cluster 'x': no 'server'")
		with(function(cluster) cluster.server = 5 end, "cluster 'x': server: expected a string")
		with(function(cluster) cluster["certificate-authority-data"] = "%%" end, "'certificate-authority-data' is not base64")
		with(function(cluster) cluster["certificate-authority"] = "nowhere" end, "nowhere")
		with(function(cluster) cluster["insecure-skip-tls-verify"] = "yes" end, "skip-tls-verify: expected a boolean")
		with(function(cluster) cluster["tls-server-name"] = "x" end, "cluster 'x': 'tls-server-name' is not supported")
		with(function(cluster) cluster["proxy-url"] = "x" end, "cluster 'x': 'proxy-url' is not supported")
		with(function(_, user) user.exec = { command = "aws" } end, "'exec' is not supported; give what it would yield")
		with(function(_, user) user["auth-provider"] = { name = "gcp" } end, "'auth-provider' is not supported")
		with(function(_, user) user.username = "secret" end, "'username' is not supported")
		with(function(_, user) user.password = "secret" end, "'password' is not supported")
		with(function(_, user) user.as = "admin" end, "'as' is not supported")
		with(function(_, user) user.token = { "secret" } end, "user 'x': token: expected a string")
		with(function(_, user) user["client-key-data"] = "secret!" end, "'client-key-data' is not base64")
		with(function(_, _, context) context.user = "y" end, "there is no user 'y'")
		with(function(_, _, context) context.cluster = nil end, "context 'x': no cluster")
	end)

	it("may refer to itself in YAML", function()
		assert.equal("https://x", resolve([[
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: &c {server: "https://x", itself: *c}}]
users: [{name: x, user: {token: t, extra: *c}}]
]]).server)
	end)

	it("decodes base64", function()
		local decode = kubeconfig.decode_base64
		assert.equal("", decode(""))
		assert.equal("a", decode("YQ=="))
		assert.equal("ab", decode("YWI="))
		assert.equal("abc", decode("YWJj"))
		assert.equal("abcdef\255\0", decode("YWJj\nZGVm\r\n/wA="))
		assert.is_nil(decode("YQ"))
		assert.is_nil(decode("Y=Q="))
		assert.is_nil(decode("YQ-_"))
	end)

	it("names the package that is missing", function()
		local function without(modules, f, ...)
			local loaded = {}
			for _, module in ipairs(modules) do
				loaded[module], package.loaded[module] = package.loaded[module], nil
				package.preload[module] = function() error("not found") end
			end
			f(...)
			for _, module in ipairs(modules) do
				package.loaded[module], package.preload[module] = loaded[module], nil
			end
		end
		local json = cjson.encode(document())
		without({ "lyaml" }, fails, "lua-yaml", resolve, yaml)
		without({ "lyaml" }, fails, "malformed", resolve, "{")
		without({ "lyaml" }, resolve, json)
		without({ "cjson" }, resolve, json)
		without({ "cjson", "lyaml" }, fails, "lua-cjson", resolve, json)
	end)
end)
