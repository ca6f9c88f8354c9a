-- Each Lua state of states_test.c runs this script. `path` is the file that all states write to. Returns the number of
-- events that the state recorded.
-- luacheck: globals shared path
package.path = "./lua/?.lua;./lua/?/init.lua;" .. package.path
local evrec = require "evrec"

local EVENTS = 200
local thread = coroutine.running()
local seen = 0

shared = evrec.broadcaster {
	name = "states",
	on_error = function(message) error(message) end,
	on_drop = function() assert(coroutine.running() == thread) end,
	correlator = { burst_size = 1e6, max_events = 1e6, key_func = function(event) return event.reason, event.message end },
}
shared:start_recording_to_sink(evrec.sink.file { path = path })
shared:start_event_watcher(function(event)
	assert(event.reason)
	seen = seen + 1
end)

local recorder = shared:new_recorder { component = "states" }
local prepared = recorder:prepare {
	regarding = { kind = "Pod", namespace = "shop", name = "web-0" },
	type = "Normal",
	reason = "Started",
	note = "started",
}
for i = 1, EVENTS do
	local pod = { kind = "Pod", namespace = "shop", name = "web-" .. i % 10 }

	assert(i % 10 == 0 and prepared:record() or i % 10 ~= 0 and recorder:event(pod, "Normal", "Started", "started"))
	if i % 20 == 0 then
		shared:poll()
		assert(shared:stats().recorded >= i)
		collectgarbage()
	end
end
assert(seen >= EVENTS)
return EVENTS
