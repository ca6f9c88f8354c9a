-- The rows of a table of events: as `kubectl events` prints them, and as `kubectl get events -o wide`.
local age = require "evrec.cli.age"
local stored_event = require "evrec.cli.stored_event"

local event_table = {}

local part, text, number, time = stored_event.part, stored_event.text, stored_event.number, stored_event.time

event_table.HEADER = { "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE" }
event_table.WIDE_HEADER = { "LAST SEEN", "TYPE", "REASON", "OBJECT", "SUBOBJECT", "SOURCE", "MESSAGE", "FIRST SEEN",
	"COUNT", "NAME" }

-- The white space of Unicode that begins or ends a text, beside that of ASCII.
local SPACES = {
	"\194\133", "\194\160", "\225\154\128", "\226\128[\128-\138]", "\226\128[\168\169\175]", "\226\129\159",
	"\227\128\128",
}

--- Removes white space from both ends, as Go's strings.TrimSpace.
---@param message string
---@return string
function event_table.trim(message)
	local before
	repeat
		before = message
		message = message:match "^%s*(.-)%s*$"
		if message:find "^[\194\225-\227]" or message:find "[\128-\191]$" then
			for _, space in ipairs(SPACES) do
				message = message:gsub("^" .. space, ""):gsub(space .. "$", "")
			end
		end
	until message == before
	return message
end

-- "5m (x3 over 1h)" if it happened more than once, else the age of the first occurrence.
local function interval(event, now)
	local first = age.since(time(event, "eventTime") or time(event, "firstTimestamp"), now)
	local series = stored_event.series(event)
	local last
	if series then
		last = time(series, "lastObservedTime")
	elseif number(event, "count") > 1 then
		last = time(event, "lastTimestamp")
	else
		return first
	end
	return ("%s (x%.0f over %s)"):format(age.since(last, now), number(series or event, "count"), first)
end

--- Returns the cells of an event as `kubectl events` prints them.
---@param event table as stored_event.decode returns it
---@param now number seconds since 1970
---@param escape fun(text: string): string
---@return string[]
function event_table.row(event, now, escape)
	return {
		interval(event, now),
		escape(text(event, "type")),
		escape(text(event, "reason")),
		escape(stored_event.object(event)),
		escape(event_table.trim(text(event, "message"))),
	}
end

local function source_of(event)
	local component, instance = stored_event.reporter(event)
	return instance == "" and component or component .. ", " .. instance
end

local function target_of(event)
	local object = part(event, "involvedObject")
	local kind, name = text(object, "kind"):lower(), text(object, "name")
	return name == "" and kind or kind .. "/" .. name
end

-- Cuts a text at the end of its first line.
local function first_line(cell)
	local place = cell:find "[\n\f\r]"
	return place and cell:sub(1, place - 1) .. "..." or cell
end

--- Returns the cells of an event as `kubectl get events -o wide` prints them.
---@param event table as stored_event.decode returns it
---@param now number seconds since 1970
---@param escape fun(text: string): string
---@return string[]
function event_table.wide_row(event, now, escape)
	local series = stored_event.series(event)
	local first = age.since(stored_event.first(event), now)
	local last = time(event, "lastTimestamp")
	local count = number(series or event, "count")
	local cells = {
		(series and age.since(time(series, "lastObservedTime"), now)) or (last and age.since(last, now)) or first,
		text(event, "type"),
		text(event, "reason"),
		target_of(event),
		text(part(event, "involvedObject"), "fieldPath"),
		source_of(event),
		event_table.trim(text(event, "message")),
		first,
		("%.0f"):format((series or count ~= 0) and count or 1),
		text(part(event, "metadata"), "name"),
	}
	for i, cell in ipairs(cells) do
		cells[i] = escape(first_line(cell))
	end
	return cells
end

--- Returns the cell of the column NAMESPACE.
function event_table.namespace(event, escape)
	return escape(first_line(text(part(event, "metadata"), "namespace")))
end

return event_table
