-- The command `evrec`, which lua/bin/evrec runs: reads its arguments, and calls the module of a subcommand.
local argparse = require "argparse"
local evrec = require "evrec"
local core = require "evrec.core"

local progress = require "evrec.cli.progress"
local terminal = require "evrec.cli.terminal"

local command = {}

-- The subcommands in the order of the help. The module evrec.cli.NAME adds a subcommand's arguments to a parser, and
-- runs it; it is loaded if it is called.
local SUBCOMMANDS = {
	{ name = "events", summary = "List events, and watch them." },
	{ name = "record", summary = "Record an event from a shell script." },
	{ name = "replay", summary = "Replay recorded events with other options, and list the events that each loses." },
	{ name = "explain", summary = "Say why an object has no new events." },
	{ name = "lint", summary = "Find problems in recorded events." },
	{ name = "serve", summary = "Write the events of all processes that share a recorder." },
}

local function module_of(name)
	return require("evrec.cli." .. name)
end

-- The first argument that is no option: no option before it takes a value.
local function called(arguments)
	for _, argument in ipairs(arguments) do
		if not argument:find "^%-" then
			return argument
		end
	end
end

local function is_subcommand(name)
	for _, subcommand in ipairs(SUBCOMMANDS) do
		if subcommand.name == name then
			return true
		end
	end
	return false
end

local function names_subcommand(arguments)
	for _, argument in ipairs(arguments) do
		if is_subcommand(argument) then
			return true
		end
	end
	return false
end

-- Joins a long option and a number below zero behind it, which the parser would take for an option.
local function with_joined_numbers(arguments)
	local joined = {}
	for _, argument in ipairs(arguments) do
		if argument:find "^%-%d" and (joined[#joined] or ""):find "^%-%-%w[^=]*$" then
			joined[#joined] = joined[#joined] .. "=" .. argument
		else
			joined[#joined + 1] = argument
		end
	end
	return joined
end

local function make_parser(arguments)
	local parser = argparse("evrec", "Kubernetes event recorder")
	parser:command_target "subcommand"
	parser:flag("--version", "Print the version and exit."):action(function()
		print("evrec " .. evrec._VERSION)
		os.exit(0)
	end)
	for _, subcommand in ipairs(SUBCOMMANDS) do
		local its_parser = parser:command(subcommand.name):summary(subcommand.summary)
		if subcommand.name == called(arguments) then
			module_of(subcommand.name).define(its_parser)
		end
	end
	return parser
end

local TOO_MANY = "too many arguments"

-- The first argument that is too many: the parser's message does not name it.
local function first_too_many(arguments)
	local beginning = {}
	for i, argument in ipairs(arguments) do
		beginning[i] = argument
		local ok, message = make_parser(arguments):pparse(beginning)
		if not ok and message == TOO_MANY then
			return argument
		end
	end
end

-- The names of arguments in the parser's messages, and in the usage.
local ARGUMENTS = { ["'object'"] = "KIND/NAME", ["'trace'"] = "TRACE", ["'file'"] = "FILE" }

-- Whether the last argument seems to be the message of `evrec record`, and is taken for an option.
local function message_is_option(arguments)
	local words = 0
	for _, argument in ipairs(arguments) do
		if argument == "--" then
			return false
		elseif not argument:find "^%-" then
			words = words + 1
		end
	end
	return words > 3 and arguments[#arguments]:find "^%-." ~= nil -- behind record KIND/NAME TYPE REASON
end

-- Words a message of the parser, and names the help that belongs to it.
local function misuse(message, arguments)
	if message == TOO_MANY then
		message = ("%s, from '%s' on"):format(message, first_too_many(arguments))
	end
	message = message:gsub("^missing argument ('%l+')", function(quoted)
		return "missing argument " .. (ARGUMENTS[quoted] or quoted)
	end)
	local name = called(arguments)
	if message:find "^unknown option" and arguments[1]:find "^%-" and names_subcommand(arguments) then
		message = message:gsub("%s*Did you mean.*", "") .. ": options come after the subcommand"
	end
	return ("%s (see evrec %s--help%s)"):format(message, is_subcommand(name) and name .. " " or "",
		name == "record" and message_is_option(arguments) and "; put -- before an event whose message begins with -" or "")
end

-- Runs a subcommand. An error that it raises becomes one line on standard error, and a status.
local function run(subcommand, arguments)
	local ok, result = pcall(function()
		local status = subcommand.run(arguments)
		terminal.flush()
		return status
	end)
	if ok then
		return result
	elseif type(result) ~= "table" then
		result = { status = 1, message = tostring(result) }
	end
	progress.clear()
	if result.message then
		terminal.tell(result.message)
	end
	return result.status
end

--- Runs the command.
---@param arguments string[]
---@return integer status 0, 1 or 2, as the subcommand says; 2 if the arguments are wrong
function command.run(arguments)
	core.hold_streams()
	core.end_by_signals()
	arguments = with_joined_numbers(arguments)
	local ok, result = make_parser(arguments):pparse(arguments)
	if not ok then
		terminal.tell(misuse(result, arguments))
		return 2
	end
	return run(module_of(result.subcommand), result)
end

return command
