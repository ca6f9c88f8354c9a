-- Finalizers that use objects of evrec while one of its functions runs: runs each case of two programs.
local lua = require("command").interpreter

-- Returns the output of a program. Its last line is "done" if the case passed.
local function run(program, case)
	-- Lua calls no finalizer of what a finalizer makes while the Lua state closes: its memory is lost with the process.
	local command = "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 %s spec/lua/%s.lua %s 2>&1"
	local pipe = assert(io.popen(command:format(lua, program, case)))
	local output = pipe:read("*a")
	pipe:close()
	return output
end

describe("finalizers:", function()
	local n = 0
	for _, program in ipairs { "finalizers", "closing_finalizers" } do
		local i = 0
		for name in run(program, ""):gmatch("[^\n]+") do
			n, i = n + 1, i + 1
			local case = i
			it(name, function()
				local output = run(program, case)
				assert.equal("done\n", output:sub(-5), output)
			end)
		end
	end

	it("the programs have more than ten cases", function() assert.is_true(n > 10) end)
end)
