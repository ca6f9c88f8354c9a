-- client-go's own tests of the correlator, the aggregator and the spam filter (tools/record, events_cache_test.go and
-- event_test.go) as traces: { name =, options =, steps =, expect = }. `expect` maps the number of a step to the results
-- that those tests demand.

local trace = require "trace"

local SECOND = 1000000000
local T0 = 1700000000 * SECOND

local DEFAULTS = {
	lru_cache_size = 4096, burst_size = 25, qps = 1 / 300, max_events = 10, max_interval_in_seconds = 600,
	key_func = false, message_func = false, spam_key_func = false,
}

local function with(base, change)
	local out = trace.copied(base)
	for key, value in pairs(change) do
		out[key] = value
	end
	return out
end

local function pod(name, change)
	return with({ kind = "Pod", apiVersion = "version", namespace = "my-ns", name = name, uid = "C934D34AFB20242",
		fieldPath = "spec.containers{mycontainer}" }, change or {})
end

local function event(reason, message, object)
	return {
		type = "Normal", reason = reason, message = message, involvedObject = object or pod "my-pod",
		source = { component = "kubelet", host = "kublet.node1" },
	}
end

-- A list of n events. `what` is the event, or a function from the number of an event to the event.
local function times(n, what)
	local out = {}
	for i = 1, n do
		out[i] = type(what) == "function" and what(i) or what
	end
	return out
end

local scenarios = {}

-- Adds a scenario. The events come every `interval` seconds, and the server answers each. `expect` maps the number of
-- an event to its expected result; -1 is the number of the last event.
local function scenario(name, interval, events, expect, options)
	local steps, expected = {}, {}
	for i, what in ipairs(events) do
		local now = T0 + i * interval * SECOND
		local stamped = with(what, { firstTimestamp = trace.time(now), lastTimestamp = trace.time(now), count =
			what.count or 1, metadata = with({ name = "event-" .. i, namespace = what.involvedObject.namespace or "default" },
			what.metadata or {}) })
		steps[#steps + 1] = { id = #steps + 1, t = ("%d"):format(now), event = stamped }
		expected[#steps] = expect[i] or expect[i - #events - 1]
		steps[#steps + 1] = { id = #steps + 1, t = ("%d"):format(now), answer = #steps, resourceVersion = tostring(i) }
	end
	scenarios[#scenarios + 1] = {
		name = name, options = with(DEFAULTS, options or {}), steps = steps, expect = expected,
	}
end

-- ---- the aggregator ----

scenario("messages differ: similar, a reason differs: not", 15, {
	event("end-of-world", "it was fun", pod "pod1"),
	event("end-of-world", "it was awful", pod "pod1"),
	event("nevermind", "it was a bug", pod "pod1"),
}, {
	{ why = "new" }, { why = "aggregated", message = "(combined from similar events): it was awful" }, { why = "new" },
}, { max_events = 2 })
scenario("a local key may be empty", 15, {
	event("end-of-world", "it was fun", pod "pod1"), event("end-of-world", "pod1", { kind = "Pod", namespace = "my-ns" }),
}, {
	{ why = "new" }, { why = "aggregated", message = "(combined from similar events): pod1" },
}, { max_events = 2, key_func = true })

-- ---- the correlator ----

-- The clock of client-go's tests advances at each reading, and EventCorrelate reads it three times for an event. So an
-- interval here is three of theirs.

local first = event("first", "i am first")
local duplicate = event("duplicate", "me again")
local unique = event("unique", "snowflake")
local similar = event("similar", "similar message", pod("my-pod", { fieldPath = "spec.containers{container1}" }))
local elsewhere = with(similar, { involvedObject = pod("my-pod", { fieldPath = "spec.containers{container2}" }) })

local function then_comes(what, events)
	events[#events + 1] = what
	return events
end

local function numbered(what)
	return function(i) return with(what, { message = ("%s-%d-%s"):format(what.message, i - 1, what.message) }) end
end

local function of_its_own(i)
	return event("reason-" .. i, "message-" .. i, pod("pod-" .. i, { namespace = "ns-" .. i }))
end

scenario("one event is created", 15, { first }, { { why = "new", count = 1 } })
scenario("the same event is counted", 15, times(2, duplicate), { [-1] = { why = "duplicate", count = 2 } })
scenario("the same event is counted, however often", 90, times(11, duplicate),
	{ [-1] = { why = "duplicate", count = 11 } })
scenario("the same event too often is spam", 3, times(27, duplicate), { [-1] = { skip = true } })
scenario("many different events", 15, then_comes(unique, times(30, of_its_own)), { [-1] = { why = "new", count = 1 } })
scenario("similar events are combined", 15, then_comes(similar, times(9, numbered(similar))), {
	[-1] = { why = "aggregated", count = 1, message = "(combined from similar events): similar message" },
})
scenario("similar events are counted as one", 15, then_comes(similar, times(10, numbered(similar))), {
	[-1] = { why = "aggregated", count = 2, message = "(combined from similar events): similar message" },
})
scenario("events of two containers are not combined", 15, { elsewhere, similar }, { [-1] = { why = "new", count = 1 } })
scenario("similar events further apart than the interval are not combined", 1800,
	then_comes(similar, times(9, numbered(similar))), { [-1] = { why = "new", count = 1 } })

-- ---- the spam filter ----

local original, other_reason = event("original", "i am first"), event("duplicate", "me again")

scenario("spam where the object is the same", 3, { original, other_reason }, { [-1] = { skip = true } },
	{ burst_size = 1 })
scenario("no spam where the key has the reason in it", 3, { original, other_reason },
	{ [-1] = { why = "new", count = 1 } }, { burst_size = 1, spam_key_func = true })
scenario("spam where the key has the reason in it, and that is the same", 3,
	{ original, event("original", "me again") }, { [-1] = { skip = true } }, { burst_size = 1, spam_key_func = true })

-- ---- the events of a recorder ----

-- client-go's tests run each list for two sinks. Here it runs once, since each sink has a correlator of its own.

local foo = { kind = "Pod", apiVersion = "v1", namespace = "baz", name = "foo", uid = "bar" }
local of_foo = with(foo, { fieldPath = "spec.containers[2]" })
local of_other = with(foo, { uid = "differentUid", fieldPath = "spec.containers[3]" })

local function recorded(reason, message, object)
	return with(event(reason, message, object), { source = { component = "eventTest" }, reportingComponent = "eventTest" })
end

local started = recorded("Started", "some verbose message: 1", of_foo)
local other_started = recorded("Started", "some verbose message: 1", of_other)
local other_stopped = recorded("Stopped", "some verbose message: 1", of_other)

scenario("a recorder's events are created, then patched", 1, {
	started, recorded("Killed", "some other verbose message: 1", foo), started, other_started, started, other_stopped,
	other_stopped,
}, {
	{ why = "new", count = 1 }, { why = "new", count = 1 }, { why = "duplicate", count = 2 }, { why = "new", count = 1 },
	{ why = "duplicate", count = 3 }, { why = "new", count = 1 }, { why = "duplicate", count = 2 },
})
scenario("an event about an object without a namespace", 1, {
	recorded("Started", "some verbose message: 1", { kind = "Pod", apiVersion = "v1", name = "foo", uid = "bar" }),
}, { { why = "new", count = 1 } })
scenario("lots of events", 1, times(100, of_its_own), { [-1] = { why = "new", count = 1 } })
scenario("an event that was counted elsewhere keeps its count", 1,
	{ with(first, { count = 2, metadata = { resourceVersion = "updated-resource-version" } }) },
	{ { why = "new", count = 2, resourceVersion = "updated-resource-version" } })

return scenarios
