-- One line for many events: sums by object, or by reason.
local age = require "evrec.cli.age"
local stored_event = require "evrec.cli.stored_event"
local terminal = require "evrec.cli.terminal"

local group = {}
group.__index = group

group.HEADERS = {
	object = { "LAST SEEN", "FIRST SEEN", "EVENTS", "COUNT", "WARNINGS", "OBJECT", "REASONS" },
	reason = { "LAST SEEN", "FIRST SEEN", "EVENTS", "COUNT", "TYPE", "REASON", "OBJECTS", "MESSAGE" },
}

--- Makes an empty set of groups.
---@param by "object"|"reason"
---@param across boolean whether the events are of several namespaces: then each namespace has groups of its own
function group.new(by, across)
	return setmetatable({ by = by, across = across, by_key = {}, list = {} }, group)
end

local function key_of(self, event)
	local namespace = self.across and stored_event.text(stored_event.part(event, "metadata"), "namespace") or ""
	if self.by == "object" then
		return namespace .. "\n" .. stored_event.object(event), namespace
	end
	return namespace .. "\n" .. stored_event.text(event, "type") .. "\n" .. stored_event.text(event, "reason"), namespace
end

local function group_of(self, event)
	local key, namespace = key_of(self, event)
	local found = self.by_key[key]
	if not found then
		found = { key = key, namespace = namespace, events = 0, count = 0, warnings = 0, counts = {}, parts = 0 }
		self.by_key[key] = found
		self.list[#self.list + 1] = found
	end
	return found
end

-- Counts by reason in a group of an object, and by object in a group of a reason.
local function count_part(found, part, count)
	if not found.counts[part] then
		found.parts = found.parts + 1
	end
	found.counts[part] = (found.counts[part] or 0) + count
end

--- Adds an event.
---@param event table as stored_event.decode returns it
function group:add(event)
	local found = group_of(self, event)
	local count, last, first = stored_event.count(event), stored_event.last(event), stored_event.first(event)
	found.events = found.events + 1
	found.count = found.count + count
	if stored_event.text(event, "type") == "Warning" then
		found.warnings = found.warnings + count
	end
	if first and (not found.first or first < found.first) then
		found.first = first
	end
	if not found.reason or (last and (not found.last or last >= found.last)) then
		found.last = last or found.last
		found.type, found.reason = stored_event.text(event, "type"), stored_event.text(event, "reason")
		found.object, found.message = stored_event.object(event), stored_event.text(event, "message")
	end
	count_part(found, self.by == "object" and stored_event.text(event, "reason") or stored_event.object(event), count)
end

-- "BackOff (x38), Pulled (x2), Started", the most frequent first.
local function reasons_of(found, escape)
	local reasons = {}
	for reason in pairs(found.counts) do
		reasons[#reasons + 1] = reason
	end
	table.sort(reasons, function(a, b)
		if found.counts[a] ~= found.counts[b] then
			return found.counts[a] > found.counts[b]
		end
		return a < b
	end)
	for i, reason in ipairs(reasons) do
		local count = found.counts[reason]
		reasons[i] = escape(terminal.cut(reason)) .. (count > 1 and (" (x%.0f)"):format(count) or "")
	end
	return table.concat(reasons, ", ")
end

--- Orders the groups by namespace, and by object, or by type and reason.
function group:sort()
	table.sort(self.list, function(a, b) return a.key < b.key end)
end

--- Returns the cells of a group.
---@param found table one of `list`
---@param now number seconds since 1970
---@param escape fun(text: string): string
---@return string[]
function group:row(found, now, escape)
	local cells = {
		age.since(found.last, now), age.since(found.first, now),
		("%d"):format(found.events), ("%.0f"):format(found.count),
	}
	if self.by == "object" then
		cells[5], cells[6] = ("%.0f"):format(found.warnings), escape(found.object)
		cells[7] = reasons_of(found, escape)
	else
		cells[5], cells[6] = escape(found.type), escape(terminal.cut(found.reason))
		cells[7], cells[8] = ("%d"):format(found.parts), escape(found.message:match "^%s*([^\n\f\r]*)")
	end
	return cells
end

return group
