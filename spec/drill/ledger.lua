-- A list of the recorded events by style ("record" or "series") and object, and its comparison with the events that the
-- server has afterwards. Every object has one event of each style that it was recorded in.
local cjson = require "cjson"

local Ledger = {}
Ledger.__index = Ledger

function Ledger.new()
	return setmetatable({ objects = {} }, Ledger)
end

local function is_set(value)
	return value ~= nil and value ~= cjson.null
end

--- The style of the sink that wrote an event, as decoded from core/v1's JSON.
function Ledger.style_of(event)
	return is_set(event.eventTime) and "series" or "record"
end

--- The number of occurrences that such an event says.
function Ledger.count_of(event)
	return Ledger.style_of(event) == "record" and event.count or is_set(event.series) and event.series.count or 1
end

-- When it says that the first and the last one happened.
local function times_of(event)
	if Ledger.style_of(event) == "record" then
		return event.firstTimestamp, event.lastTimestamp
	end
	return event.eventTime, is_set(event.series) and event.series.lastObservedTime or event.eventTime
end

--- Adds one occurrence about the object `name`, which happened from `from` to `to`, in whole seconds.
function Ledger:add(style, name, from, to)
	local key = style .. " " .. name
	local object = self.objects[key]
	if not object then
		object = { count = 0, first = { from, to } }
		self.objects[key] = object
	end
	object.count = object.count + 1
	object.last = { from, to }
end

-- os.time reads local time: the process must run in UTC.
local function seconds(text)
	local year, month, day, hour, minute, second = text:match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)[.%d]*Z$"
	return os.time { year = year, month = month, day = day, hour = hour, min = minute, sec = second }
end

local function within(time, range)
	return time >= range[1] and time <= range[2]
end

local function is_exact(object, event)
	local first, last = times_of(event)
	return Ledger.count_of(event) == object.count and within(seconds(first), object.first)
		and within(seconds(last), object.last)
end

--- Compares the list with events as decoded from JSON: counts lost occurrences and duplicate events, and lists the
--- objects whose event has a wrong count or time.
function Ledger:compare(events)
	local found = {}
	for _, event in ipairs(events) do
		local key = Ledger.style_of(event) .. " " .. event.involvedObject.name
		found[key] = found[key] or {}
		table.insert(found[key], event)
	end
	local result = { events = #events, lost = 0, duplicates = 0, inexact = {} }
	for key, object in pairs(self.objects) do
		local there, count = found[key] or {}, 0
		for _, event in ipairs(there) do
			count = count + Ledger.count_of(event)
		end
		result.lost = result.lost + math.max(0, object.count - count)
		result.duplicates = result.duplicates + math.max(0, #there - 1)
		if #there ~= 1 or not is_exact(object, there[1]) then
			local text = "%s: recorded %d, there %d in %d events"
			table.insert(result.inexact, text:format(key, object.count, count, #there))
		end
	end
	return result
end

return Ledger
