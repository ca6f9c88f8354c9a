-- The namespace that a command is about if none is named.
local cjson = require "cjson"
local command = require "command"
local kubernetes = require "evrec.kubernetes"
local tmpfiles = require "tmpfiles"

describe("the namespace without -n", function()
	local remove, path

	setup(function()
		local _, write
		_, write, remove = tmpfiles.new()
		path = write("config", cjson.encode {
			["current-context"] = "here",
			clusters = { { name = "c", cluster = { server = "https://server:6443" } } },
			contexts = {
				{ name = "here", context = { cluster = "c", namespace = "shop" } },
				{ name = "plain", context = { cluster = "c" } },
			},
		})
	end)
	teardown(function() remove() end)

	it("is the context's, else default", function()
		assert.equal("shop", kubernetes.namespace { kubeconfig = path })
		assert.equal("shop", kubernetes.namespace { kubeconfig = path, context = "here" })
		assert.equal("default", kubernetes.namespace { kubeconfig = path, context = "plain" })
	end)

	it("is found in a pipe that was read for the server before", function()
		local script = [[
			local kubernetes, given = require "evrec.kubernetes", { kubeconfig = arg[1] }
			print(kubernetes.server(given), kubernetes.namespace(given))
		]]
		for _, name in ipairs { "<(cat \"$3\")", "/dev/stdin < <(cat \"$3\")" } do
			assert.same({ 0, "https://server:6443\tshop\n", "" }, { command.shell(
				'"$1" <(echo "$2") ' .. name, command.interpreter, script, path) })
		end
	end)

	it("is refused without such a context or kubeconfig", function()
		assert.has_error(function() kubernetes.namespace { kubeconfig = path, context = "none" } end,
			path .. ": there is no context 'none'")
		assert.has_error(function() kubernetes.namespace { kubeconfig = path .. ".not" } end)
	end)
end)
