local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"
local kubeconfig = require "evrec.kubeconfig"
local tmpfiles = require "tmpfiles"

local folder, write, remove

-- Returns the name of a file in the folder of the kubeconfig.
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
		folder, write, remove = tmpfiles.new()
	end)
	after_each(function() remove() end)

	it("is read as YAML", function()
		local ca = "-----BEGIN CERTIFICATE-----\n"
		assert.same({ server = "https://one:6443", ca = ca, token = "secret-token" }, resolve(yaml))
		assert.same({ server = "https://two:6443", insecure_skip_tls_verify = true, client_certificate = "cert",
			client_key = "key" }, resolve(yaml, "two"))
		assert.same({ server = "https://one:6443", ca = ca }, resolve(yaml, "anonymous"))
	end)

	it("is read as JSON, and null means unset", function()
		local config = document()
		config.clusters[1].cluster["certificate-authority"] = cjson.null
		config.users[1].user.exec = cjson.null
		assert.same({ server = "https://x", token = "secret-token" }, resolve(cjson.encode(config)))
	end)

	it("may have nulls in its lists, which hide no entry behind them", function()
		local config = document()
		for _, list in ipairs { config.contexts, config.clusters, config.users } do
			table.insert(list, 1, cjson.null)
		end
		assert.same({ server = "https://x", token = "secret-token" }, resolve(cjson.encode(config)))
		assert.equal("secret-token", resolve((yaml:gsub("users:\n", "%0- ~\n-\n"))).token)
	end)

	it("is read as YAML if it begins like JSON and is not", function()
		assert.equal("https://x", resolve("{contexts: [{name: x, context: {cluster: x}}], current-context: x, "
			.. "clusters: [{name: x, cluster: {server: 'https://x'}}]}").server)
	end)

	it("is resolved without its user if the script asks for that", function()
		local config = document()
		config.users[1].user = { exec = { command = "aws" } }
		local loaded = kubeconfig.load { write("config", cjson.encode(config)) }
		assert.same({ server = "https://x" }, kubeconfig.resolve(loaded, nil, true))
	end)

	it("is resolved without its user if its server has no TLS", function()
		local config = document()
		config.clusters[1].cluster.server = "http://x"
		assert.same({ server = "http://x" }, resolve(cjson.encode(config)))
	end)

	it("names files by absolute paths, or by paths from its own folder", function()
		local ca, certificate, key, token = write("ca", "CA"), write("crt", "CRT"), write("key", "KEY"), write("token", "T")
		local config = document()
		config.clusters[1].cluster["certificate-authority"] = beside(ca)
		config.users[1].user = { ["client-certificate"] = certificate, ["client-key"] = beside(key),
			tokenFile = beside(token), token = "secret-token" }
		assert.same({ server = "https://x", ca = "CA", client_certificate = "CRT", client_key = "KEY", token_file = token,
			client_certificate_file = certificate, client_key_file = key }, resolve(cjson.encode(config)))
	end)

	it("has a token for the case that its file with a token cannot be read", function()
		local config = document()
		for _, file in ipairs { folder .. ".none", write("empty", "\n"), "/" } do
			config.users[1].user = { tokenFile = file, token = "secret-token" }
			assert.same({ server = "https://x", token = "secret-token" }, resolve(cjson.encode(config)))
			config.users[1].user.token = nil
			assert.same({ server = "https://x", token_file = file }, resolve(cjson.encode(config)))
		end
	end)

	it("may hold data, which wins over a file", function()
		local config = document()
		config.clusters[1].cluster["certificate-authority"] = "nowhere"
		config.clusters[1].cluster["certificate-authority-data"] = "Q0E="
		assert.equal("CA", resolve(cjson.encode(config)).ca)
	end)

	it("is merged from several files, of which the first that defines an entry wins", function()
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

	it("is passed over among several files only if it is missing", function()
		local path = write("config", yaml)
		assert.equal("https://one:6443", kubeconfig.resolve(kubeconfig.load { folder .. ".none", path }).server)
		fails("cannot read the kubeconfig: /: Is a directory", kubeconfig.load, { "/", path })
		fails("cannot read the kubeconfig: " .. path .. "/x: Not a directory", kubeconfig.load, { path .. "/x", path })
		fails("cannot read the kubeconfig: /: Is a directory", kubeconfig.load, { path, "/" })
	end)

	it("is passed over among several files if it is empty", function()
		local path = write("config", yaml)
		for i, text in ipairs { "", " \n", "# moved\n", "---\n", "null\n" } do
			local empty = write("empty" .. i, text)
			assert.equal("https://one:6443", kubeconfig.resolve(kubeconfig.load { empty, path }).server)
			assert.equal("https://one:6443", kubeconfig.resolve(kubeconfig.load { path, empty }).server)
			fails(empty .. ": not a kubeconfig", kubeconfig.load, { folder .. ".none", empty })
		end
	end)

	it("is refused if it is missing or malformed", function()
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

	it("is refused with a message that names the missing or wrong entry", function()
		local function with(change, part)
			local config = document()
			change(config.clusters[1].cluster, config.users[1].user, config.contexts[1].context)
			fails(part, resolve, cjson.encode(config))
		end
		with(function(cluster) cluster.server = nil end, "cluster 'x': no 'server'")
		with(function(cluster) cluster.server = 5 end, "cluster 'x': server: expected a string")
		with(function(cluster) cluster["certificate-authority-data"] = "%%" end, "'certificate-authority-data' is not base64")
		with(function(cluster) cluster["certificate-authority"] = "nowhere" end, "nowhere")
		local empty = write("empty", "")
		with(function(cluster) cluster["certificate-authority"] = empty end, empty .. ": is empty")
		with(function(_, user) user["client-key"] = empty end, "user 'x': 'client-key': " .. empty .. ": is empty")
		with(function(cluster) cluster["insecure-skip-tls-verify"] = "yes" end, "skip-tls-verify: expected a boolean")
		with(function(cluster) cluster["tls-server-name"] = "x" end, "cluster 'x': 'tls-server-name' is not supported")
		with(function(cluster) cluster["proxy-url"] = "x" end, "cluster 'x': 'proxy-url' is not supported")
		with(function(_, user) user.token, user.exec = nil, 5 end, "user 'x': exec: expected a table, got a number")
		with(function(_, user) user["auth-provider"] = { name = "gcp" } end, "'auth-provider' is not supported")
		with(function(_, user) user.username = "secret" end, "'username' is not supported")
		with(function(_, user) user.password = "secret" end, "'password' is not supported")
		with(function(_, user) user.as = "admin" end, "'as' is not supported")
		with(function(_, user) user.token = { "secret" } end, "user 'x': token: expected a string")
		with(function(_, user) user["client-key-data"] = "secret!" end, "'client-key-data' is not base64")
		with(function(_, _, context) context.user = "y" end, "there is no user 'y'")
		with(function(_, _, context) context.cluster = nil end, "context 'x': no cluster")
	end)

	it("may name nobody to act as, by empty fields", function()
		local config = document()
		local user = config.users[1].user
		user.as, user["as-uid"], user["as-groups"], user["as-user-extra"] = "", "", {}, {}
		assert.equal("secret-token", resolve(cjson.encode(config)).token)
		user["as-groups"] = { "admin" }
		fails("user 'x': 'as-groups' is not supported", resolve, cjson.encode(config))
		user["as-groups"], user["as-user-extra"] = nil, { scopes = { "all" } }
		fails("user 'x': 'as-user-extra' is not supported", resolve, cjson.encode(config))
	end)

	it("may contain itself in YAML", function()
		assert.equal("https://x", resolve([[
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: &c {server: "https://x", itself: *c}}]
users: [{name: x, user: {token: t, extra: *c}}]
]]).server)
	end)

	describe("is bounded", function()
		-- Nests `inner` in so many levels, the outermost mapping included, as JSON, which is YAML, too.
		local function nested(levels, inner)
			return '{"extra": ' .. ("["):rep(levels - 1) .. inner .. ("]"):rep(levels - 1) .. "}"
		end

		-- The functions of the parsers must not be called.
		local function unparsed(f, ...)
			local loaded = {}
			for _, module in ipairs { "cjson", "lyaml" } do
				loaded[module] = package.loaded[module]
				package.loaded[module] = setmetatable({}, { __index = function(_, name)
					return name ~= "null" and function() error("was parsed") end or nil
				end })
			end
			local ok, message = pcall(f, ...)
			for module, library in pairs(loaded) do
				package.loaded[module] = library
			end
			assert(ok, message)
		end

		local function load(text)
			return kubeconfig.load { write("config", text) }
		end

		it("in size, which is checked before all of it is read", function()
			local text = yaml .. "#" .. ("x"):rep(1024 * 1024 - #yaml - 1)
			assert.equal("secret-token", resolve(text).token)
			unparsed(fails, folder .. ".config: larger than 1048576 bytes", load, text .. "x")
			unparsed(fails, "/dev/zero: larger than 1048576 bytes", kubeconfig.load, { "/dev/zero" })
		end)

		it("in the depth of YAML, which is checked before a tree is built", function()
			load("# YAML\n" .. nested(100, "1"))
			for _, deep in ipairs { nested(101, "1"), nested(250000, "1"), ("- "):rep(101) .. "1",
				("["):rep(101), ("{a: "):rep(50000) } do
				unparsed(fails, folder .. ".config: nested deeper than 100 levels", load, "# YAML\n" .. deep)
			end
		end)

		it("in the depth of JSON", function()
			load(nested(100, "1"))
			fails(folder .. ".config: nested deeper than 100 levels", load, nested(101, "1"))
			fails(folder .. ".config: nested deeper than 100 levels", load, nested(250000, "1"))
		end)
	end)

	it("is refused if its client key is encrypted", function()
		local headers = {
			"-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n",
			"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nc2VjcmV0\n"
				.. "-----END RSA PRIVATE KEY-----\n",
		}
		for _, pem in ipairs(headers) do
			local config = document()
			config.users[1].user = { ["client-certificate"] = beside(write("crt", "-----BEGIN CERTIFICATE-----\n")),
				["client-key"] = beside(write("key", pem)) }
			fails("option 'client_key'", evrec.sink.kubernetes, { kubeconfig = write("config", cjson.encode(config)) })
		end
	end)

	it("may hold base64, which is decoded", function()
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

	it("is refused with the name of the package that reads it, if that is missing", function()
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
