-- A list of the recorded events by object, and its comparison with the events that the server has afterwards. Every
-- object has one event.
local Ledger = {}
Ledger.__index = Ledger

function Ledger.new()
	return setmetatable({ objects = {}, recorded = 0 }, Ledger)
end

--- Adds one occurrence about the object `name`, which happened from `from` to `to`, in whole seconds.
function Ledger:add(name, from, to)
	local object = self.objects[name]
	if not object then
		object = { count = 0, first = { from, to } }
		self.objects[name] = object
	end
	object.count = object.count + 1
	object.last = { from, to }
	self.recorded = self.recorded + 1
end

-- os.time reads local time: the process must run in UTC.
local function seconds(text)
	local year, month, day, hour, minute, second = text:match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)Z$"
	return os.time { year = year, month = month, day = day, hour = hour, min = minute, sec = second }
end

local function within(time, range)
	return time >= range[1] and time <= range[2]
end

local function is_exact(object, event)
	return event.count == object.count and within(seconds(event.firstTimestamp), object.first)
		and within(seconds(event.lastTimestamp), object.last)
end

--- Compares the list with events as decoded from JSON: counts lost occurrences and duplicate events, and lists the
--- objects whose event has a wrong count or time.
function Ledger:compare(events)
	local found = {}
	for _, event in ipairs(events) do
		local name = event.involvedObject.name
		found[name] = found[name] or {}
		table.insert(found[name], event)
	end
	local result = { events = #events, lost = 0, duplicates = 0, inexact = {} }
	for name, object in pairs(self.objects) do
		local there, count = found[name] or {}, 0
		for _, event in ipairs(there) do
			count = count + event.count
		end
		result.lost = result.lost + math.max(0, object.count - count)
		result.duplicates = result.duplicates + math.max(0, #there - 1)
		if #there ~= 1 or not is_exact(object, there[1]) then
			table.insert(result.inexact, ("%s: recorded %d, there %d in %d events"):format(name, object.count, count, #there))
		end
	end
	return result
end

return Ledger
