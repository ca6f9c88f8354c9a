-- Finalizers that use objects of evrec while one of its functions runs: runs each case of finalizers.lua.
local lua = _G.jit and "luajit" or ("lua" .. _VERSION:match "%d%.%d")

-- Returns the output of the script. Its last line is "done" if the case passed.
local function run(case)
	-- Lua calls no finalizer of what a finalizer makes while the Lua state closes: its memory is lost with the process.
	local command = "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 %s spec/lua/finalizers.lua %s 2>&1"
	local pipe = assert(io.popen(command:format(lua, case)))
	local output = pipe:read("*a")
	pipe:close()
	return output
end

describe("finalizers:", function()
	local i = 0
	for name in run(""):gmatch("[^\n]+") do
		i = i + 1
		local case = i
		it(name, function()
			local output = run(case)
			assert.equal("done\n", output:sub(-5), output)
		end)
	end

	it("finalizers.lua has more than ten cases", function() assert.is_true(i > 10) end)
end)
