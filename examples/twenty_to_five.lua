-- A story: five pods wait while five nodes start, and twenty scheduling failures become five rows.
--
-- examples/demo.lua plays it under a fake clock, into an event store. If KUBECONFIG is set, the same events are then
-- recorded into that cluster, at the present time.
local evrec = require "evrec"

local twenty_to_five = {}

local function node(i)
	return { kind = "Node", apiVersion = "v1", name = "node-" .. i, uid = "node-" .. i }
end

local function pod(name)
	return { kind = "Pod", apiVersion = "v1", namespace = "default", name = name }
end

--- Records the events of the story.
---@param broadcaster table an evrec.broadcaster
---@param pause fun(seconds: number) called between the steps
function twenty_to_five.play(broadcaster, pause)
	local scheduler = broadcaster:new_recorder { component = "scheduler" }
	local kubelet = {}
	for i = 1, 5 do
		kubelet[i] = broadcaster:new_recorder { component = "kubelet", host = "node-" .. i }
		kubelet[i]:event(node(i), "Normal", "Starting", "The kubelet starts")
		pause(1)
	end
	local pods = { "grafana-0", "dns-9gq2v", "kibana-gziey", "search-1", "ui-x7mwp" }
	for _ = 1, 4 do
		for _, name in ipairs(pods) do
			scheduler:event(pod(name), "Warning", "FailedScheduling", "No node has room")
		end
		pause(3)
	end
	local paused = pod("kibana-gziey")
	paused.fieldPath = "spec.containers{pause}"
	kubelet[4]:event(paused, "Normal", "Pulled", "Image pulled")
	scheduler:event(pod("kibana-gziey"), "Normal", "Scheduled", "Assigned to node-4")
end

--- Plays the story under a fake clock into an event store.
---@param path string of the store
function twenty_to_five.in_a_store(path)
	local clock = evrec.fake_clock(os.time() - 60)
	local broadcaster = evrec.broadcaster { clock = clock }
	broadcaster:start_recording_to_sink(evrec.sink.store { path = path })
	twenty_to_five.play(broadcaster, function(seconds) clock:advance(seconds) end)
	local ok, _, message = broadcaster:shutdown(10)
	assert(ok, message)
end

--- Plays the story into the cluster that the environment names.
---@return boolean|nil ok whether all events were written in time; nil if the environment names no cluster
---@return table|string stats or why there is no cluster
---@return string? message if ok is false: which events were not written, and the last error
function twenty_to_five.in_a_cluster()
	local found, sink = pcall(evrec.sink.kubernetes, {})
	if not found then
		return nil, sink
	end
	local broadcaster = evrec.broadcaster {}
	broadcaster:start_recording_to_sink(sink)
	twenty_to_five.play(broadcaster, function() end)
	return broadcaster:shutdown(10)
end

--- Prints the whole demonstration.
---@param store string the path of the event store
---@param show fun(...: string) runs the command `evrec`
---@return string|nil failure if KUBECONFIG is set, and not all events were written to its cluster
function twenty_to_five.main(store, show)
	print("Story 1, twenty to five: an event that happens again becomes a count, not a new row.")
	print("20 scheduling failures among 27 events take 5 of 12 rows.\n")
	twenty_to_five.in_a_store(store)
	show("events", "--store", store)
	if (os.getenv "KUBECONFIG" or "") == "" then
		return
	end
	local ok, stats, message = twenty_to_five.in_a_cluster()
	if ok == nil then
		return "no event was written to a cluster: " .. stats
	end
	if not ok then
		return "the cluster of KUBECONFIG did not get all events: " .. message
	end
	print(("\nThe same in the cluster of KUBECONFIG: %d events created, %d updates, %d occurrences within these")
		:format(stats.created, stats.patched, stats.coalesced))
end

return twenty_to_five
