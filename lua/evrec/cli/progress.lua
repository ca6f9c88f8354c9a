-- Progress of long work: a line on standard error, if that is a terminal, which is written again and again, and cleared
-- at the end. Only one counter shows itself at a time.
local core = require "evrec.core"

local progress = {}

local STDOUT, STDERR = 1, 2 -- file descriptors
local QUIET, INTERVAL = 1, 0.2 -- seconds until the first line, and between two

local shown, ended = false, false

--- Clears the line, if there is one.
function progress.clear()
	if shown then
		core.show_progress()
		shown = false
	end
end

--- To be called before standard output is written. If that is a terminal, progress is shown no more: it would mix with
--- the output.
function progress.before_output()
	if not ended and core.is_terminal(STDOUT) then
		ended = true
		progress.clear()
	end
end

local function nothing() end

--- Makes a counter that shows itself if the work takes long.
---@param clock { now: fun(self): number }
---@param what string such as "events found"
---@param unit? number what one of them is counted as: 1048576 of bytes that are shown as MiB
---@return { add: fun(n?: number), look: fun(), clear: fun() } counter `add` counts, `look` shows only that time passes
function progress.new(clock, what, unit)
	if not core.is_terminal(STDERR) then
		return { add = nothing, look = nothing, clear = nothing }
	end
	local count, begun = 0, clock:now()
	local due = begun + QUIET
	local counter = { clear = progress.clear }
	function counter.look()
		local now = clock:now()
		if now >= due and not ended then
			core.show_progress(("%d %s, %d s"):format(math.floor(count / (unit or 1)), what, math.floor(now - begun)))
			shown, due = true, now + INTERVAL
		end
	end
	function counter.add(n)
		count = count + (n or 1)
		counter.look()
	end
	return counter
end

return progress
