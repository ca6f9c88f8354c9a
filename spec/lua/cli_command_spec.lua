-- The messages of the command evrec about its arguments, before a subcommand runs.
local command = require "command"

describe("the command evrec", function()
	it("tells of misuse which argument it is, and where the help is", function()
		for told, arguments in pairs {
			["a command is required (see evrec --help)"] = {},
			["unknown command 'foo' (see evrec --help)"] = { "foo" },
			["unknown option '--foo' (see evrec --help)"] = { "--foo" },
			["unknown option '-A': options come after the subcommand (see evrec events --help)"] = { "-A", "events" },
			["unknown option '--store': options come after the subcommand (see evrec --help)"] = { "--store", "x.db", "events" },
			["unknown option '--foo' (see evrec record --help)"] = { "record", "--foo" },
			["missing argument KIND/NAME (see evrec record --help)"] = { "record" },
			["missing argument KIND/NAME (see evrec explain --help)"] = { "explain" },
			["missing argument TRACE (see evrec replay --help)"] = { "replay" },
			["missing argument FILE (see evrec serve --help)"] = { "serve" },
			["too many arguments, from 'disk' on (see evrec record --help)"] =
				{ "record", "--store", "s", "job/a", "Warning", "Failed", "the", "disk", "full", "--action", "A" },
			["too many arguments, from 'b' on (see evrec lint --help)"] = { "lint", "a", "b" },
		} do
			local status, output, complaints = command.evrec((table.unpack or unpack)(arguments)) -- luacheck: ignore 143
			assert.same({ 2, "", "evrec: " .. told .. "\n" }, { status, output, complaints })
		end
	end)

	it("names a module of Lua that is missing, and its package", function()
		for variables, told in pairs {
			["LUA_PATH=./lua/?.lua;./lua/?/init.lua"] = "argparse is missing: install the package lua-argparse",
			["LUA_CPATH=./none/?.so"] = "cjson is missing: install the package lua-cjson",
		} do
			local status, output, complaints = command.shell('exec env "$@"', variables, command.interpreter, "lua/bin/evrec",
				"events")
			assert.same({ 1, "", ("evrec: the Lua module %s\n"):format(told) }, { status, output, complaints })
		end
	end)
end)
