-- Files of tests.
local tmpfiles = {}

--- Returns the content of a file; an empty string if there is no file.
function tmpfiles.read(path)
	local file = io.open(path)
	local text = file and file:read "*a" or ""
	if file then
		file:close()
	end
	return text
end

--- A prefix for the names of a test's files, a function that writes such a file and returns its path, and a function
--- that removes all of them.
---@return string prefix, fun(name: string, text: string): string, fun()
function tmpfiles.new()
	local prefix, paths = os.tmpname(), {}
	local function write(name, text)
		local path = prefix .. "." .. name
		local file = assert(io.open(path, "wb"))
		file:write(text)
		file:close()
		paths[#paths + 1] = path
		return path
	end
	local function remove()
		for _, path in ipairs(paths) do
			os.remove(path)
		end
		os.remove(prefix)
	end
	return prefix, write, remove
end

return tmpfiles
