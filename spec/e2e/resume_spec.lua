-- A crash loop: each process goes on with the series of the ones before it.
local cluster = require "cluster"
local fixtures = require "fixtures"

describe("resume", function()
	if not cluster.dir then
		pending "skipped: the accounts of $KUBECONFIG are not known"
		return
	end

	local namespace, script = nil, cluster.scratch .. "/resume.lua"

	setup(function() namespace = cluster.namespace() end)
	teardown(function() cluster.delete_namespace(namespace) end)
	before_each(function() cluster.clear(namespace) end)

	--- Runs a process that records `n` events, and whose end is the code `ending`. Returns what it printed.
	local function live(instance, n, options, ending)
		local connection = cluster.connection(options.account or "admin")
		cluster.write(script, ([[
			local evrec = require "evrec"
			local b = evrec.broadcaster { on_error = function(message, name) print(name .. ": " .. message) end }
			b:start_recording_to_sink(evrec.sink.kubernetes {
				server = %q, token = %q, ca_file = %q, api = %q, correlate = "series", resume = true, resume_instances = { %q },
			})
			local r = b:new_recorder { component = %q, instance = %q }
			for _ = 1, %d do
				assert(r:event({ kind = "Pod", namespace = %q, name = "web" }, "Warning", "BackOff", "crashed"))
			end
			%s
		]]):format(connection.server, connection.token, connection.ca_file, options.api or "events.k8s.io/v1",
			options.instances or "nobody", namespace, instance, n, namespace, ending or "assert(b:shutdown(20))"))
		return (cluster.run { fixtures.lua, script })
	end

	local function check_one(count)
		local events = cluster.events(namespace)
		assert.equal(1, #events)
		assert.equal(count, events[1].series.count)
		assert.equal("web", events[1].involvedObject.name)
		return events[1]
	end

	it("keeps a crash loop of ten processes, each on another host, one event", function()
		for i = 1, 10 do
			assert.equal("", live("host-" .. i, i, { instances = "host-*" }))
		end
		assert.equal("host-1", check_one(55).reportingInstance)
		assert.matches("BackOff", cluster.kubectl("get", "events", "-n", namespace))
	end)

	it("goes on under the same instance, with one event in each life, killed after it", function()
		for _ = 1, 5 do
			live("same", 1, {}, "assert(b:flush(20)); os.execute 'kill -9 $PPID'")
		end
		check_one(5)
	end)

	it("goes on by core/v1 too", function()
		for _ = 1, 3 do
			assert.equal("", live("core", 2, { api = "v1" }))
		end
		check_one(6)
	end)

	it("leaves other instances alone", function()
		live("one", 2, {})
		live("two", 2, { instances = "three" })
		assert.equal(2, cluster.count(namespace))
	end)

	it("reads more events than one page has", function()
		live("many", 1, {}, ([[
			for i = 1, 1200 do
				assert(r:event({ kind = "Pod", namespace = %q, name = "pod-" .. i }, "Normal", "Started", "m"))
			end
			assert(b:shutdown(60))
		]]):format(namespace))
		assert.equal(1201, cluster.count(namespace))
		assert.equal("", live("many", 1, {}))
		assert.equal(1201, cluster.count(namespace))
	end)

	it("says once that an account may not list, and records", function()
		local said = live("recorder", 2, { account = "recorder" })
		assert.equal("forbidden: kubernetes: resume: listing events is forbidden (list events.events.k8s.io); "
			.. "series begin anew\n", said)
		check_one(2)
	end)
end)
