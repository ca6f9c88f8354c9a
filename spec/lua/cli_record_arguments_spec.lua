-- The arguments of `evrec record` that a constructor or a recorder refuses.
local command = require "command"
local tmpfiles = require "tmpfiles"

describe("evrec record", function()
	local prefix, remove, lines

	before_each(function()
		local _
		prefix, _, remove = tmpfiles.new()
		lines = prefix .. ".json"
	end)

	after_each(function()
		remove()
		os.execute(("rm -rf %s.*"):format(prefix))
	end)

	-- Runs the command with the text as its input. Returns its status, and its standard error.
	local function record(input, ...)
		local status, _, told = command.shell('input=$1; shift; printf "$input" | "$@"', input, command.interpreter,
			"lua/bin/evrec", "record", "--lines", lines, ...)
		return status, told
	end

	it("names the flag of a field that is too long, and no file of Lua", function()
		for _, flag in ipairs { "--component", "--host" } do
			for _, message in ipairs { "m", "-" } do
				assert.same({ 2, ("evrec: %s: 3000 bytes, more than 1024\n"):format(flag) },
					{ record("one\\n", flag, ("x"):rep(3000), "Pod/a", "Normal", "R", message) })
			end
		end
	end)

	it("refuses an empty path of a kubeconfig", function()
		for _, subcommand in ipairs { { "record", "Pod/a", "Normal", "R", "m" }, { "events" } } do
			subcommand[#subcommand + 1] = "--kubeconfig="
			local status, _, told = command.evrec((table.unpack or unpack)(subcommand)) -- luacheck: ignore 143
			assert.same({ 2, "evrec: --kubeconfig: expected a path\n" }, { status, told })
		end
	end)

	it("calls standard output by its name", function()
		local script = [[("$@"; echo $? >&2) | true]]
		local _, _, told = command.shell(script, command.interpreter, "lua/bin/evrec", "record", "--lines", "-", "--timeout",
			"0.5", "Pod/a", "Normal", "R", "m")
		assert.equal("evrec: standard output: Broken pipe\nevrec: the event was not written\n1\n", told)
	end)

	it("checks what all lines have in common once, before the first line", function()
		local common = { ["type: expected \"Normal\" or \"Warning\", got \"Nrmal\""] = { "Pod/a", "Nrmal", "X", "-" },
			["reason: must not be empty"] = { "Pod/a", "Normal", "", "-" },
			["action: 3000 bytes, more than 1024"] = { "--action", ("x"):rep(3000), "Pod/a", "Normal", "X", "-" },
			["related.name: 3000 bytes, more than 1024"] = { "--related", "pod/" .. ("x"):rep(3000), "-" } }
		for told, arguments in pairs(common) do
			for _, input in ipairs { "", "Pod/a Normal R 1\\nPod/a Normal R 2\\n" } do
				assert.same({ 2, ("evrec: %s\n"):format(told) },
					{ record(input, (table.unpack or unpack)(arguments)) }) -- luacheck: ignore 143
			end
		end
		assert.is_nil(io.open(lines))
	end)
end)
