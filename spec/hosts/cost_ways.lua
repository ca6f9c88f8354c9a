-- Ways to record an event for each request, for cost.lua. Made by nginx's master, used by its workers.
local evrec = require "evrec"

local broadcaster = evrec.broadcaster {}
broadcaster:start_recording_to_sink(evrec.sink.kubernetes {})
local recorder = broadcaster:new_recorder { component = "cost" }

local function pod(name)
	return { kind = "Pod", apiVersion = "v1", namespace = "default", name = name, uid = "6f0a" }
end

local reference = evrec.reference(pod "shop")
local number = 0

local cost_ways = {}

--- A known event about an object that is kept as a reference.
function cost_ways.reference()
	recorder:event(reference, "Warning", "Failed", "the upstream failed")
end

--- A known event about an object that is a new table each time.
function cost_ways.table()
	recorder:event(pod "shop", "Warning", "Failed", "the upstream failed")
end

--- An event about an object that no event was about before.
function cost_ways.new()
	number = number + 1
	recorder:event(pod("shop-" .. number), "Warning", "Failed", "the upstream failed")
end

return cost_ways
