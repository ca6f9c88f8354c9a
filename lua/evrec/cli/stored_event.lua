-- An event as a source has it: JSON of core/v1 or of events.k8s.io/v1, with fields that evrec may not know.
local cjson = require "cjson"
local core = require "evrec.core"

local terminal = require "evrec.cli.terminal"

local stored_event = {}

-- The fields that events.k8s.io/v1 renamed, as an API server converts them.
local OF_CORE = {
	regarding = "involvedObject", note = "message", reportingController = "reportingComponent",
	deprecatedSource = "source", deprecatedFirstTimestamp = "firstTimestamp",
	deprecatedLastTimestamp = "lastTimestamp", deprecatedCount = "count",
}

--- Gives the fields of an event of events.k8s.io/v1, or of a patch of one, their names in core/v1, in place.
---@param event table as decoded from JSON; one of core/v1 stays as it is
---@return table event the same table
function stored_event.to_core(event)
	if event.apiVersion ~= "v1" then
		for name, core_name in pairs(OF_CORE) do
			if event[core_name] == nil then
				event[core_name], event[name] = event[name], nil
			end
		end
	end
	return event
end

local DEEPEST = 1000 -- levels that cjson decodes

--- Decodes an event of either API to one of core/v1. Fields without a value are cjson.null. Ends the command if fields
--- that evrec does not know are nested too deeply.
---@param json string a source has found it sound
---@return table
function stored_event.decode(json)
	local ok, event = pcall(cjson.decode, json)
	if not ok then
		terminal.fail(1, ("an event cannot be shown: its JSON has more than %d levels"):format(DEEPEST))
	end
	event = stored_event.to_core(event)
	event.apiVersion, event.kind = "v1", "Event"
	return event
end

--- Returns a field that is a table, or an empty one.
function stored_event.part(table_, name)
	local value = table_[name]
	return type(value) == "table" and value or {}
end

--- Returns a field that is a string, or an empty one.
function stored_event.text(table_, name)
	local value = table_[name]
	return type(value) == "string" and value or ""
end

--- Returns a field that is a number, or 0.
function stored_event.number(table_, name)
	local value = table_[name]
	return type(value) == "number" and value or 0
end

--- Returns a field that is a timestamp of RFC 3339, as seconds since 1970; nil if it is unset, or Go's zero time.
function stored_event.time(table_, name)
	local value = table_[name]
	return type(value) == "string" and core.parse_time(value) or nil
end

--- Returns the series; nil if the event has none.
function stored_event.series(event)
	return type(event.series) == "table" and event.series or nil
end

local MOST = 2147483647 -- the largest count of the API, an int32

--- Returns a count as a whole number from 1 on, as large as the API's counts may be; nil if the value is no number.
---@param value any
---@return integer?
function stored_event.whole(value)
	if type(value) ~= "number" then
		return nil
	end
	return value >= 1 and math.floor(math.min(value, MOST)) or 1 -- NaN is not >= 1
end

--- Returns the number of occurrences that an event stands for.
---@return integer
function stored_event.count(event)
	return stored_event.whole((stored_event.series(event) or event).count) or 1
end

--- Returns the time of the last occurrence as `kubectl events` sorts by it: of the series, else lastTimestamp, else
--- eventTime. nil without any.
---@return number? seconds since 1970
function stored_event.last(event)
	local series = stored_event.series(event)
	if series then
		return stored_event.time(series, "lastObservedTime")
	end
	return stored_event.time(event, "lastTimestamp") or stored_event.time(event, "eventTime")
end

--- Returns the time of the first occurrence: firstTimestamp, else eventTime. nil without either.
---@return number? seconds since 1970
function stored_event.first(event)
	return stored_event.time(event, "firstTimestamp") or stored_event.time(event, "eventTime")
end

-- ---- the states of one event ----

---@class evrec.cli.State
---@field version? string the resource version, without zeros before it; nil if it is no whole number
---@field count integer
---@field last number -math.huge without a time

--- Returns the values by which states of an event are compared.
---@return evrec.cli.State
function stored_event.state(event)
	local version = stored_event.text(stored_event.part(event, "metadata"), "resourceVersion"):match "^0*(%d+)$"
	return { version = version, count = stored_event.count(event), last = stored_event.last(event) or -math.huge }
end

--- Returns true if a state of an event may be newer than another state of the same event: by the resource version, else
--- if the event occurred more often or later.
---@param state evrec.cli.State
---@param other evrec.cli.State
---@return boolean
function stored_event.is_newer(state, other)
	local a, b = state.version, other.version
	if a and b and a ~= b then
		-- As texts: they have up to 64 bits, and numbers of LuaJIT 53.
		if #a ~= #b then
			return #a > #b
		end
		return a > b
	end
	return state.count > other.count or state.last > other.last
end

--- Returns who reports an event, by the source, else by the fields of events.k8s.io/v1. Either is empty if it is unset.
---@return string component, string instance
function stored_event.reporter(event)
	local source = stored_event.part(event, "source")
	local component, instance = stored_event.text(source, "component"), stored_event.text(source, "host")
	return component ~= "" and component or stored_event.text(event, "reportingComponent"),
		instance ~= "" and instance or stored_event.text(event, "reportingInstance")
end

--- Returns the object that an event is about, such as "Pod/web-0".
function stored_event.object(event)
	local object = stored_event.part(event, "involvedObject")
	return stored_event.text(object, "kind") .. "/" .. stored_event.text(object, "name")
end

return stored_event
