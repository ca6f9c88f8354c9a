-- A C program in a pod: its service account is a folder, and its environment names the API server.
local cluster = require "cluster"

describe("a C program with a pod's service account", function()
	if not cluster.dir then
		pending "skipped: the specs know no token for the cluster of $KUBECONFIG"
		return
	end

	local namespace, account = nil, cluster.scratch .. "/c-account"

	setup(function()
		namespace = cluster.namespace()
		cluster.run { "mkdir", "-p", account }
		cluster.write(account .. "/token", cluster.connection().token .. "\n")
		cluster.write(account .. "/ca.crt", cluster.read(cluster.dir .. "/server-ca.crt"))
	end)
	teardown(function() cluster.delete_namespace(namespace) end)

	local function run(environment)
		return cluster.run({ "build/examples/c/in_cluster", namespace, "web-0", account }, environment)
	end

	it("records to the cluster's API server", function()
		local host, port = cluster.connection().server:match "^https://(.-):(%d+)$"
		local output, ok = run(("env KUBERNETES_SERVICE_HOST=%s KUBERNETES_SERVICE_PORT=%s"):format(host, port))
		assert.is_true(ok, output)
		assert.equal("", output)
		local events = cluster.events(namespace)
		assert.equal(1, #events)
		assert.equal("Started without Lua", events[1].message)
		assert.equal("in-cluster", events[1].source.component)
		assert.equal(1, events[1].count)
	end)

	it("says which variable is missing", function()
		local output, ok = run "env -u KUBERNETES_SERVICE_HOST"
		assert.is_false(ok)
		assert.matches("KUBERNETES_SERVICE_HOST is not set", output)
	end)
end)
