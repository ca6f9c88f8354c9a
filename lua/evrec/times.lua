-- Points in time as people write them.
local core = require "evrec.core"

local times = {}

local seconds_of = { s = 1, m = 60, h = 3600, d = 86400, w = 604800 }

--- Reads "90m", "2h30m", "1.5h" or "7d" (units s, m, h, d, w).
---@param text string
---@return number? seconds nil if the text is none of these
function times.duration(text)
	local sum, rest = 0, text
	while rest ~= "" do
		local number, unit, after = rest:match "^(%d+%.?%d*)([smhdw])(.*)$"
		if not number then
			return nil
		end
		sum, rest = sum + tonumber(number) * seconds_of[unit], after
	end
	return text ~= "" and sum or nil
end

-- Reads RFC 3339; a time without an offset is in UTC, a date is its first second.
local function timestamp(text)
	local date, rest = text:match "^(%d%d%d%d%-%d%d%-%d%d)(.*)$"
	if not date then
		return nil
	end
	local clock, offset = rest:match "^[Tt ](%d%d:%d%d:%d%d%.?%d*)(.*)$"
	if not clock and rest ~= "" then
		return nil
	end
	return core.parse_time(("%sT%s%s"):format(date, clock or "00:00:00", offset ~= "" and offset or "Z"))
end

--- Reads a point in time: seconds since 1970, a duration before `now` ("90m", "2h30m", "7d"; s, m, h, d, w), or RFC
--- 3339, whose offset may be missing (UTC), as may be the time of day.
---@param value number|string
---@param now? number seconds since 1970; by default the present
---@return number? seconds since 1970; nil if the value is none of these
function times.parse(value, now)
	if type(value) == "number" then
		return value
	elseif type(value) ~= "string" then
		return nil
	end
	local ago = times.duration(value)
	if ago then
		return (now or core.clock():now()) - ago
	end
	return timestamp(value)
end

return times
