-- evrec explain KIND/NAME --store: from the notes of an event store.
local evrec = require "evrec"
local options = require "evrec.options"

local age = require "evrec.cli.age"
local explained = require "evrec.cli.explained"
local plural = require "evrec.cli.plural"
local sources = require "evrec.cli.sources"
local stages = require "evrec.cli.stages"
local stored_event = require "evrec.cli.stored_event"
local terminal = require "evrec.cli.terminal"

local explain_store = {}

-- Adds up the suppressions that differ in time, uid or apiVersion alone; any of them may have the last occurrence.
-- Returns the sums, and the number of lost notes of suppressions. An earlier evrec did not distinguish these from lost
-- notes of occurrences.
local function sums_of(suppressions, matches)
	local sums, by_key, lost = {}, {}, 0
	for note in suppressions do
		if note.stage == "lost" then
			lost = lost + (note.cause ~= "occurrence" and note.count or 0)
		elseif matches(note.object) then
			local key = table.concat({ note.object.namespace, note.component, note.host, note.stage, note.cause, note.reason,
				note.type, note.key }, "\n")
			local sum = by_key[key]
			if not sum then
				by_key[key], sums[#sums + 1] = note, note
			else
				sum.count, sum.first = sum.count + note.count, math.min(sum.first, note.first)
				if note.last > sum.last then
					sum.last, sum.message = note.last, note.message
				end
			end
		end
	end
	return sums, lost
end

-- Returns an iterator over the events that the store has of the object, or ends the command.
local function read_events(source, arguments)
	local ok, iterate, message = pcall(source.query, source, {
		for_object = arguments.object, namespace = arguments.namespace,
	})
	if not ok then
		terminal.fail(2, (sources.reworded(iterate):gsub("^%-%-for", "KIND/NAME")))
	end
	return iterate and sources.guarded(iterate) or terminal.fail(1, message)
end

-- The groups of the events that the store has of the object, one for each reason and type: they take tokens, too.
local function written_groups(source, arguments)
	local groups, seen = {}, {}
	for _, json in read_events(source, arguments) do
		local event = stored_event.decode(json)
		local group = explained.group_of(stored_event.part(event, "involvedObject"), {
			reason = stored_event.text(event, "reason"), type = stored_event.text(event, "type"),
			component = (stored_event.reporter(event)),
		})
		local key = explained.key_of(group) .. "\n" .. group.reason
		if not seen[key] then
			seen[key], groups[#groups + 1] = true, group
		end
	end
	return groups
end

-- A note of an earlier evrec has no reporter. Returns that of the written events with its reason, else the only one of
-- its object and type.
local function component_of(group, written)
	local only, several
	for _, other in ipairs(written) do
		if other.namespace == group.namespace and other.type == group.type then
			if other.reason == group.reason then
				return other.component
			end
			only, several = other.component, several or only and only ~= other.component
		end
	end
	return not several and only or nil
end

-- The groups of the sums, followed by those of the written events.
local function stored_groups(source, sums, arguments)
	local groups, written = {}, written_groups(source, arguments)
	for i, sum in ipairs(sums) do
		groups[i] = explained.group_of(sum.object, {
			reason = sum.reason, type = sum.type, stage = sum.stage, suppressed = sum.count,
			key = sum.key ~= "" and sum.key or nil,
		})
		groups[i].component = sum.component ~= "" and sum.component or component_of(groups[i], written)
	end
	for _, group in ipairs(written) do
		groups[#groups + 1] = group
	end
	return groups
end

local NONE_WAS = "If evrec record wrote them, or sinks with the option suppressions = true, none was. Other writers "
	.. "leave no notes"
local LACKS_NOTES = "Such a note may be among the lost ones"

-- Says why there is nothing to explain: the store has no event of the object, or no suppression. With `lacks_notes` it
-- may have lost a note.
local function tell_nothing(source, arguments, lacks_notes)
	local count = 0
	for _ in read_events(source, arguments) do
		count = count + 1
	end
	local object = explained.object(arguments)
	if count == 0 then
		explained.tell_nothing(("%s has no event of %s"):format(arguments.store, object), arguments)
		return
	end
	terminal.tell(("%s has %s of %s, and no note that one was combined or held back. %s"):format(arguments.store,
		plural.counted(count, "event"), object, lacks_notes and LACKS_NOTES or NONE_WAS))
end

--- Explains the object. Returns the command's status.
---@param arguments table
---@return integer
function explain_store.run(arguments)
	local _, name = options.kind_and_name(arguments.object)
	local source = sources.open { store = arguments.store }
	local suppressions, message = source:suppressions { for_object = { name = name } }
	if not suppressions then
		terminal.fail(1, message)
	end
	local sums, lost = sums_of(sources.guarded(suppressions), explained.matcher(arguments))
	local rows, now = {}, evrec.clock():now()
	for i, sum in ipairs(sums) do
		rows[i] = { namespace = sum.object.namespace, component = sum.component, host = sum.host,
			stages.word(sum.stage), sum.cause, ("%d"):format(sum.count), sum.reason, sum.type, age.of_seconds(now - sum.first),
			age.of_seconds(now - sum.last), sum.message }
	end
	if #sums > 0 or lost > 0 then
		terminal.write(terminal.neutral(("By the suppressions in the event store %s.\n\n"):format(arguments.store)))
	end
	if #sums > 0 then
		explained.print_rows({ "STAGE", "CAUSE", "COUNT", "REASON", "TYPE", "FIRST", "LAST", "MESSAGE" }, rows)
		explained.print_limited(stored_groups(source, sums, arguments))
	end
	if lost > 0 then
		terminal.write(("\nThe store lacks %s, perhaps some of this object.\n"):format(plural.counted(lost, "note")))
	end
	if #sums == 0 then
		tell_nothing(source, arguments, lost > 0)
		return 1
	end
	return 0
end

return explain_store
