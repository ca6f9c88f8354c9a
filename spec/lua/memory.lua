-- The calls that memory_test.c makes while the memory of Lua, or of the core, runs out.
local evrec = require "evrec"
local fixtures = require "fixtures"
local garbage = require "garbage"

local memory = {}

local pod, node = fixtures.pod(), { kind = "Node", name = "n" }
-- evrec.reference does not cache so long a reference, so that nothing of it stays.
local long = { kind = "Pod", name = ("n"):rep(1024) }
local scene
local check -- nil, or raises if the last call did something wrong

-- Returns a table that has its fields by its metatable.
local function proxy(fields)
	return setmetatable({}, { __index = function(_, key) return fields[key] end })
end

--- Makes a broadcaster with callbacks of every type, which allocate Lua memory.
function memory.open()
	local function touch(event)
		return event.message .. event.metadata.name
	end
	scene = fixtures.setup {
		max_message_bytes = 64,
		on_error = function(message, name) return message .. name end,
		on_drop = function(event, why) return touch(event) .. why end,
		correlator = {
			burst_size = 4, max_events = 3,
			key_func = function(event) return event.involvedObject.name .. "!", event.message end,
			message_func = function(event) return "together: " .. event.message end,
			spam_key_func = function(event) return event.reason .. event.type end,
		},
	}
	for i, status in ipairs { 503, 422, 409 } do
		scene.server.answers[i * 2] = function() return nil, status, 1 end
	end
	scene.broadcaster:start_recording_to_sink(evrec.sink.lua {
		create = function(event) return event:to_table "events.k8s.io/v1" end,
		patch = function(event, patch) return event:to_table(), patch end,
		api = "events.k8s.io/v1", max_series = 3,
	})
	scene.watcher = scene.broadcaster:start_event_watcher(function(event)
		if event.reason == "Outer" then
			local message = "from inside: " .. touch(event)
			scene.inner = scene.inner + 1
			scene.recorder:event(pod, "Normal", "Inner", message)
		end
	end)
	scene.queue = scene.broadcaster:watch { queue_length = 3 }
	scene.inner = 0
end

--- Returns recording calls: whether the call is valid, its function, and its arguments.
function memory.recordings()
	local r = scene.recorder
	local reference = evrec.reference(pod)
	local function emit(note)
		return { regarding = pod, related = node, type = "Normal", reason = "R", action = "A", note = note,
			labels = { a = "b" }, annotations = { c = "d", e = "f" }, timestamp = fixtures.now }
	end
	local prepared = r:prepare { regarding = pod, type = "Normal", reason = "R", action = "A", note = "prepared" }
	return {
		{ true, prepared.record, prepared },
		{ true, prepared.record, prepared, "another message: \255" },
		{ false, prepared.record, prepared, {} },
		{ true, r.event, r, pod, "Normal", "R", "a message that is cut: " .. ("x"):rep(60) },
		{ true, r.event, r, reference, "Normal", "R", "cleaned: \255" },
		{ true, r.event, r, proxy(pod), "Normal", "R", "m" },
		{ true, r.event, r, { kind = "Pod", metadata = proxy { name = "p" } }, "Normal", "Outer", "m" },
		{ true, r.eventf, r, pod, "Normal", "R", "%s is %q, %5.2f", "a", "b", 1 / 3 },
		{ true, r.annotated_eventf, r, pod, { a = "b", c = "d" }, "Warning", "R", "%d", 5 },
		{ true, r.past_eventf, r, reference, fixtures.now - 1, "Warning", "R", "%s", ("y"):rep(100) },
		{ true, r.action_eventf, r, pod, node, "Normal", "R", "A", "%d", 6 },
		{ true, r.emit, r, emit("a note") },
		{ true, r.emit, r, proxy(emit("another")) },
		{ false, r.event, r, { name = "no kind" }, "Normal", "R", "m" },
		{ false, r.event, r, pod, "Normal", "R" },
		{ false, r.eventf, r, pod, "Normal", "R", "%d", "no number" },
		{ false, r.emit, r, { regarding = proxy(setmetatable({}, { __index = error })) } },
		{ false, r.annotated_eventf, r, pod, { 1, 2 }, "Normal", "R", "m" },
	}
end

--- Returns how many calls were recorded, how many of them were invalid, and how many calls callbacks began. Raises if
--- the counters do not add up.
function memory.recorded()
	local stats = scene.broadcaster:stats()
	local fault = fixtures.fault(stats)
	if fault then
		error(fault)
	end
	return stats.recorded, stats.invalid, scene.inner
end

function memory.settle()
	scene.broadcaster:poll()
	scene.clock:advance(60)
	scene.broadcaster:poll()
	while scene.queue:next() do
		scene.server.writes = {}
	end
end

--- Uses a correlator, and events.
function memory.values()
	local clock = evrec.fake_clock(fixtures.now)
	local labels = {}
	for i = 1, 20 do
		labels["l" .. i] = "b"
	end
	local c = evrec.correlator { clock = clock, max_events = 2, key_func = function(e) return e.reason, e.message end }
	for i = 1, 3 do
		local result = c:correlate { involvedObject = pod, type = "Normal", reason = "R", message = "m" .. i,
			metadata = { labels = labels, ownerReferences = { { kind = "Deployment", name = "d" } } } }
		if result then
			c:update_state(result.event)
			tostring(result.event)
			evrec.event(result.event:to_table("events.k8s.io/v1")):to_json()
		end
	end
	clock:advance(1)
	tostring(evrec.reference(long).name)
	return c:stats()
end

--- Makes, uses and ends a broadcaster.
function memory.life()
	memory.open()
	scene.recorder:eventf(evrec.reference(long), "Normal", "Outer", "%s", "formatted")
	local fields = { regarding = pod, related = node, type = "Normal", reason = "R", note = "m", labels = { a = "b" } }
	local prepared = scene.recorder:prepare(fields)
	if prepared then
		prepared:record()
	end
	memory.settle()
	scene.broadcaster:metrics()
	scene.watch:stats()
	scene.watcher:stop()
	scene.broadcaster:start_logging(print):stop()
	evrec.sink.file { path = "-" }
	evrec.sink.otlp { headers = { ["X-Key"] = "value" }, resource = { ["service.name"] = "spec" }, batch = { max = 5 } }
	return scene.broadcaster:shutdown(0)
end

--- Correlates an event while every finalizer correlates another one.
function memory.interrupted()
	-- The clock stays: Lua calls a finalizer once, and drops it if there is no memory for the call.
	scene = { clock = evrec.fake_clock(fixtures.now) }
	local c = evrec.correlator { clock = scene.clock, max_events = 1, burst_size = 1000 }
	local function event(name)
		return evrec.event { involvedObject = fixtures.pod(name), type = "Normal", reason = "R", message = name }
	end
	local mine, other = event("mine"), event(("other"):rep(20))
	local running, result, interrupted = true, nil, nil
	local function correlate_other()
		if running then
			garbage.make(function() pcall(correlate_other) end)
			interrupted = c:correlate(other) or interrupted
		end
	end
	check = function()
		running = false
		garbage.collect_normally()
		for given, got in pairs { [mine] = result, [other] = interrupted } do
			assert(got.event.involvedObject.name == given.message)
			assert(got.event.message == "(combined from similar events): " .. given.message)
		end
	end
	garbage.collect_always()
	garbage.make(function() pcall(correlate_other) end)
	result = c:correlate(mine)
end

--- Takes an event out of a queue.
function memory.take()
	local s = fixtures.setup()
	local queue, recorded, event = assert(s.broadcaster:watch()), nil, nil
	check = function()
		local taken, waiting = event and 1 or 0, queue:stats().queued
		assert(taken + waiting + s.broadcaster:stats().watch_dropped == (recorded and 1 or 0))
		assert((queue:next() and 1 or 0) == waiting)
		assert(queue:next() == nil and queue:stats().queued == 0)
	end
	recorded = s.recorder:event(pod, "Normal", "R", "m")
	event = queue:next()
end

--- Checks the last call, and drops all that it made.
function memory.forget()
	if check then
		check()
	end
	scene, check = nil, nil
end

return memory
