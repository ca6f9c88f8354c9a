-- Compares what the hosts noted with the events that the server has.
local cjson = require "cjson"
local cluster = require "cluster"

local books = {}

-- How often each object was noted, and what was refused.
local function read_notes(path)
	local counts, recorded, refused = {}, 0, {}
	for line in io.lines(path) do
		if line:find "^refused" then
			refused[#refused + 1] = line
		else
			counts[line] = (counts[line] or 0) + 1
			recorded = recorded + 1
		end
	end
	return counts, recorded, refused
end

local function stored(namespace)
	local counts = {}
	local list = cjson.decode(cluster.kubectl("get", "--raw", "/api/v1/namespaces/" .. namespace .. "/events"))
	for _, event in ipairs(list.items) do
		local name = event.involvedObject.name
		counts[name] = (counts[name] or 0) + event.count
	end
	return counts, #list.items
end

--- Each process makes an event of its own for an object, so the counts of an object's events are added up.
---@return table result recorded, events, lost, twice: occurrences; refused: a list of messages
function books.compare(notes, namespace)
	local noted, recorded, refused = read_notes(notes)
	local there, events = stored(namespace)
	local result = { recorded = recorded, refused = refused, events = events, lost = 0, twice = 0 }
	for name, count in pairs(noted) do
		local difference = count - (there[name] or 0)
		result.lost = result.lost + math.max(0, difference)
		result.twice = result.twice + math.max(0, -difference)
		there[name] = nil
	end
	for _, count in pairs(there) do
		result.twice = result.twice + count
	end
	return result
end

return books
