-- Credential plugins before an API server: tokens and client certificates that a command prints. Needs a cluster of its
-- own.
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"

describe("a credential plugin", function()
	local namespace, folder, errors

	if not cluster.dir then
		pending "skipped: $KUBECONFIG is a cluster whose tokens these specs do not know"
		return
	end

	setup(function()
		namespace, folder = cluster.namespace(), cluster.scratch .. "/exec plugin"
		cluster.run { "mkdir", "-p", folder }
		cluster.write(folder .. "/plugin", [[
#!/bin/sh
cd "${0%/*}" && echo "$*" >>runs && cat credential && [ "$KUBERNETES_EXEC_INFO" ] && exit "$EXIT"
]])
		cluster.run { "chmod", "700", folder .. "/plugin" }
		local config = cjson.decode(cluster.read(cluster.dir .. "/kubeconfig.json"))
		config.users[1].user = { exec = {
			command = "./plugin", args = { "one argument", "$(two)" }, env = { { name = "EXIT", value = "0" } },
			apiVersion = "client.authentication.k8s.io/v1", interactiveMode = "Never", provideClusterInfo = true,
		} }
		cluster.write(folder .. "/config", cjson.encode(config))
	end)
	teardown(function() cluster.delete_namespace(namespace) end)

	--- From now on the plugin prints a credential that lives for that many seconds (nil: it does not say).
	local function set_credential(status, life)
		status.expirationTimestamp = life and os.date("!%Y-%m-%dT%H:%M:%SZ", os.time() + life)
		cluster.write(folder .. "/new", cjson.encode {
			kind = "ExecCredential", apiVersion = "client.authentication.k8s.io/v1", status = status,
		})
		cluster.run { "mv", folder .. "/new", folder .. "/credential" }
	end

	local function runs()
		local text = cluster.read(folder .. "/runs")
		local _, n = text:gsub("one argument %$%(two%)\n", "")
		assert.equal(#text, n * #"one argument $(two)\n")
		return n
	end

	local function start(drive)
		errors = {}
		cluster.write(folder .. "/runs", "")
		local b = evrec.broadcaster { drive = drive, on_error = function(message, name)
			errors[name] = (errors[name] or 0) + 1
			errors.last = message
		end }
		b:start_recording_to_sink(evrec.sink.kubernetes {
			kubeconfig = folder .. "/config", allow_exec = { folder .. "/plugin" },
		})
		return b, b:new_recorder { component = "exec" }
	end

	local function record(r, name)
		assert.is_true(r:event({ kind = "Pod", namespace = namespace, name = name }, "Normal", "Exec", "m"))
	end

	local function is_there(name)
		return cluster.kubectl("get", "events", "-n", namespace, "-o", "name"):find(name, 1, true) ~= nil
	end

	local function token(account)
		return { token = cluster.connection(account).token }
	end

	--- A certificate of the cluster's authority for clients.
	local function certificate(name)
		local pki, path = cluster.dir .. "/pki/", folder .. "/" .. name
		local output, ok = cluster.run { "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
			"ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout", path .. ".key", "-out", path .. ".crt",
			"-subj", "/CN=" .. name, "-CA", pki .. "client-ca.crt", "-CAkey", pki .. "client-ca.key",
			"-addext", "extendedKeyUsage=clientAuth" }
		assert(ok, output)
		return { clientCertificateData = cluster.read(path .. ".crt"), clientKeyData = cluster.read(path .. ".key") }
	end

	for _, drive in ipairs { "thread", "poll" } do
		it("gives a token, run by " .. drive, function()
			set_credential(token())
			local b, r = start(drive)
			b:poll()
			assert.equal(0, runs())
			record(r, "by-token-" .. drive)
			assert.is_true(b:shutdown(10))
			assert.is_true(is_there("by-token-" .. drive))
			assert.equal(1, runs())
			assert.same({}, errors)
		end)

		it("gives another token before the first one runs out, run by " .. drive, function()
			set_credential(token(), 4)
			local b, r = start(drive)
			record(r, "expiring")
			assert.is_true(b:flush(10))
			set_credential(token())
			local n = 0
			while runs() == 1 do
				n = n + 1
				record(r, "expiring-" .. n)
				assert.is_true(b:flush(10))
			end
			local ok, stats = b:shutdown(10)
			assert.is_true(ok)
			assert.equal(n + 1, stats.created)
			assert.equal(0, stats.retries)
			assert.equal(2, runs())
			assert.same({}, errors)
		end)

		it("gives another token after a 401, run by " .. drive, function()
			set_credential { token = "expired" }
			local b, r = start(drive)
			record(r, "after-401-" .. drive)
			while not errors.unauthorized do
				b:flush(0.05)
			end
			set_credential(token())
			assert.is_true(b:shutdown(20))
			assert.is_true(is_there("after-401-" .. drive))
			assert.equal(1, errors.unauthorized)
		end)

		it("is reported if it fails, and run again, by " .. drive, function()
			cluster.run { "rm", folder .. "/credential" }
			local b, r = start(drive)
			record(r, "after-failure-" .. drive)
			while not errors.unauthorized do
				b:flush(0.05)
			end
			assert.matches("^kubernetes: exec plugin '.*/plugin': exit status 1: cat: credential: No such file", errors.last)
			set_credential(token())
			local ok, stats = b:shutdown(20)
			assert.is_true(ok)
			assert.equal(0, stats.retries)
			assert.is_true(is_there("after-failure-" .. drive))
		end)

		it("gives client certificates, each on connections of its own, run by " .. drive, function()
			set_credential({ clientCertificateData = cluster.read(cluster.dir .. "/client.crt"),
				clientKeyData = cluster.read(cluster.dir .. "/client.key") }, 4)
			local b, r = start(drive)
			record(r, "by-certificate")
			assert.is_true(b:flush(10))
			assert.same({}, errors)
			set_credential(certificate "stranger")
			local n = 0
			while not errors.forbidden do
				n = n + 1
				record(r, "by-certificate-" .. n)
				b:flush(10) -- false for the event that is refused
			end
			assert.matches("User \"stranger\" cannot create", errors.last)
			local _, stats = b:shutdown(0)
			assert.equal(1, stats.dropped.forbidden)
			assert.equal(0, stats.retries) -- its answer is not doubted, as if the server had just started
			assert.equal(n, stats.created) -- all but the last one, and the one before the loop
			assert.is_true(runs() >= 2, runs()) -- a slow machine sees the first certificate expire twice
		end)
	end
end)
