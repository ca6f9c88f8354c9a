-- Runs busted in the interpreter that reads this file; the command `busted` would choose an interpreter by itself.

local tmpname, folder = os.tmpname, os.getenv "TMPDIR"

--- Makes a file in TMPDIR, so that tally.sh sees which files a spec leaves behind. Lua's own function, which programs
--- that a spec starts still have, makes it in /tmp.
function os.tmpname() -- luacheck: ignore 122
	local path = tmpname()
	if not folder then
		return path
	end
	local there = folder .. "/" .. path:match "[^/]+$"
	assert(io.open(there, "wb")):close()
	os.remove(path)
	return there
end

require("busted.runner")({ standalone = false })
