-- evrec record OBJECT TYPE REASON MESSAGE: events of shell scripts.
--
-- Each call is a process, so the counts of events are in a state file: equal calls are one event. Calls at the same
-- time wait for the file, one after the other.
local core = require "evrec.core"
local kinds = require "evrec.kinds"
local options = require "evrec.options"
local testing = require "evrec.testing"

local plural = require "evrec.cli.plural"
local record_session = require "evrec.cli.record_session"
local record_target = require "evrec.cli.record_target"
local sources = require "evrec.cli.sources"
local terminal = require "evrec.cli.terminal"
local values = require "evrec.cli.values"

local record = {}

local IDLE = 0.2 -- seconds without a line, after which the state file is free for other processes
local LAST_READ = 1 -- seconds at most for the lines that are in the pipe when a signal comes
local STATUS = { INT = 130, TERM = 143 } -- as of a program that the signal ends, in a shell

local function define_event(parser)
	parser:group("The event",
		parser:option("-n --namespace", "Of the object and the event; else the context's, and default for a store or lines.")
			:argname "NAME":convert(values.namespace),
		parser:option("--component", "Who reports the event."):argname "NAME":default "evrec",
		parser:option("--host", "Where the reporter runs."):argname "NAME",
		parser:option("--related", "A second object that the event is about."):argname "KIND/NAME",
		parser:option("--action", "What was done, in CamelCase."):argname "ACTION")
end

local function define_target(parser)
	local kubeconfig, context, allow_exec = sources.define_cluster(parser)
	parser:group("Where it is written",
		parser:option("--store", "Into an event store, which is made if need be; else into the cluster."):argname "PATH",
		parser:option("--lines", "Into a file, one JSON text a line; - is standard output."):argname "PATH",
		kubeconfig, context, allow_exec,
		parser:option("--state-file", "Where counts are kept between calls: by default PATH.state, for a cluster a file in "
			.. "$XDG_STATE_HOME/evrec."):argname "PATH",
		parser:option("--burst-size", "Events about one object at once; after them, --qps limits. Else there is no limit.")
			:argname "N":convert(values.number("--burst-size", 1, true)),
		parser:option("--qps", "Events a second about one object, such as 1 or 1/300."):argname "NUMBER"
			:convert(values.number("--qps", 0)),
		parser:option("--timeout", "Seconds to wait for the write."):argname "SECONDS":default "10"
			:convert(values.timeout))
end

--- Adds the arguments to a parser of argparse.
function record.define(parser)
	parser:description("Record an event into an event store, a file of JSON lines, or a cluster. Equal calls are one "
		.. "event, which counts them. Exits with 0 if the event was written, 1 if it was lost, 2 on misuse.")
	parser:epilog [[
Examples:
   evrec record --store events.db job/backup Warning BackupFailed 'disk /dev/sdb is full'
   tail -n 0 -F error.log | evrec record --store events.db service/shop Warning Logged -
   evrec record --store events.db -- job/backup Warning BackupFailed "$message"   # which may begin with -]]
	parser:usage "Usage: evrec record [OPTION]... KIND/NAME TYPE REASON MESSAGE\n       evrec record [OPTION]... -"
	parser:help_max_width(100)
	parser:help_description_margin(30)
	parser:argument("object", "What the event is about, such as job/backup; - reads KIND/NAME TYPE REASON MESSAGE from "
		.. "each line of standard input."):argname "KIND/NAME"
	parser:argument("type", "Normal or Warning."):argname "TYPE":args "?"
	parser:argument("reason", "Why, in CamelCase, such as BackupFailed."):argname "REASON":args "?"
	parser:argument("message", "A text for people; - records an event for each line of standard input."):argname "MESSAGE"
		:args "?"
	define_event(parser)
	define_target(parser)
end

-- ---- recording ----

local warned = {}

-- Warns, once for each kind, that a kind of the recorded event's objects may be misspelt.
local function warn_of_kinds(words, arguments)
	for _, text in ipairs { words.object, arguments.related } do
		local word = options.kind_and_name(text)
		local message = values.misspelt_kind(word, "; the event is recorded with it all the same")
		if message and not warned[word] then
			terminal.tell(message)
			warned[word] = true
		end
	end
end

-- Reads KIND/NAME. Returns a reference; or nil and a message.
local function reference(text, namespace, what)
	local word, name = options.kind_and_name(text)
	local kind = word and kinds.read(word)
	if not kind then
		return nil, ("%s: expected KIND/NAME, got '%s'"):format(what, text)
	end
	return {
		kind = kind.kind, apiVersion = kind.api_version, name = name, namespace = kind.namespaced and namespace or nil,
	}
end

local function namespace_of(arguments)
	return arguments.namespace or arguments.default_namespace
end

-- Reads the object of an event, whose namespace is also the event's. Results as of `reference`.
local function object(text, arguments)
	local regarding, message = reference(text, namespace_of(arguments), "OBJECT")
	if regarding and not regarding.namespace and arguments.namespace then
		return nil, ("--namespace: not together with %s, as a %s has no namespace; its events are in the namespace default")
			:format(text, regarding.kind)
	end
	return regarding, message
end

-- Reads the related object, if there is one. Results as of `reference`.
local function related_object(arguments)
	if arguments.related then
		return reference(arguments.related, namespace_of(arguments), "--related")
	end
end

-- Records one event. Returns true; or nil, a message and the name of the failure.
local function emit(session, arguments, words)
	local regarding, message = object(words.object, arguments)
	if not regarding then
		return nil, message
	end
	return session:emit {
		regarding = regarding, related = related_object(arguments), type = words.type, reason = words.reason,
		note = words.message, action = arguments.action,
	}
end

-- The words of a line; nil and a message if it has too few.
local function words_of(line, arguments)
	if arguments.object ~= "-" then
		return { object = arguments.object, type = arguments.type, reason = arguments.reason, message = line }
	end
	local object_name, type_of, reason, message = line:match "^%s*(%S+)%s+(%S+)%s+(%S+)%s+(.*)$"
	if not object_name then
		return nil, "expected KIND/NAME TYPE REASON MESSAGE"
	end
	return { object = object_name, type = type_of, reason = reason, message = message }
end

-- Returns a function for each line, which returns whether the line was recorded or blank.
local function line_recorder(session, arguments)
	local number = 0
	return function(line)
		number = number + 1
		if not line:find "%S" then
			return true
		end
		local words, message = words_of(line, arguments)
		local ok
		if words then
			ok, message = emit(session, arguments, words)
		end
		if ok then
			warn_of_kinds(words, arguments)
		else
			terminal.tell(("standard input: line %d: %s"):format(number, message))
		end
		session:tell()
		return ok
	end
end

-- Calls `take` for the lines that have arrived, and for the last one, even if it has no line feed.
local function take_rest(take, clock)
	local deadline = clock:now() + LAST_READ
	local line = core.next_line(0)
	while line and clock:now() < deadline do
		take(line)
		line = core.next_line(0)
	end
	line = line or core.next_line()
	while line do
		take(line)
		line = core.next_line()
	end
end

-- Records an event for each line. Returns the status.
local function record_lines(session, arguments)
	local status, failure = 0, nil
	local record_line = line_recorder(session, arguments)
	local function take(text)
		status = record_line(text) and status or 1
	end
	local signal = core.wait_for_signal(0)
	while not signal do
		local line, message = core.next_line(IDLE)
		failure = message
		if line then
			take(line)
		elseif line == false then
			session:rest()
		else
			break
		end
		signal = core.wait_for_signal(0)
	end
	if failure then
		terminal.tell("standard input: " .. failure)
		status = 1
	end
	if signal then
		take_rest(take, session.clock)
	end
	session:close()
	if session.lost_count > 0 then
		terminal.tell("standard input: " .. plural.were(session.lost_count, "event") .. " lost")
	end
	return signal and STATUS[signal] or session.lost and 1 or status
end

-- Records the event of the arguments. Returns the status.
local function record_one(session, arguments)
	local ok, message, name = emit(session, arguments, arguments)
	if not ok then
		terminal.fail(name == "dropped" and 1 or 2, message)
	end
	warn_of_kinds(arguments, arguments)
	session:close()
	if session.lost and session.reported then
		terminal.tell "the event was not written"
	end
	return session.lost and 1 or 0
end

local function check(_, message)
	if message then
		terminal.fail(2, message)
	end
end

-- Ends the command, before a file is made, if the event, or the fields that all lines share, would be refused. A
-- recorder without a sink checks them.
local function check_common(arguments)
	local made, recorder = pcall(testing.recorder, {
		component = arguments.component, host = arguments.host, broadcaster = { on_error = false },
	})
	if not made then
		terminal.fail(2, sources.reworded(recorder))
	end
	local each_has_all = arguments.object == "-"
	check(emit(recorder, arguments, {
		object = each_has_all and "pod/a" or arguments.object, type = each_has_all and "Normal" or arguments.type,
		reason = each_has_all and "Checked" or arguments.reason,
		message = arguments.message ~= "-" and arguments.message or "a line",
	}))
end

--- Runs it. Returns the command's status.
---@param arguments table as argparse made it
---@return integer
function record.run(arguments)
	local from_lines = arguments.object == "-" or arguments.message == "-"
	if arguments.object == "-" and arguments.type then
		terminal.fail(2, ("a - in the place of KIND/NAME reads KIND/NAME TYPE REASON MESSAGE from each line of standard "
			.. "input: leave out '%s' and what follows, or name the object"):format(arguments.type))
	elseif arguments.object ~= "-" and not arguments.message then
		local given = 1 + (arguments.type and 1 or 0) + (arguments.reason and 1 or 0)
		terminal.fail(2, ("expected KIND/NAME TYPE REASON MESSAGE, got %s (see evrec record --help)"):format(
			plural.counted(given, "word")))
	end
	if arguments.object ~= "-" then
		check(object(arguments.object, arguments))
	end
	check(related_object(arguments))
	local make, sink_options
	make, sink_options, arguments.default_namespace = record_target.choose(arguments)
	check_common(arguments)
	local session = record_session.new(arguments, make, sink_options)
	return (from_lines and record_lines or record_one)(session, arguments)
end

return record
