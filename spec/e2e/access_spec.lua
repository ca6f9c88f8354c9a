-- Credentials for an API server, and recording while the server is away. Needs a cluster of its own.
local cluster = require "cluster"
local evrec = require "evrec"

describe("access to an API server", function()
	local namespace, errors

	local function start(sink_options)
		errors = {}
		local b = evrec.broadcaster { on_error = function(_, name) errors[name] = (errors[name] or 0) + 1 end }
		b:start_recording_to_sink(evrec.sink.kubernetes(sink_options))
		return b, b:new_recorder { component = "access" }
	end

	local function record(r, name)
		return r:event({ kind = "Pod", namespace = namespace, name = name }, "Normal", "Access", "m")
	end

	--- Records one event with these options; returns whether it is there afterwards.
	local function delivers(sink_options, name)
		local b, r = start(sink_options)
		assert.is_true(record(r, name))
		assert.is_true(b:shutdown(10))
		return cluster.kubectl("get", "events", "-n", namespace, "-o", "name"):find(name, 1, true) ~= nil
	end

	if not cluster.dir then
		pending "skipped: $KUBECONFIG is a cluster that these specs may not freeze or restart"
		return
	end

	setup(function() namespace = cluster.namespace() end)
	teardown(function() cluster.delete_namespace(namespace) end)

	it("needs the right to create and patch events, and no other", function()
		local output, ok = cluster.run { "kubectl", "--context=recorder", "get", "events", "-n", namespace }
		assert.is_false(ok)
		assert.matches("Forbidden", output)
		assert.is_true(delivers({ context = "recorder" }, "by-recorder"))
	end)

	it("works with explicit options", function()
		assert.is_true(delivers(cluster.connection(), "by-options"))
	end)

	it("works with a kubeconfig in YAML", function()
		assert.is_true(delivers({ kubeconfig = cluster.dir .. "/kubeconfig.yaml" }, "by-yaml"))
	end)

	it("works with a client certificate", function()
		assert.is_true(delivers({
			server = cluster.connection().server, ca_file = cluster.connection().ca_file,
			client_certificate = cluster.dir .. "/client.crt", client_key = cluster.dir .. "/client.key",
		}, "by-certificate"))
	end)

	it("works with the service account inside a cluster", function()
		local account = cluster.scratch .. "/account"
		cluster.run { "mkdir", "-p", account }
		cluster.write(account .. "/token", cluster.connection().token .. "\n")
		cluster.write(account .. "/ca.crt", cluster.read(cluster.dir .. "/server-ca.crt"))
		local host, port = cluster.connection().server:match "^https://(.-):(%d+)$"
		local path = cluster.scratch .. "/in_cluster.lua"
		cluster.write(path, ([[
			local evrec = require "evrec"
			local b = evrec.broadcaster {}
			b:start_recording_to_sink(evrec.sink.kubernetes { service_account = %q })
			local r = b:new_recorder { component = "access" }
			r:event({ kind = "Pod", namespace = %q, name = "in-cluster" }, "Normal", "Access", "m")
			assert(b:shutdown(10))
		]]):format(account, namespace))
		local lua = _G.jit and "luajit" or ("lua" .. _VERSION:match "%d%.%d")
		local output, ok = cluster.run({ lua, path }, ("env KUBERNETES_SERVICE_HOST=%s KUBERNETES_SERVICE_PORT=%s"):format(
			host, port))
		assert.is_true(ok, output)
		assert.matches("in%-cluster", cluster.kubectl("get", "events", "-n", namespace, "-o", "name"))
	end)

	it("works again when a token file is written anew", function()
		local options, path = cluster.connection(), cluster.scratch .. "/token"
		cluster.write(path, "expired-token")
		local token = options.token
		options.token, options.token_file = nil, path
		local b, r = start(options)
		assert.is_true(record(r, "by-token-file"))
		while not errors.unauthorized do
			b:flush(0.05)
		end
		cluster.write(path, token .. "\n")
		assert.is_true(b:shutdown(20))
		assert.matches("by%-token%-file", cluster.kubectl("get", "events", "-n", namespace, "-o", "name"))
	end)

	it("is reported once if it is forbidden", function()
		local options = cluster.connection()
		options.token = cluster.read(cluster.dir .. "/nobody.token"):match "%S+"
		local b, r = start(options)
		for i = 1, 5 do
			assert.is_true(record(r, "forbidden-" .. i))
		end
		local ok, stats, message = b:shutdown(10)
		assert.is_false(ok)
		assert.matches("^5 events were not written: forbidden; the last error was forbidden: POST: 403: ", message)
		assert.equal(5, stats.dropped.forbidden)
		assert.equal(1, errors.forbidden)
	end)

	it("fails if the server's certificate is of another authority, unless insecure_skip_tls_verify is set", function()
		local options = cluster.connection()
		options.ca_file = nil
		local b, r = start(options)
		assert.is_true(record(r, "wrong-certificate"))
		while not errors.transport do
			b:flush(0.05)
		end
		local ok, stats = b:shutdown(0)
		assert.is_false(ok)
		assert.equal(1, stats.dropped.closed)
		options.insecure_skip_tls_verify = true
		assert.is_true(delivers(options, "unverified"))
	end)

	it("may stall without stalling the recorder, and no event is lost", function()
		local b, r = start(cluster.connection())
		assert.is_true(record(r, "before"))
		assert.is_true(b:flush(10))
		cluster.control "freeze"
		for i = 1, 200 do
			assert.is_true(record(r, "frozen-" .. i))
		end
		assert.is_false(b:flush(0.2))
		cluster.control "thaw"
		local ok, stats = b:shutdown(30)
		assert.is_true(ok)
		assert.equal(201, stats.created)
	end)

	it("works again after a restart of the server", function()
		local b, r = start(cluster.connection())
		assert.is_true(record(r, "restart-before"))
		assert.is_true(b:flush(10))
		cluster.control "restart"
		assert.is_true(record(r, "restart-after"))
		assert.is_true(record(r, "restart-before"))
		assert.is_true(b:shutdown(30))
		local names = cluster.kubectl("get", "events", "-n", namespace, "-o", "name")
		assert.matches("restart%-after", names)
	end)
end)
