-- Ages as kubectl prints them: two or three significant digits, the rule of apimachinery's duration.HumanDuration.
local age = {}

local MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400
local LONGEST = math.floor(2 ^ 63 / 1e9) -- seconds in Go's longest time.Duration

-- The age in two units, the smaller one left out if it is zero.
local function in_units(seconds, large, large_sign, small, small_sign)
	local rest = math.floor(seconds % large / small)
	local whole = ("%d%s"):format(math.floor(seconds / large), large_sign)
	return rest == 0 and whole or ("%s%d%s"):format(whole, rest, small_sign)
end

--- Returns a duration for people, such as "90s", "5m3s" or "3d4h".
---@param seconds number
---@return string text "<invalid>" if it is two seconds or more below zero
function age.of_seconds(seconds)
	if seconds <= -2 then
		return "<invalid>"
	elseif seconds < 0 then
		return "0s"
	end
	seconds = math.min(math.floor(seconds), LONGEST)
	if seconds < 2 * MINUTE then
		return ("%ds"):format(seconds)
	elseif seconds < 10 * MINUTE then
		return in_units(seconds, MINUTE, "m", 1, "s")
	elseif seconds < 3 * HOUR then
		return ("%dm"):format(math.floor(seconds / MINUTE))
	elseif seconds < 8 * HOUR then
		return in_units(seconds, HOUR, "h", MINUTE, "m")
	elseif seconds < 2 * DAY then
		return ("%dh"):format(math.floor(seconds / HOUR))
	elseif seconds < 8 * DAY then
		return in_units(seconds, DAY, "d", HOUR, "h")
	elseif seconds < 2 * YEAR then
		return ("%dd"):format(math.floor(seconds / DAY))
	elseif seconds < 8 * YEAR then
		return in_units(seconds, YEAR, "y", DAY, "d")
	end
	return ("%dy"):format(math.floor(seconds / YEAR))
end

--- Returns the age of a time.
---@param time number? seconds since 1970
---@param now number seconds since 1970
---@return string text "<unknown>" without a time
function age.since(time, now)
	return time and age.of_seconds(now - time) or "<unknown>"
end

return age
