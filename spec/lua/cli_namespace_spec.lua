-- The namespace that a command is about if none is named.
local cjson = require "cjson"
local kubernetes = require "evrec.kubernetes"
local tmpfiles = require "tmpfiles"

describe("the namespace without -n", function()
	local remove, path

	setup(function()
		local _, write
		_, write, remove = tmpfiles.new()
		path = write("config", cjson.encode {
			["current-context"] = "here",
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

	it("is refused without such a context or kubeconfig", function()
		assert.has_error(function() kubernetes.namespace { kubeconfig = path, context = "none" } end,
			path .. ": there is no context 'none'")
		assert.has_error(function() kubernetes.namespace { kubeconfig = path .. ".not" } end)
	end)
end)
