-- A sink in Lua, which client-go calls an EventSink. It keeps events in a table, and prints each write. A real script
-- would call poll() from its event loop.
--
--   $ lua5.4 examples/lua_sink.lua
--   created  Started x1 Started container
--   patched  {"count":2,"lastTimestamp":"2023-11-14T22:14:20Z","message":"Started container"}
--   done: 1 created, 1 patched
local evrec = require "evrec"

local store = {}

local function key(event)
	return event.metadata.namespace .. "/" .. event.metadata.name
end

local sink = evrec.sink.lua {
	-- Returns the stored event, or nil, an HTTP status, and optionally the seconds to wait before the next try.
	create = function(event)
		if store[key(event)] then
			return nil, 409
		end
		store[key(event)] = event:to_table()
		print(("created  %s x%d %s"):format(event.reason, event.count, event.message))
		return store[key(event)]
	end,
	patch = function(event, patch)
		if not store[key(event)] then
			return nil, 404
		end
		store[key(event)] = event:to_table()
		print("patched  " .. patch)
		return store[key(event)]
	end,
}

local clock = evrec.fake_clock(1700000000)
local broadcaster = evrec.broadcaster { clock = clock }
broadcaster:start_recording_to_sink(sink)
local recorder = broadcaster:new_recorder { component = "example" }
local pod = evrec.reference { kind = "Pod", namespace = "default", name = "web-0" }

recorder:event(pod, "Normal", "Started", "Started container")
broadcaster:poll()
clock:advance(60)
recorder:event(pod, "Normal", "Started", "Started container")
broadcaster:poll()

local ok, stats = broadcaster:shutdown(1)
print(("%s: %d created, %d patched"):format(ok and "done" or "too late", stats.created, stats.patched))
