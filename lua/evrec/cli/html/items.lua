-- Makes the items of a page from events of the Kubernetes API, and from suppressions of a store.
local stages = require "evrec.cli.stages"
local stored_event = require "evrec.cli.stored_event"

local items = {}

local text, part = stored_event.text, stored_event.part

local function joined(separator, first, second)
	return first ~= "" and second ~= "" and first .. separator .. second or first .. second
end

local function milliseconds(seconds)
	return seconds and math.floor(seconds * 1000)
end

--- Makes an item of an event, as stored_event.decode returns it.
---@param event table
---@return evrec.html.item
function items.of_event(event)
	local related = part(event, "related")
	local first, last = stored_event.first(event), stored_event.last(event)
	return {
		object = stored_event.object(event),
		namespace = text(part(event, "involvedObject"), "namespace"),
		type = text(event, "type"),
		reason = text(event, "reason"),
		first = milliseconds(first or last),
		last = milliseconds(last or first),
		count = stored_event.count(event),
		message = text(event, "message"),
		source = joined(", ", stored_event.reporter(event)),
		related = joined("/", text(related, "kind"), text(related, "name")),
	}
end

-- The stages whose occurrences may be in no count, and the words for them. A combined or merged occurrence is in the
-- count of a written event.
local FATES = { rate_limited = "held back", dropped = "dropped" }

--- The meaning of hatched spans on a page with the suppressions of a store.
items.HATCHED = "held back for a time by the rate limit, so that \195\151N of a later write may have them; or dropped"

local function of_suppression(note)
	local object = note.object
	return {
		object = object.kind .. "/" .. object.name,
		namespace = object.namespace,
		type = note.type,
		reason = note.reason,
		first = milliseconds(note.first),
		last = milliseconds(note.last),
		count = note.count,
		fate = FATES[note.stage],
		why = joined(": ", stages.word(note.stage), note.cause),
	}
end

-- A store has suppressions by minute. Suppressions of one kind with less than two minutes between them are one span.
local GAP = 120000

--- Makes items of the suppressions that are hatched. They come as `source:suppressions` of a store gives them, the
--- newest first.
---@param suppressions fun(): table?
---@param wanted fun(note: table): boolean
---@return evrec.html.item[]
function items.of_suppressions(suppressions, wanted)
	local spans, latest = {}, {}
	for note in suppressions do
		if FATES[note.stage] and wanted(note) then
			local item = of_suppression(note)
			local key = table.concat({ item.namespace, item.object, item.type, item.reason, item.why }, "\n")
			local span = latest[key]
			if span and span.first - item.last < GAP then
				span.first, span.last = math.min(span.first, item.first), math.max(span.last, item.last)
				span.count = span.count + item.count
			else
				latest[key], spans[#spans + 1] = item, item
			end
		end
	end
	return spans
end

return items
