-- Garbage with finalizers, and the collector's pace.
local garbage = {}

--- Makes garbage whose finalizer calls f, and returns it.
function garbage.make(f)
	local object
	if newproxy then
		object = newproxy(true)
		getmetatable(object).__gc = f
	else
		object = setmetatable({}, { __gc = f })
	end
	return object
end

--- Lets the collector run a whole cycle at every allocation. A small heap keeps that cheap.
function garbage.collect_always()
	if jit then
		collectgarbage("setpause", 0)
		collectgarbage("setstepmul", 0)
	elseif _VERSION == "Lua 5.3" then
		collectgarbage("setpause", 0)
		collectgarbage("setstepmul", 1000000)
	else
		collectgarbage("incremental", 1, 1000, 20)
	end
	collectgarbage() -- the settings take effect with the next cycle
end

--- Restores the collector's defaults.
function garbage.collect_normally()
	if _VERSION == "Lua 5.4" then
		collectgarbage("incremental", 200, 100, 13)
	else
		collectgarbage("setpause", 200)
		collectgarbage("setstepmul", 200)
	end
end

return garbage
