-- evrec explain KIND/NAME: says why an object has no new events, from a trace, from the owner of a share, or from an
-- event store.
local age = require "evrec.cli.age"
local explain_store = require "evrec.cli.explain_store"
local explained = require "evrec.cli.explained"
local plural = require "evrec.cli.plural"
local replay = require "evrec.cli.replay"
local replay_table = require "evrec.cli.replay_table"
local serve = require "evrec.cli.serve"
local stages = require "evrec.cli.stages"
local terminal = require "evrec.cli.terminal"
local values = require "evrec.cli.values"

local explain = {}

local SILENT_AFTER = 600 -- seconds, unless --silent-after says otherwise

local ANSWER = 5 -- seconds in which the owner of a share is to be found, and to answer

-- The default key of the spam filter, and the reason.
local BY_REASON = "source.component,source.host,involvedObject.kind,involvedObject.namespace,involvedObject.name,"
	.. "involvedObject.uid,involvedObject.apiVersion,type,reason"

local DESCRIPTION = "Say which events of an object were combined, limited in rate or lost, and why: from a trace of "
	.. "recorded events, from the process that writes the events of a share, or from an event store that evrec record "
	.. "or a sink with the option suppressions wrote. Exits with 0; 1 if nothing is known of the object, or reading "
	.. "failed; 2 on misuse."

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
	parser:option("-n --namespace", "Of this namespace; else of any."):argname "NAME":action(values.set_namespace)
	parser:mutex(
		parser:option("--trace", "Recorded events, in any of the forms that evrec replay takes."):argname "TRACE",
		parser:option("--share", "The file of evrec serve, which returns a broadcaster with the option share: its owner is "
			.. "asked."):argname "FILE",
		parser:option("--store", "An event store, a file that evrec.sink.store wrote."):argname "PATH")
	parser:option("--silent-after", "With --trace: a reason that goes on for longer than this after its last write is "
		.. "lost (default: 10m)."):argname "TIME":convert(values.duration "--silent-after")
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

-- Who reported a group, by the fields of core/v1, or by those of events.k8s.io/v1.
local function component_of(group)
	return group.component or group.controller
end

local function host_of(group)
	return group.host or group.instance
end

local function print_groups(found)
	local rows = {}
	for i, group in ipairs(found) do
		local tally = group.variants[1]
		rows[i] = {
			namespace = group.namespace, component = component_of(group), host = host_of(group),
			group.reason, group.type, group.count, tally.created + tally.patched, tally.aggregated, tally.rate_limited,
			since_first(group, tally.last_write), since_first(group, group.last),
		}
	end
	explained.print_rows({ "REASON", "TYPE", "COUNT", "WRITTEN", "COMBINED", "RATE LIMITED", "LAST WRITTEN AFTER",
		"LAST AFTER" }, rows)
end

local function print_why(lost, found, variant)
	local group, tally = lost.group, lost.group.variants[1]
	local text = ("%s: %d of %s %s lost, as there was no token for %s. %s"):format(group.reason, tally.unseen,
		plural.counted(group.count, "occurrence"), tally.unseen == 1 and "is" or "are", plural.them(tally.unseen),
		explained.bucket(group, found, function(other) return replay_table.spam_key(other, variant) end))
	if #lost.cured_by > 0 then
		text = text .. ". A spam_key_func that adds the reason shows it"
	end
	terminal.write_prose(text .. ".")
end

local function explain_trace(arguments)
	local silent_after = arguments.silent_after or SILENT_AFTER
	local result = replay.results(arguments.trace, { { spam_key = BY_REASON } }, silent_after,
		"--store PATH in place of --trace")
	local found, any = select(result.groups, explained.matcher(arguments)), false
	if #found == 0 then
		explained.tell_nothing(("no event of %s was recorded"):format(explained.object(arguments)), arguments)
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

-- Who reported a suppressed event, by a key of the fields that it has. The key of a callback is a string.
local function source_of(suppressed)
	local key = type(suppressed.spam_key) == "table" and suppressed.spam_key
		or type(suppressed.aggregate_key) == "table" and suppressed.aggregate_key or {}
	return key.component or key.reportingComponent, key.host or key.reportingInstance
end

-- The groups of a sink's suppressed events.
local function explained_groups(suppressed)
	local groups = {}
	for i, s in ipairs(suppressed) do
		local key = s.spam_key
		groups[i] = explained.group_of(s.object, {
			reason = s.reason or "", type = s.type or "", stage = s.stage, suppressed = s.count,
			component = (source_of(s)),
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
	sinks, message = broadcaster:explain(nil, ANSWER)
	local role = broadcaster:stats().share
	broadcaster:shutdown(0)
	if not sinks then
		terminal.fail(1, (message:gsub("^share: no owner was found within %d+ ms$",
			("no process that writes for this share was found within %d s"):format(ANSWER))))
	elseif role ~= "worker" then
		terminal.fail(1, ("%s: no process writes the events of this share"):format(arguments.share))
	end
	local rows, matches, by_sink = {}, explained.matcher(arguments), {}
	for i, sink in ipairs(sinks) do
		local found = {}
		for _, s in ipairs(sink.suppressed) do
			if matches(s.object) then
				found[#found + 1] = s
				local component, host = source_of(s)
				rows[#rows + 1] = { namespace = s.object.namespace, component = component, host = host,
					sink.name, stages.word(s.stage), s.cause or "", ("%d"):format(s.count), s.reason, s.type or "", s.next_token_in
						and age.of_seconds(s.next_token_in) or "", s.message or "" }
			end
		end
		by_sink[i] = explained_groups(found)
	end
	if #rows == 0 then
		explained.tell_nothing(("no event of %s was suppressed lately"):format(explained.object(arguments)), arguments)
		return 1
	end
	terminal.write(terminal.cell(("By the process that writes for %s."):format(arguments.share)) .. "\n\n")
	explained.print_rows({ "SINK", "STAGE", "CAUSE", "COUNT", "REASON", "TYPE", "NEXT TOKEN", "MESSAGE" }, rows)
	for _, groups in ipairs(by_sink) do
		explained.print_limited(groups)
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
		return explain_store.run(arguments)
	end
	terminal.fail(2, "expected --trace, --share or --store (see evrec explain --help)")
end

return explain
