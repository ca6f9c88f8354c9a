-- Credential plugins of kubeconfigs: which are allowed, and what the core gets of them.
local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"
local kubeconfig = require "evrec.kubeconfig"
local tmpfiles = require "tmpfiles"

local v1 = "client.authentication.k8s.io/v1"

describe("a kubeconfig's exec", function()
	local folder, write, remove, plugin

	before_each(function()
		folder, write, remove = tmpfiles.new()
		plugin = { command = "aws", apiVersion = v1 }
	end)
	after_each(function() remove() end)

	local function document(cluster, user)
		return {
			["current-context"] = "x",
			contexts = { { name = "x", context = { cluster = "x", user = "x" } } },
			clusters = { { name = "x", cluster = cluster or { server = "https://x" } } },
			users = { { name = "x", user = user or { exec = plugin } } },
		}
	end

	local function resolve(allowed, cluster, user)
		local path = write("config", cjson.encode(document(cluster, user)))
		return kubeconfig.resolve(kubeconfig.load { path }, nil, nil, allowed).exec
	end

	local function fails(part, f, ...)
		local ok, message = pcall(f, ...)
		assert.is_false(ok)
		assert.truthy(fixtures.has(message, part), message)
	end

	it("is passed on if its command is allowed", function()
		assert.same({ command = "aws", args = {}, env = {}, api_version = v1, provide_cluster_info = false },
			resolve { "gke", "aws" })
		plugin.args = { "eks", "a b", "$(id)" }
		plugin.env = { { name = "A", value = "1" }, { name = "B", value = "" } }
		plugin.interactiveMode, plugin.installHint = "IfAvailable", "install it"
		assert.same({ command = "aws", args = { "eks", "a b", "$(id)" }, env = { "A", "1", "B", "" }, api_version = v1,
			provide_cluster_info = false, install_hint = "install it" }, resolve { "aws" })
	end)

	it("is refused if its command is not allowed, with the option that would allow it", function()
		local message = "user 'x': 'exec' runs the command 'aws', which must be allowed by the option allow_exec = { "
			.. '"aws" }'
		fails(message, resolve)
		fails(message, resolve, {})
		fails(message, resolve, { "aw", "aws2", "/usr/bin/aws", "AWS" })
	end)

	it("allows a path by exactly that path, and a name by that name alone", function()
		local here = folder:match "^(.*/)"
		plugin.command = "/evil/aws"
		fails("allow_exec = { \"/evil/aws\" }", resolve, { "aws", "evil/aws", "./aws" })
		assert.equal("/evil/aws", resolve({ "/evil/aws" }).command)
		plugin.command = "./aws"
		fails(("allow_exec = { %q }"):format(here .. "aws"), resolve, { "aws", "./aws" })
		assert.equal(here .. "aws", resolve({ here .. "aws" }).command)
		plugin.command = "../bin/aws"
		assert.equal(here .. "../bin/aws", resolve({ here .. "../bin/aws" }).command)
	end)

	it("has a path beside a kubeconfig that is named without a folder", function()
		local open, path = io.open, nil
		local function here(command, allowed)
			plugin.command = command
			path = write("config", cjson.encode(document()))
			io.open = function(name, mode) return open(name == "config" and path or name, mode) end -- luacheck: ignore 122
			local ok, config = pcall(kubeconfig.load, { "config" })
			io.open = open -- luacheck: ignore 122
			assert.is_true(ok, config)
			return kubeconfig.resolve(config, nil, nil, allowed).exec
		end
		fails('allow_exec = { "./aws" }', here, "./aws", { "aws" })
		assert.equal("./aws", here("./aws", { "./aws" }).command)
		assert.equal("./aws", here(".//aws", { "./aws" }).command)
		assert.equal("bin/aws", here("./bin/aws", { "bin/aws" }).command)
		assert.equal("aws", here("aws", { "aws" }).command)
	end)

	it("is not used beside a token, nor if the script gives credentials", function()
		assert.is_nil(resolve(nil, nil, { exec = plugin, token = "t" }))
		assert.is_nil(resolve(nil, nil, { exec = plugin, tokenFile = "/t" }))
		evrec.sink.kubernetes { kubeconfig = write("config", cjson.encode(document())), token = "t" }
	end)

	it("is refused in HAProxy, which may start no process", function()
		_G.core = { register_task = function() end }
		local ok, message = pcall(resolve, { "aws" })
		_G.core = nil
		assert.is_false(ok)
		assert.truthy(fixtures.has(message, "HAProxy may start no process"), message)
	end)

	it("is refused if it needs a terminal, or is malformed", function()
		local function with(key, value, part)
			local old = plugin[key]
			plugin[key] = value
			fails(part, resolve, { "aws", "" })
			plugin[key] = old
		end
		with("command", "", "user 'x': exec: no command")
		with("command", cjson.null, "exec: no command")
		with("command", 5, "exec: command: expected a string, got a number")
		with("interactiveMode", "Always", "exec: interactiveMode is Always, but there is no terminal")
		with("interactiveMode", "always", "exec: interactiveMode: expected Never, IfAvailable or Always")
		with("args", "x", "exec: args: expected a table, got a string")
		with("args", { "x", 5 }, "exec: args[2]: expected a string, got a number")
		with("args", { x = "y" }, "exec: args: expected a list")
		with("env", { "A=1" }, "exec: env[1]: expected a table, got a string")
		with("env", { { name = "A" } }, "exec: env[1].value: expected a string, got a nil")
		with("env", { { value = "A" } }, "exec: env[1].name: expected a string, got a nil")
		with("apiVersion", 1, "exec: apiVersion: expected a string")
		with("provideClusterInfo", "yes", "exec: provideClusterInfo: expected a boolean")
	end)

	it("gets the cluster's extension if it wants to", function()
		local extension = { text = 'a"b\\\n\127\195\164', number = 1.5, integer = 10, yes = true, list = { 1, "x" },
			map = {} }
		local cluster = { server = "https://x", extensions = {
			{ name = "other", extension = { a = 1 } },
			{ name = "client.authentication.k8s.io/exec", extension = extension },
		} }
		assert.is_nil(resolve({ "aws" }, cluster).cluster_config)
		plugin.provideClusterInfo = true
		local exec = resolve({ "aws" }, cluster)
		assert.is_true(exec.provide_cluster_info)
		assert.same(extension, cjson.decode(exec.cluster_config))
		assert.truthy(fixtures.has(exec.cluster_config, '"integer":10'))
		cluster.extensions[2].extension = ("x"):rep(65536)
		fails("extension for plugins: too large", resolve, { "aws" }, cluster)
	end)

	it("has an empty argument for a null, as in client-go, and passes on the nulls of an extension's list", function()
		local cluster = { server = "https://x", extensions = {
			cjson.null,
			{ name = "client.authentication.k8s.io/exec", extension = { 1, cjson.null, { cjson.null }, cjson.null } },
		} }
		plugin.args, plugin.provideClusterInfo = { cjson.null, "a", cjson.null }, true
		local exec = resolve({ "aws" }, cluster)
		assert.same({ "", "a", "" }, exec.args)
		assert.equal("[1,null,[null],null]", exec.cluster_config)
		plugin.args = { {} }
		fails("exec: args[1]: expected a string, got a table", resolve, { "aws" })
	end)

	it("is bounded if its extension contains itself in YAML, or much in a few words", function()
		local function load(extension)
			local path = write("config", ([[
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "https://x",
  extensions: [{name: client.authentication.k8s.io/exec, extension: %s}]}}]
users: [{name: x, user: {exec: {command: aws, provideClusterInfo: true}}}]
]]):format(extension))
			return kubeconfig.resolve(kubeconfig.load { path }, "x", nil, { "aws" })
		end
		fails("extension for plugins: nested too deep", load, "&a {a: *a}")
		local ten = { "&a [x, x, x, x, x, x, x, x, x, x]" }
		for i, name in ipairs { "b", "c", "d", "e" } do
			local alias = ("*" .. ("abcd"):sub(i, i) .. ", "):rep(10)
			ten[#ten + 1] = ("&%s [%s]"):format(name, alias)
		end
		fails("extension for plugins: too large", load, "[" .. table.concat(ten, ", ") .. "]")
	end)

	describe("with the core", function()
		local function sink(options)
			options.kubeconfig = write("config", cjson.encode(document()))
			return evrec.sink.kubernetes(options)
		end

		it("is found when the sink is made, or refused with its hint", function()
			plugin.command, plugin.args, plugin.env = "sh", { "-c" }, { { name = "A", value = "b" } }
			assert.truthy(sink { allow_exec = { "sh" } })
			plugin.command, plugin.installHint = "evrec-has-no-such-plugin", "apt install it"
			fails("'evrec-has-no-such-plugin' is not in a folder of $PATH; apt install it", sink,
				{ allow_exec = { "evrec-has-no-such-plugin" } })
			plugin.command, plugin.apiVersion = "sh", "client.authentication.k8s.io/v1alpha1"
			fails("option 'exec': api_version: expected " .. v1, sink, { allow_exec = { "sh" } })
			plugin.apiVersion = nil
			fails("option 'exec': api_version: expected " .. v1, sink, { allow_exec = { "sh" } })
			plugin.apiVersion, plugin.args = v1, { "a\0b" }
			fails("option 'exec': args: a NUL byte", sink, { allow_exec = { "sh" } })
		end)

		it("checks allow_exec", function()
			fails("option 'allow_exec': expected a table, got string", sink, { allow_exec = "aws" })
			fails("option 'allow_exec': expected a list of commands", sink, { allow_exec = { "aws", 5 } })
			fails("option 'allow_exec': expected a list of commands", sink, { allow_exec = { "" } })
			fails("option 'allow_exec': expected a list of commands", sink, { allow_exec = { aws = true } })
			fails("option 'allow_exec': not together with 'server'", evrec.sink.kubernetes,
				{ server = "https://x", allow_exec = { "aws" } })
		end)

		it("reads the table that kubernetes.lua makes", function()
			local core = require "evrec.core"
			local function with(exec, part)
				fails(part, core.sink_kubernetes, { server = "https://x" }, exec)
			end
			local good = { command = "sh", args = {}, env = {}, api_version = v1, provide_cluster_info = false }
			assert.truthy(core.sink_kubernetes({ server = "https://x" }, good))
			with(5, "table expected")
			with({}, "provide_cluster_info: expected a boolean")
			for _, wrong in ipairs { { "command", 5, "a string" }, { "args", "x", "a list" }, { "args", { 5 }, "strings" },
				{ "env", { "a", false }, "strings" }, { "cluster_config", {}, "a string" } } do
				local old = good[wrong[1]]
				good[wrong[1]] = wrong[2]
				with(good, wrong[1] .. ": expected " .. wrong[3])
				good[wrong[1]] = old
			end
		end)
	end)
end)
