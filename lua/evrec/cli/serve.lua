-- evrec serve FILE: a process that only writes the events of all processes of a host that name its `share`.
local core = require "evrec.core"

local drops = require "evrec.cli.drops"
local terminal = require "evrec.cli.terminal"
local values = require "evrec.cli.values"

local serve = {}

local LONGEST = 1 -- seconds between two polls, which run callbacks and report losses
local SEEKING = 0.05 -- while it is not known which process is the owner

local TOLD = {
	owner = "this process writes the events of all",
	worker = "another process writes the events of all; this one takes over when that ends",
}

--- Adds the arguments to a parser of argparse.
function serve.define(parser)
	parser:summary "Write the events of all processes that share a recorder."
	parser:description("Write the events of all processes that share a recorder, until SIGTERM or SIGINT. "
		.. "Exits with 0 if all events were written, spooled or left to another process, 1 if some were lost, 2 on misuse.")
	parser:help_max_width(100)
	parser:argument("file", "A Lua file that returns a broadcaster with the option share."):argname "FILE"
	parser:option("--timeout", "Seconds for writing the waiting events at the end.", "5"):argname "SECONDS"
		:convert(values.timeout)
end

--- Returns the broadcaster of the file; or nil and a message.
---@param file string
---@return table? broadcaster, string? message
function serve.load(file)
	local chunk, message = loadfile(file)
	if not chunk then
		return nil, message
	end
	local ok, broadcaster = pcall(chunk)
	if not ok then
		return nil, tostring(broadcaster)
	elseif not core.is_broadcaster(broadcaster) then
		return nil, ("%s must return a broadcaster, and returned %s"):format(file, type(broadcaster))
	end
	local stats = broadcaster:stats()
	if not stats.share then
		return nil, ("the broadcaster of %s has no 'share'"):format(file)
	elseif #stats.sinks == 0 then
		return nil, ("the broadcaster of %s has no sink"):format(file)
	end
	return broadcaster
end

-- Polls until a signal comes. The threads of the share and of the sinks do the work.
local function drive(broadcaster, file)
	local told
	repeat
		broadcaster:poll()
		local role = broadcaster:stats().share
		if TOLD[role] and role ~= told then
			terminal.tell(file .. ": " .. TOLD[role])
			told = role
		end
		local longest = role == "seeking" and SEEKING or LONGEST
	until core.wait_for_signal(math.min(core.poll_delay(broadcaster) or longest, longest))
end

--- Runs it. Returns the command's status.
---@param arguments { file: string, timeout: number }
---@return integer
function serve.run(arguments)
	local broadcaster, message = serve.load(arguments.file)
	if not broadcaster then
		terminal.tell(message)
		return 2
	end
	drive(broadcaster, arguments.file)
	local written, stats, why = broadcaster:shutdown(arguments.timeout)
	if written or drops.count(stats) == 0 then
		return 0
	end
	terminal.tell(arguments.file .. ": " .. why)
	return 1
end

return serve
