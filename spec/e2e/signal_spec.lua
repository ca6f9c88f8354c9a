-- A process that is stopped by SIGTERM, as Kubernetes stops a container, writes its events or leaves them in its spool.
local cluster = require "cluster"
local evrec = require "evrec"
local fixtures = require "fixtures"

describe("on_signal", function()
	if not cluster.dir then
		pending "skipped: $KUBECONFIG is a cluster that these specs may not freeze"
		return
	end

	local namespace, spool, script = nil, cluster.scratch .. "/signal-spool", cluster.scratch .. "/signal.lua"

	setup(function() namespace = cluster.namespace() end)
	teardown(function() cluster.delete_namespace(namespace) end)
	before_each(function()
		cluster.clear(namespace)
		os.execute(("rm -rf '%s'"):format(spool))
	end)

	--- Runs a process that records 500 events, to be ended by SIGTERM while it passes the time. Returns its status.
	local function die(timeout, pastime)
		local connection = cluster.connection()
		cluster.write(script, ([[
			local evrec = require "evrec"
			local b = evrec.broadcaster {}
			b:start_recording_to_sink(evrec.sink.kubernetes { server = %q, token = %q, ca_file = %q, spool = %q })
			local r = b:new_recorder { component = "signal" }
			assert(evrec.on_signal { "TERM", timeout = %g })
			for i = 1, 500 do
				assert(r:event({ kind = "Pod", namespace = %q, name = "pod-" .. i }, "Normal", "Stopped", "m"))
			end
			print "ready"
			io.stdout:flush()
			%s
		]]):format(connection.server, connection.token, connection.ca_file, spool, timeout, namespace, pastime))
		return fixtures.end_by_signal(script, "SIGTERM")
	end

	it("writes all events, whatever the script is doing", function()
		for _, pastime in ipairs { "repeat until os.time() == 0", "os.execute 'sleep 60'", "io.read()" } do
			cluster.clear(namespace)
			assert.equal(-15, die(30, pastime))
			assert.equal(500, cluster.count(namespace))
		end
	end)

	it("leaves the events of a frozen server in the spool, from which the next process delivers them", function()
		cluster.control "freeze"
		local status = die(0.5, "io.read()")
		cluster.control "thaw"
		assert.equal(-15, status)
		local options = cluster.connection()
		options.spool = spool
		local b = evrec.broadcaster {}
		b:start_recording_to_sink(evrec.sink.kubernetes(options))
		local ok, stats = b:shutdown(60)
		assert.is_true(ok)
		assert.equal(500, stats.restored)
		assert.equal(500, cluster.count(namespace))
	end)
end)
