-- The command `evrec`, which lua/bin/evrec runs: reads its arguments, and calls the module of a subcommand.
local argparse = require "argparse"
local evrec = require "evrec"

local serve = require "evrec.serve"

local command = {}

-- The subcommands by name: each adds its own arguments to a parser, and runs.
local subcommands = { serve = serve }

local function make_parser()
	local parser = argparse("evrec", "Kubernetes event recorder")
	parser:command_target "subcommand"
	parser:flag("--version", "Print the version and exit."):action(function()
		print("evrec " .. evrec._VERSION)
		os.exit(0)
	end)
	for name, subcommand in pairs(subcommands) do
		subcommand.define(parser:command(name))
	end
	return parser
end

--- Runs the command.
---@param arguments string[]
---@return integer status 0, 1 or 2, as the subcommand says; 2 if the arguments are wrong
function command.run(arguments)
	local ok, result = make_parser():pparse(arguments)
	if not ok then
		io.stderr:write("evrec: ", (result:gsub("\n", ". ")), " (see evrec --help)\n")
		return 2
	end
	return subcommands[result.subcommand].run(result)
end

return command
