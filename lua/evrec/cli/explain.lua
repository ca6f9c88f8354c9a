-- evrec explain KIND/NAME: tells why an object fell silent, from a trace, from the process that writes for a share, or
-- from an event store.
local evrec = require "evrec"
local kinds = require "evrec.kinds"
local options = require "evrec.options"

local age = require "evrec.cli.age"
local plural = require "evrec.cli.plural"
local replay = require "evrec.cli.replay"
local replay_table = require "evrec.cli.replay_table"
local serve = require "evrec.cli.serve"
local sources = require "evrec.cli.sources"
local stages = require "evrec.cli.stages"
local stored_event = require "evrec.cli.stored_event"
local terminal = require "evrec.cli.terminal"
local values = require "evrec.cli.values"

local explain = {}

local SILENT_AFTER = 600 -- seconds, unless --silent-after says otherwise

-- The default key of the spam filter, and the reason.
local BY_REASON = "source.component,source.host,involvedObject.kind,involvedObject.namespace,involvedObject.name,"
	.. "involvedObject.uid,involvedObject.apiVersion,type,reason"

local DESCRIPTION = "Tell which events of an object were combined, limited in rate or lost, and why: as a trace of "
	.. "recorded events has it, or as the process that writes the events of a share remembers it, or as an event store "
	.. "has it that evrec record or a sink with the option suppressions wrote. Exits with 0; 1 if nothing is known of the "
	.. "object, or reading failed; 2 on misuse."

local EPILOG = [[
Examples:
   evrec explain cronjob/hello --trace events.trace
   evrec explain pod/web-0 -n shop --share /etc/evrec/events.lua
   evrec explain pod/web-0 -n shop --store events.db]]

--- Adds the arguments to a parser of argparse.
function explain.define(parser)
	parser:description(DESCRIPTION)
	parser:epilog(EPILOG)
	parser:help_max_width(100)
	parser:argument("object", "The object, such as pod/web-0."):argname "KIND/NAME":convert(values.object())
	parser:option("-n --namespace", "Of this namespace; else of any."):argname "NAME"
	parser:mutex(
		parser:option("--trace", "Recorded events, in any of the forms that evrec replay takes."):argname "TRACE",
		parser:option("--share", "The file of evrec serve, which returns a broadcaster with the option share: its owner is "
			.. "asked."):argname "FILE",
		parser:option("--store", "An event store, a file that evrec.sink.store wrote."):argname "PATH")
	parser:option("--silent-after", "With --trace: a reason that goes on for longer than this after its last write is "
		.. "lost (default: 10m)."):argname "TIME":convert(values.duration "--silent-after")
end

-- ---- the object ----

local function matcher(arguments)
	local kind, name = options.kind_and_name(arguments.object)
	local known = kinds.read(kind)
	kind = (known and known.kind or kind):lower()
	return function(object)
		return object.name == name and object.kind and object.kind:lower() == kind
			and (not arguments.namespace or object.namespace == arguments.namespace)
	end
end

-- ---- buckets of tokens ----

-- The key of a group: the one that a callback chose, or the default one.
local function key_of(group)
	return group.key or replay_table.source_key(group)
end

-- Tells by which key a group of occurrences has tokens, and which other reasons are known to take them, sorted.
-- `in_words` returns the key of a group.
local function bucket(group, found, in_words)
	local key, reasons, seen = in_words(group), {}, { [group.reason] = true }
	for _, other in ipairs(found) do
		if not seen[other.reason] and in_words(other) == key then
			seen[other.reason] = true
			reasons[#reasons + 1] = other.reason
		end
	end
	if #reasons == 0 then
		return ("No other reason is known to take tokens from its bucket (%s)"):format(key)
	end
	table.sort(reasons)
	return ("Its bucket (%s) is also that of %s"):format(key, table.concat(reasons, ", "))
end

-- Prints why groups of the stage "rate_limited" were suppressed.
local function print_limited(found)
	for _, group in ipairs(found) do
		if group.stage == "rate_limited" then
			terminal.write_prose(("%s: %s %s, as there was no token for %s. %s."):format(group.reason,
				plural.were(group.suppressed, "occurrence"), stages.word(group.stage), plural.them(group.suppressed),
				bucket(group, found, key_of)))
		end
	end
end

-- A group as replay_table names it, of an object as broadcaster:explain, notes and events have it.
local function group_of(object, fields)
	fields.kind, fields.namespace, fields.name = object.kind or "", object.namespace or "", object.name or ""
	return fields
end

-- ---- from a trace ----

local function select(groups, matches)
	local found = {}
	for _, group in ipairs(groups) do
		if matches(group) then
			found[#found + 1] = group
		end
	end
	table.sort(found, function(a, b) return replay_table.before(a, b, function(g) return g.count end) end)
	return found
end

local function since_first(group, time)
	return time and age.of_seconds(time - group.first) or "never"
end

local function print_groups(found)
	local rows = { { "REASON", "TYPE", "COUNT", "WRITTEN", "COMBINED", "RATE LIMITED", "LAST WRITTEN AFTER",
		"LAST AFTER" } }
	for i, group in ipairs(found) do
		local tally = group.variants[1]
		rows[i + 1] = {
			group.reason, group.type, group.count, tally.created + tally.patched, tally.aggregated, tally.rate_limited,
			since_first(group, tally.last_write), since_first(group, group.last),
		}
	end
	terminal.write_rows(rows)
end

local function print_why(lost, found, variant)
	local group, tally = lost.group, lost.group.variants[1]
	local text = ("%s: %d of %s %s lost, as there was no token for %s. %s"):format(group.reason, tally.unseen,
		plural.counted(group.count, "occurrence"), tally.unseen == 1 and "is" or "are", plural.them(tally.unseen),
		bucket(group, found, function(other) return replay_table.spam_key(other, variant) end))
	if #lost.cured_by > 0 then
		text = text .. ". A spam_key_func that adds the reason shows it"
	end
	terminal.write_prose(text .. ".")
end

local function explain_trace(arguments)
	local silent_after = arguments.silent_after or SILENT_AFTER
	local result = replay.results(arguments.trace, { { spam_key = BY_REASON } }, silent_after,
		"--store PATH in place of --trace")
	local found, any = select(result.groups, matcher(arguments)), false
	if #found == 0 then
		terminal.tell(("no event of %s was recorded"):format(arguments.object))
		return 1
	end
	terminal.write_prose(("By %s, %s: %s."):format(result.trace.source, result.trace.description,
		replay_table.exactness(result.trace)))
	terminal.write "\n"
	print_groups(found)
	terminal.write "\n"
	for _, lost in ipairs(result.lost) do
		for _, group in ipairs(found) do
			if lost.group == group then
				any = true
				print_why(lost, found, result.variants[1])
			end
		end
	end
	if not any then
		terminal.write(("No reason went on for longer than %s without a write.\n"):format(
			age.of_seconds(silent_after)))
	end
	return 0
end

-- ---- from the owner of a share ----

-- The groups of a sink's suppressed events.
local function explained_groups(suppressed)
	local groups = {}
	for i, s in ipairs(suppressed) do
		local key = s.spam_key
		groups[i] = group_of(s.object, {
			reason = s.reason or "", type = s.type or "", stage = s.stage, suppressed = s.count,
			component = type(key) == "table" and (key.component or key.reportingComponent) or nil,
			key = type(key) == "string" and key or nil,
		})
	end
	return groups
end

local function explain_share(arguments)
	local broadcaster, message = serve.load(arguments.share)
	if not broadcaster then
		terminal.fail(2, message)
	end
	local sinks
	sinks, message = broadcaster:explain(nil, 5)
	local role = broadcaster:stats().share
	broadcaster:shutdown(0)
	if not sinks then
		terminal.fail(1, message)
	elseif role ~= "worker" then
		terminal.fail(1, ("%s: no process writes the events of this share"):format(arguments.share))
	end
	local rows = { { "SINK", "STAGE", "CAUSE", "COUNT", "REASON", "TYPE", "NEXT TOKEN", "MESSAGE" } }
	local matches, by_sink = matcher(arguments), {}
	for i, sink in ipairs(sinks) do
		local found = {}
		for _, s in ipairs(sink.suppressed) do
			if matches(s.object) then
				found[#found + 1] = s
				rows[#rows + 1] = { sink.name, stages.word(s.stage), s.cause or "", ("%d"):format(s.count), s.reason, s.type or "",
					s.next_token_in and age.of_seconds(s.next_token_in) or "", s.message or "" }
			end
		end
		by_sink[i] = explained_groups(found)
	end
	if #rows == 1 then
		terminal.tell(("no event of %s was suppressed lately"):format(arguments.object))
		return 1
	end
	terminal.write(terminal.cell(("By the process that writes for %s."):format(arguments.share)) .. "\n\n")
	terminal.write_rows(rows)
	terminal.write "\n"
	for _, groups in ipairs(by_sink) do
		print_limited(groups)
	end
	return 0
end

-- ---- from a store ----

-- Adds up the suppressions that differ in time alone; the newest comes first. Returns the sums, and the number of notes
-- of suppressions that the store lacks. An earlier evrec did not tell them from lost notes of occurrences.
local function sums_of(suppressions, matches)
	local sums, by_key, lost = {}, {}, 0
	for note in suppressions do
		if note.stage == "lost" then
			lost = lost + (note.cause ~= "occurrence" and note.count or 0)
		elseif matches(note.object) then
			local key = table.concat({ note.object.namespace, note.stage, note.cause, note.reason, note.type, note.key }, "\n")
			local sum = by_key[key]
			if not sum then
				by_key[key], sums[#sums + 1] = note, note
			else
				sum.count, sum.first = sum.count + note.count, math.min(sum.first, note.first)
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
		local group = group_of(stored_event.part(event, "involvedObject"), {
			reason = stored_event.text(event, "reason"), type = stored_event.text(event, "type"),
			component = (stored_event.reporter(event)),
		})
		local key = key_of(group) .. "\n" .. group.reason
		if not seen[key] then
			seen[key], groups[#groups + 1] = true, group
		end
	end
	return groups
end

-- A note has no source. Returns that of the written events with its reason, else the only one of its object and type.
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

-- The groups of the sums, and those of the written events behind them.
local function stored_groups(source, sums, arguments)
	local groups, written = {}, written_groups(source, arguments)
	for i, sum in ipairs(sums) do
		groups[i] = group_of(sum.object, {
			reason = sum.reason, type = sum.type, stage = sum.stage, suppressed = sum.count,
			key = sum.key ~= "" and sum.key or nil,
		})
		groups[i].component = component_of(groups[i], written)
	end
	for _, group in ipairs(written) do
		groups[#groups + 1] = group
	end
	return groups
end

local NONE_WAS = "If evrec record wrote them, or sinks with the option suppressions = true, none was. Other writers "
	.. "leave no notes"
local LACKS_NOTES = "Such a note may be among those that the store lacks"

-- Tells why the store explains nothing of the object: it has no event of it, or no suppression. With `lacks_notes` it
-- may have lost the note of one.
local function tell_nothing(source, arguments, lacks_notes)
	local count = 0
	for _ in read_events(source, arguments) do
		count = count + 1
	end
	local object = arguments.object .. (arguments.namespace and " in the namespace " .. arguments.namespace or "")
	if count == 0 then
		terminal.tell(("%s has no event of %s"):format(arguments.store, object))
		return
	end
	terminal.tell(("%s has %s of %s, and no note that one was combined or held back. %s"):format(arguments.store,
		plural.counted(count, "event"), object, lacks_notes and LACKS_NOTES or NONE_WAS))
end

local function explain_store(arguments)
	local _, name = options.kind_and_name(arguments.object)
	local source = sources.open { store = arguments.store }
	local suppressions, message = source:suppressions { for_object = { name = name } }
	if not suppressions then
		terminal.fail(1, message)
	end
	local sums, lost = sums_of(sources.guarded(suppressions), matcher(arguments))
	local rows = { { "STAGE", "CAUSE", "COUNT", "REASON", "TYPE", "FIRST", "LAST", "MESSAGE" } }
	local now = evrec.clock():now()
	for i, sum in ipairs(sums) do
		rows[i + 1] = { stages.word(sum.stage), sum.cause, ("%d"):format(sum.count), sum.reason, sum.type,
			age.of_seconds(now - sum.first), age.of_seconds(now - sum.last), sum.message }
	end
	if #sums > 0 or lost > 0 then
		terminal.write(terminal.neutral(("By the suppressions in the event store %s.\n\n"):format(arguments.store)))
	end
	if #sums > 0 then
		terminal.write_rows(rows)
		terminal.write "\n"
		print_limited(stored_groups(source, sums, arguments))
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

--- Runs it. Returns the command's status.
---@param arguments table
---@return integer
function explain.run(arguments)
	if arguments.silent_after and not arguments.trace then
		terminal.fail(2, "--silent-after: only together with --trace")
	end
	if arguments.trace then
		return explain_trace(arguments)
	elseif arguments.share then
		return explain_share(arguments)
	elseif arguments.store then
		return explain_store(arguments)
	end
	terminal.fail(2, "expected --trace, --share or --store (see evrec explain --help)")
end

return explain
