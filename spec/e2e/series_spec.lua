-- Series, and the API events.k8s.io/v1, against a real API server.
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local fixtures = require "fixtures"

local face = "\240\159\153\130" -- a character of four bytes
local mark = "\226\128\166" -- the end of a text that evrec cut

local function pause(seconds)
	cluster.run { "sleep", seconds }
end

describe("series in an API server", function()
	local namespace, errors, drops

	-- A broadcaster with a sink that has these options, and a recorder.
	local function start(sink_options, recorder_options)
		errors, drops = {}, {}
		local b = evrec.broadcaster {
			on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end,
			on_drop = function(event, why) drops[#drops + 1] = { name = event.involvedObject.name, why = why } end,
		}
		local options = { api = "events.k8s.io/v1" }
		for name, value in pairs(sink_options or {}) do
			options[name] = value
		end
		b:start_recording_to_sink(evrec.sink.kubernetes(options))
		return b, b:new_recorder(recorder_options or { component = "example.com/e2e", host = "here" })
	end

	local function pod(name)
		return { kind = "Pod", apiVersion = "v1", namespace = namespace, name = name }
	end

	-- The events that the server has, as one API shows them, by the name of their object.
	local function shown(resource, api, field, space)
		local by_name = {}
		for _, event in ipairs(cjson.decode(cluster.kubectl("get", resource, "-n", space, "-o", "json")).items) do
			local name = event[field].name
			assert.is_nil(by_name[name], name)
			assert.equal(api, event.apiVersion)
			by_name[name] = event
		end
		return by_name
	end

	-- Returns a function that returns the event about an object, in the form of events.k8s.io/v1, and of core/v1.
	local function all_stored(space)
		space = space or namespace
		local new = shown("events.v1.events.k8s.io", "events.k8s.io/v1", "regarding", space)
		local core = shown("events", "v1", "involvedObject", space)
		return function(name)
			assert.truthy(new[name], name)
			assert.equal(new[name].metadata.uid, core[name].metadata.uid)
			return new[name], core[name]
		end
	end

	local function stored(name, space)
		return all_stored(space)(name)
	end

	-- Ends the broadcaster, which has lost nothing; returns its stats.
	local function finish(b)
		local ok, stats, message = b:shutdown(10)
		assert.is_true(ok, message)
		assert.is_nil(fixtures.fault(stats))
		assert.same({}, errors)
		assert.same({}, drops)
		return stats
	end

	-- Waits until the function returns true; polls meanwhile.
	local function wait_for(b, is_so)
		local deadline = os.time() + 40
		repeat
			b:poll()
			pause(0.02)
		until is_so() or os.time() > deadline
		assert.is_true(is_so())
	end

	-- The counters that are not 0.
	local function nonzero(counters)
		local some = {}
		for name, n in pairs(counters) do
			some[name] = n > 0 and n or nil
		end
		return some
	end

	setup(function() namespace = cluster.namespace() end)
	teardown(function() cluster.delete_namespace(namespace) end)
	before_each(function() cluster.clear(namespace) end)

	it("have one event, which both APIs show", function()
		local b, r = start()
		for _ = 1, 7 do
			assert.is_true(r:event(pod "web-0", "Warning", "BackOff", "restarting"))
		end
		assert.is_true(b:flush(10))
		local new, core = stored "web-0"
		assert.equal("BackOff", new.reason)
		assert.equal("BackOff", new.action)
		assert.equal("restarting", new.note)
		assert.equal("Warning", new.type)
		assert.equal("example.com/e2e", new.reportingController)
		assert.equal("here", new.reportingInstance)
		assert.matches("^web%-0%.%x+$", new.metadata.name)
		assert.equal(7, new.series.count)
		assert.matches("^%d+%-%d+%-%d+T%d+:%d+:%d+%.%d%d%d%d%d%dZ$", new.series.lastObservedTime)
		assert.is_true(new.eventTime <= new.series.lastObservedTime)
		for _, field in ipairs { "deprecatedCount", "deprecatedFirstTimestamp", "deprecatedLastTimestamp" } do
			assert.is_true(new[field] == nil or new[field] == cjson.null, field)
		end
		assert.same(new.series, core.series)
		assert.equal(new.eventTime, core.eventTime)
		assert.equal("restarting", core.message)
		assert.equal("example.com/e2e", core.reportingComponent)
		assert.matches("BackOff +pod/web%-0", cluster.kubectl("get", "events", "-n", namespace))
		assert.is_true(r:event(pod "web-0", "Warning", "BackOff", "restarting"))
		finish(b)
		new = stored "web-0"
		assert.equal(8, new.series.count)
	end)

	it("are created, begun, refreshed, finished, and begin anew", function()
		local b, r = start { refresh_interval = 2, finish_time = 6 }
		local states = {}
		b:start_event_watcher(function(event)
			if event.series then
				states[#states + 1] = event.series.state .. " " .. event.series.count
			end
		end)
		local function stats() return b:stats().sinks[1] end
		local function record()
			assert.is_true(r:event(pod "loop", "Warning", "BackOff", "restarting"))
		end
		record()
		wait_for(b, function() return stats().created == 1 end)
		assert.is_nil((stored "loop").series)
		record()
		wait_for(b, function() return stats().patched == 1 end)
		local begun = stored "loop"
		assert.equal(2, begun.series.count)
		for _ = 1, 10 do
			record()
		end
		-- The heartbeat, with no help of this thread.
		pause(2.5)
		local refreshed = stored "loop"
		assert.equal(12, refreshed.series.count)
		assert.is_true(refreshed.series.lastObservedTime > begun.series.lastObservedTime)
		record()
		wait_for(b, function() return states[#states] == "Finished 13" end)
		local last, core = stored "loop"
		assert.equal(13, last.series.count)
		assert.equal(13, core.series.count)
		assert.equal(0, stats().counted)
		assert.same({ "Ongoing 2", "Finished 13" }, states)
		assert.equal(begun.metadata.name, last.metadata.name)
		assert.equal(begun.eventTime, last.eventTime)
		assert.equal(1, stats().created)
		assert.is_true(stats().patched <= 4)
		cluster.clear(namespace)
		record()
		record()
		finish(b)
		last = stored "loop"
		assert.equal(2, last.series.count)
		assert.is_true(last.metadata.name ~= begun.metadata.name)
	end)

	it("are created again, with their whole count, if the event was deleted meanwhile", function()
		local b, r = start()
		r:event(pod "gone", "Normal", "R", "m")
		assert.is_true(b:flush(10))
		cluster.clear(namespace)
		for _ = 1, 4 do
			r:event(pod "gone", "Normal", "R", "m")
		end
		finish(b)
		assert.equal(5, (stored "gone").series.count)
	end)

	for _, api in ipairs { "events.k8s.io/v1", "v1" } do
		it("have texts that fit at every limit, by " .. api, function()
			local b, r = start({ api = api, correlate = "series" }, { component = "e2e", host = "here" })
			-- Each limit: a text of that length, one byte more, and a character across the cut.
			local limits = {
				{ field = "note", bytes = 1024 }, { field = "reason", bytes = 128 }, { field = "action", bytes = 128 },
			}
			local expected = {}
			local function emit(name, field, text, becomes)
				local event = { regarding = pod(name), type = "Normal", reason = "R", action = "A", note = "n" }
				event[field] = text
				for _ = 1, 3 do -- a create and a patch
					assert.is_true(r:emit(event))
				end
				expected[name] = { field = field, text = becomes }
			end
			local prefix = api == "v1" and "core-" or "new-"
			for _, limit in ipairs(limits) do
				local field, bytes = limit.field, limit.bytes
				local whole = ("x"):rep(bytes)
				emit(prefix .. field .. "-whole", field, whole, whole)
				emit(prefix .. field .. "-faces", field, face:rep(bytes / 4), face:rep(bytes / 4))
				-- A message is cut when it is recorded, the others when they are written.
				emit(prefix .. field .. "-over", field, whole .. "x", ("x"):rep(bytes - #mark) .. mark)
				for shift = 1, 4 do
					local head = ("x"):rep(bytes - #mark - shift)
					local fits = shift == 4 and head .. face or head
					emit(prefix .. field .. "-across-" .. shift, field, head .. face:rep(9), fits .. mark)
				end
			end
			local stats = finish(b)
			local get, events = all_stored(), 0
			for name, value in pairs(expected) do
				local new, core = get(name)
				assert.equal(value.text, new[value.field], name)
				assert.equal(value.text, core[value.field == "note" and "message" or value.field], name)
				assert.equal(3, new.series.count)
				events = events + 1
			end
			assert.equal(21, events)
			assert.equal(21, stats.created)
		end)

		it("have instances that fit, and stay different, by " .. api, function()
			local b = start { api = api, correlate = "series" }
			local prefix, instances = api == "v1" and "core-" or "new-", {}
			local function record(name, instance)
				local r = b:new_recorder { component = "e2e", instance = instance }
				for _ = 1, 2 do
					assert.is_true(r:event(pod(prefix .. name), "Normal", "R", "m"))
				end
			end
			record("whole", ("i"):rep(128))
			record("over", ("i"):rep(129))
			record("longer", ("i"):rep(130))
			record("across", ("i"):rep(118) .. face:rep(9))
			record "unset"
			finish(b)
			local get = all_stored()
			for _, name in ipairs { "whole", "over", "longer", "across", "unset" } do
				instances[name] = get(prefix .. name).reportingInstance
			end
			assert.equal(("i"):rep(128), instances.whole)
			assert.matches("^" .. ("i"):rep(119) .. "%-%x%x%x%x%x%x%x%x$", instances.over)
			assert.matches("^" .. ("i"):rep(119) .. "%-%x%x%x%x%x%x%x%x$", instances.longer)
			assert.is_true(instances.over ~= instances.longer)
			assert.matches("^" .. ("i"):rep(118) .. "%-%x%x%x%x%x%x%x%x$", instances.across)
			assert.matches("^e2e%-.", instances.unset)
		end)
	end

	it("drop what no change could make fit, and nothing else", function()
		local b = start()
		for i, component in ipairs { "not qualified", "a/b/c", "-a", ("a"):rep(64), "UPPER/a" } do
			local r = b:new_recorder { component = component, host = "here" }
			assert.is_true(r:event(pod("unfit-" .. i), "Normal", "R", "m"))
		end
		local r = b:new_recorder { component = "e2e", host = "here" }
		assert.is_true(r:action_eventf({ kind = "Node", name = "n" }, pod "p", "Normal", "R", "A", "in no namespace"))
		for i, component in ipairs { "a", ("a"):rep(63), "example.com/A_b.c-d", ("a"):rep(63) .. ".example.com/x" } do
			local fit = b:new_recorder { component = component, host = "here" }
			assert.is_true(fit:event(pod("fit-" .. i), "Normal", "R", "m"))
		end
		local ok, stats = b:shutdown(10)
		assert.is_false(ok)
		assert.is_nil(fixtures.fault(stats))
		assert.same({ unfit = 6 }, nonzero(stats.dropped))
		assert.equal(4, stats.created)
		assert.equal(6, #drops)
		for _, drop in ipairs(drops) do
			assert.equal("unfit", drop.why)
		end
		table.sort(errors)
		assert.equal(6, #errors)
		assert.equal('unfit: kubernetes: reportingController: "-a" is no qualified name', errors[2])
		assert.matches("related: it is in a namespace", errors[1])
		local get = all_stored()
		for i = 1, 4 do
			get("fit-" .. i)
		end
	end)

	it("are about cluster-scoped objects too", function()
		local name = namespace .. "-node" -- as all share the namespace default
		local b, r = start()
		for _ = 1, 3 do
			assert.is_true(r:event({ kind = "Node", apiVersion = "v1", name = name }, "Normal", "Rebooted", "m"))
		end
		finish(b)
		local new = stored(name, "default")
		assert.equal("default", new.metadata.namespace)
		assert.is_nil(new.regarding.namespace)
		assert.equal(3, new.series.count)
		cluster.clear "default"
	end)

	it("are told apart by the related object", function()
		local b, r = start()
		local node = { kind = "Node", apiVersion = "v1", name = "node-1" }
		for _ = 1, 2 do
			assert.is_true(r:action_eventf(pod "related-1", node, "Normal", "Bound", "Binding", "to %s", node.name))
		end
		assert.is_true(b:flush(10))
		local new, core = stored "related-1"
		assert.equal("node-1", new.related.name)
		assert.equal("Binding", new.action)
		assert.same(new.related, core.related)
		assert.equal(2, new.series.count)
		assert.is_true(r:action_eventf(pod "related-1", pod "p", "Normal", "Bound", "Binding", "to %s", "p"))
		local stats = finish(b)
		assert.equal(2, stats.created)
	end)

	it("may have names of their own for strange objects", function()
		local b, r = start()
		local names = { "../../secrets/x", "a/b", "UPPER_case", ("x"):rep(300) }
		for _, name in ipairs(names) do
			for _ = 1, 3 do
				assert.is_true(r:event(pod(name), "Normal", "Strange", "m"))
			end
		end
		finish(b)
		local get = all_stored()
		for _, name in ipairs(names) do
			local new = get(name)
			assert.equal(36, #new.metadata.name)
			assert.equal(3, new.series.count)
		end
	end)

	it("go to core/v1 with their style if that is asked for", function()
		local b, r = start { api = "v1", correlate = "series" }
		for i = 1, 30 do
			if i == 2 then
				assert.is_true(b:flush(10)) -- the message of a create that waits is that of the last
			end
			assert.is_true(r:eventf(pod "by-core", "Normal", "R", "message %d", i))
		end
		local stats = finish(b)
		assert.equal(1, stats.created)
		local new = stored "by-core"
		assert.equal(30, new.series.count)
		assert.equal("message 1", new.note)
	end)

	it("are counted as by tools/record if that is asked for, by events.k8s.io/v1", function()
		local b, r = start { correlate = "record" }
		for _ = 1, 5 do
			assert.is_true(r:event(pod "by-record", "Normal", "R", "m"))
		end
		finish(b)
		assert.equal(5, (stored "by-record").series.count)
	end)
end)
