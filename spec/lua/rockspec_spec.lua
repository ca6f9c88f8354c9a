-- The rockspec names every source file, and no other file.
local function rockspec()
	local environment = {}
	local text = assert(io.open("rockspec/evrec-scm-1.rockspec")):read("*a")
	if _VERSION == "Lua 5.1" then
		setfenv(assert(loadstring(text)), environment)()
	else
		assert(load(text, "rockspec", "t", environment))()
	end
	return environment
end

local function on_disk(command)
	local files = {}
	local pipe = assert(io.popen(command))
	for line in pipe:lines() do
		files[#files + 1] = line
	end
	pipe:close()
	table.sort(files)
	return files
end

describe("the rockspec", function()
	it("lists every C source, and no other", function()
		local listed = {}
		for _, file in ipairs(rockspec().build.modules["evrec.core"].sources) do
			listed[#listed + 1] = file
		end
		table.sort(listed)
		assert.same(on_disk("find csrc -name '*.c'"), listed)
	end)

	it("lists every Lua module, and no other", function()
		local listed = {}
		for name, file in pairs(rockspec().build.modules) do
			if type(file) == "string" then
				listed[#listed + 1] = file
				local expected = name == "evrec" and "lua/evrec/init.lua" or "lua/" .. name:gsub("%.", "/") .. ".lua"
				assert.equal(expected, file)
			end
		end
		table.sort(listed)
		assert.same(on_disk("find lua -name '*.lua'"), listed)
	end)
end)
