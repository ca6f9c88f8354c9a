-- Records from Lua into a real API server, and reads back with kubectl.
local cluster = require "cluster"
local evrec = require "evrec"

describe("recording into an API server", function()
	local namespace, errors, drops

	local function start(options, sink_options)
		errors, drops = {}, {}
		options = options or {}
		options.on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end
		options.on_drop = function(_, why) drops[#drops + 1] = why end
		local b = evrec.broadcaster(options)
		b:start_recording_to_sink(evrec.sink.kubernetes(sink_options or {}))
		return b, b:new_recorder { component = "e2e", host = "here" }
	end

	local function pod(name)
		return { kind = "Pod", apiVersion = "v1", namespace = namespace, name = name }
	end

	setup(function() namespace = cluster.namespace() end)
	teardown(function() cluster.delete_namespace(namespace) end)
	before_each(function() cluster.clear(namespace) end)

	it("shows what kubectl shows of other components' events", function()
		local b, r = start()
		assert.is_true(r:event(pod "web-0", "Warning", "BackOff", 'quotes " and \226\130\172 and \255'))
		assert.is_true(r:annotated_eventf(pod "web-0", { team = "blue" }, "Normal", "Started", "in %d s", 3))
		assert.is_true(b:shutdown(10))
		local events = cluster.events(namespace)
		table.sort(events, function(x, y) return x.reason < y.reason end)
		assert.equal(2, #events)
		assert.equal('quotes " and \226\130\172 and \239\191\189', events[1].message)
		assert.equal("Warning", events[1].type)
		assert.equal("e2e", events[1].source.component)
		assert.equal("here", events[1].source.host)
		assert.equal("e2e", events[1].reportingComponent)
		assert.equal("web-0", events[1].involvedObject.name)
		assert.equal(1, events[1].count)
		assert.matches("^web%-0%.%x+$", events[1].metadata.name)
		assert.equal("in 3 s", events[2].message)
		assert.equal("blue", events[2].metadata.annotations.team)
		assert.matches("BackOff +pod/web%-0", cluster.kubectl("get", "events", "-n", namespace))
	end)

	it("collapses duplicates and similar events as Kubernetes' own components do", function()
		local b, r = start()
		for i = 1, 4 do
			r:event(pod "same", "Normal", "Again", "the same")
			if i == 2 then
				assert.is_true(b:flush(10)) -- so that the rest are patches
			end
		end
		for i = 1, 14 do
			r:eventf(pod "similar", "Normal", "Similar", "message %d", i)
		end
		local ok, stats = b:shutdown(10)
		assert.is_true(ok)
		assert.is_true(stats.patched >= 1)
		local same, combined, single = nil, nil, 0
		for _, event in ipairs(cluster.events(namespace)) do
			if event.reason == "Again" then
				same = event
			elseif event.message:find "^%(combined from similar events%)" then
				combined = event
			else
				single = single + 1
			end
		end
		assert.equal(4, same.count)
		assert.equal(9, single)
		assert.equal(5, combined.count)
		assert.equal("(combined from similar events): message 14", combined.message)
	end)

	it("delivers 5,000 events about 5,000 objects, recorded in one loop", function()
		local b, r = start()
		for i = 1, 5000 do
			assert.is_true(r:event(pod("pod-" .. i), "Normal", "Created", "one of many"))
		end
		local ok, stats = b:shutdown(60)
		assert.is_true(ok)
		assert.equal(5000, stats.created)
		assert.equal(5000, cluster.count(namespace))
	end)

	it("creates an event again, with its whole count, if it was deleted meanwhile", function()
		local b, r = start()
		r:event(pod "gone", "Normal", "R", "m")
		assert.is_true(b:flush(10))
		cluster.clear(namespace)
		r:event(pod "gone", "Normal", "R", "m")
		assert.is_true(b:shutdown(10))
		local events = cluster.events(namespace)
		assert.equal(1, #events)
		assert.equal(2, events[1].count)
	end)

	it("keeps strange object names out of URLs", function()
		local names = { "../../secrets/x", "a/b", "%2e", "fe80::1", "..", "?x=1#y" }
		local b, r = start()
		for _, name in ipairs(names) do
			for _ = 1, 2 do
				assert.is_true(r:event(pod(name), "Normal", "Strange", "m"))
				assert.is_true(b:flush(10))
			end
		end
		assert.is_true(b:shutdown(10))
		local seen = {}
		for _, event in ipairs(cluster.events(namespace)) do
			assert.equal(2, event.count)
			assert.equal(36, #event.metadata.name)
			seen[event.involvedObject.name] = true
		end
		for _, name in ipairs(names) do
			assert.is_true(seen[name], name)
		end
	end)

	it("reports why the server rejected an event", function()
		local b, r = start()
		r:event({ kind = "Pod", namespace = "no-such-namespace", name = "x" }, "Normal", "R", "m")
		r:annotated_eventf(pod "x", { ["not a qualified name!"] = "v" }, "Normal", "R", "m")
		local ok, stats = b:shutdown(10)
		assert.is_false(ok)
		assert.equal(1, stats.dropped.not_found)
		assert.equal(1, stats.dropped.rejected)
		table.sort(drops)
		assert.same({ "not_found", "rejected" }, drops)
		assert.matches("no%-such%-namespace", table.concat(errors, "\n"))
		assert.matches("not a qualified name!", table.concat(errors, "\n"))
	end)

	it("asks a namespace that is being deleted once, not for every event", function()
		local going = cluster.namespace()
		-- The finalizer keeps the namespace from being gone, in a cluster whose controllers delete its contents.
		cluster.write(cluster.scratch .. "/stays.json", ('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"stays",'
			.. '"namespace":"%s","finalizers":["evrec.example.com/stays"]}}'):format(going))
		cluster.kubectl("create", "-f", cluster.scratch .. "/stays.json")
		local b, r = start()
		local function record(name)
			assert.is_true(r:event({ kind = "Pod", namespace = going, name = name }, "Normal", "R", "m"))
			local _, stats = b:flush(10)
			assert.equal(0, stats.pending)
		end
		record "before"
		cluster.delete_namespace(going)
		local refused = cluster.requests("events", "POST", 403)
		for i = 1, 20 do
			record("after-" .. i)
		end
		record "before" -- a patch, which is still welcome
		local ok, stats = b:shutdown(10)
		assert.is_true(ok) -- the flushes have told of the losses
		assert.equal(20, stats.dropped.namespace_terminating)
		assert.equal(20, #drops)
		assert.same({}, errors)
		assert.equal(1, stats.patched)
		assert.equal(refused + 1, cluster.requests("events", "POST", 403))
		cluster.kubectl("patch", "configmap", "stays", "-n", going, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
	end)

	it("does the I/O in poll() if it may have no thread", function()
		local b, r = start { drive = "poll" }
		for i = 1, 20 do
			r:event(pod("polled-" .. i), "Normal", "Polled", "m")
		end
		assert.equal(0, cluster.count(namespace))
		assert.is_true(b:flush(10))
		assert.equal(20, cluster.count(namespace))
		assert.is_true(b:shutdown(1))
	end)
end)

describe("the README's first script and the first story", function()
	local lua = _G.jit and "luajit" or ("lua" .. _VERSION:match "%d%.%d")

	it("write into the cluster of KUBECONFIG", function()
		local output, ok = cluster.run { lua, "examples/first.lua" }
		assert.is_true(ok, output)
		assert.equal("written\n", output)
		assert.matches("Reloaded", cluster.kubectl("get", "events", "-n", "default"))
		output, ok = cluster.run { lua, "examples/demo.lua" }
		assert.is_true(ok, output)
		assert.matches("The same in the cluster of KUBECONFIG: %d+ events created", output)
		cluster.clear "default"
	end)

	it("write the events that were recorded just before the process exits", function()
		local script = [[
			local evrec = require "evrec"
			local b = evrec.broadcaster {}
			b:start_recording_to_sink(evrec.sink.kubernetes {})
			local r = b:new_recorder { component = "exit" }
			for i = 1, 10 do
				r:event({ kind = "ConfigMap", name = "exit-" .. i }, "Normal", "Exit", "m")
			end
			os.exit(0, arg[1] == "close")
		]]
		local path = cluster.scratch .. "/exit.lua"
		cluster.write(path, script)
		for _, how in ipairs { "close", "at once" } do
			local output, ok = cluster.run { lua, path, how }
			assert.is_true(ok, output)
			assert.equal("", output)
			assert.equal(10, cluster.count "default")
			cluster.clear "default"
		end
	end)
end)
