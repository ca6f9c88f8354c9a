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
				state_file = %s,
			})
			local r = b:new_recorder { component = %q, instance = %q }
			for _ = 1, %d do
				assert(r:event({ kind = "Pod", namespace = %q, name = "web" }, "Warning", "BackOff", "crashed"))
			end
			%s
		]]):format(connection.server, connection.token, connection.ca_file, options.api or "events.k8s.io/v1",
			options.instances or "nobody", options.state_file and ("%q"):format(options.state_file) or "nil", namespace,
			instance, n, namespace, ending or "assert(b:shutdown(20))"))
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

	describe("with a state_file", function()
		local options = { state_file = cluster.scratch .. "/resume.state" }

		local function copy(from, to)
			assert.is_true(select(2, cluster.run { "cp", from, to }))
		end

		before_each(function() os.remove(options.state_file) end)

		it("counts once what the server and the file know", function()
			for i = 1, 3 do
				assert.equal("", live("both", 2, options))
				check_one(2 * i)
			end
			-- The file is at most a second behind.
			live("both", 2, options, "assert(b:flush(20)); os.execute 'sleep 2; kill -9 $PPID'")
			assert.equal("", live("both", 2, options))
			check_one(10)
		end)

		it("goes on with the server's count if the file is older", function()
			local older = options.state_file .. ".older"
			assert.equal("", live("both", 2, options))
			copy(options.state_file, older)
			assert.equal("", live("both", 3, options))
			check_one(5)
			copy(older, options.state_file)
			-- The list comes with the first write, before the event is seen again.
			live("both", 0, options, ([[
				local object = { kind = "Pod", namespace = %q, name = "web" }
				r:event({ kind = "Pod", namespace = object.namespace, name = "other" }, "Normal", "Started", "m")
				assert(b:flush(20))
				r:event(object, "Warning", "BackOff", "crashed")
				assert(b:shutdown(20))
			]]):format(namespace))
			cluster.kubectl("delete", "events", "-n", namespace, "--field-selector=involvedObject.name=other")
			check_one(6)
		end)

		it("goes on with the file's count if the process was killed before it wrote that", function()
			live("both", 2, options, ([[
				assert(b:flush(20))
				for _ = 1, 5 do
					r:event({ kind = "Pod", namespace = %q, name = "web" }, "Warning", "BackOff", "crashed")
				end
				os.execute "sleep 2; kill -9 $PPID"
			]]):format(namespace))
			check_one(2)
			assert.equal("", live("both", 1, options))
			check_one(8)
		end)

		it("goes on with the server's count if the file is gone", function()
			assert.equal("", live("both", 2, options))
			os.remove(options.state_file)
			assert.equal("", live("both", 2, options))
			check_one(4)
		end)
	end)

	it("says once that an account may not list, and records", function()
		local said = live("recorder", 2, { account = "recorder" })
		assert.equal("forbidden: kubernetes: resume: listing events is forbidden (list events.events.k8s.io); "
			.. "series begin anew\n", said)
		check_one(2)
	end)
end)
