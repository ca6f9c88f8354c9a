-- A disk that fails in the middle of a file: the commands that read traces end with status 1, and say so.
local command = require "command"

-- Runs the command in a process whose files fail after `good` bytes: no real disk can be made to.
local PRELUDE = [[
	local good, open = %d, io.open
	function io.open(path, mode)
		local file, why = open(path, mode)
		if not file or path ~= %q then
			return file, why
		end
		local at = 0
		return {
			read = function(_, n)
				local chunk = at < good and file:read(math.min(n, good - at))
				at = at + (chunk and #chunk or 0)
				return chunk or nil, not chunk and "Input/output error" or nil
			end,
			seek = function(_, ...) return file:seek(...) end,
			close = function() return file:close() end,
		}
	end
	arg = { [0] = "lua/bin/evrec", %s }
	dofile "lua/bin/evrec"
]]

describe("a disk that fails", function()
	local path

	before_each(function()
		path = os.tmpname()
		local file = assert(io.open(path, "w"))
		file:write '{"evrec_trace":1}\n'
		for i = 1, 20000 do
			file:write(('{"id":%d,"t":%d,"event":{"involvedObject":{"kind":"Pod","name":"p"},"type":"Normal",'
				.. '"reason":"R","message":"m"}}\n'):format(i % 4096 + 1, 1700000000 + i))
		end
		file:close()
	end)

	after_each(function() os.remove(path) end)

	for _, words in ipairs { { "replay" }, { "lint" }, { "explain", "pod/p", "--trace" } } do
		it("is told by evrec " .. words[1], function()
			local quoted = {}
			for i, word in ipairs(words) do
				quoted[i] = ("%q"):format(word)
			end
			quoted[#quoted + 1] = ("%q"):format(path)
			local status, output, told = command.script(PRELUDE:format(1000000, path, table.concat(quoted, ", ")))
			assert.equal(1, status, output .. told)
			assert.matches("Input/output error\n$", told)
			assert.equal("", output)
		end)
	end
end)
