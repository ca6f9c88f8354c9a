-- Cuts a stream of JSON into its values, whether each is a line or indented over many lines.
local json_stream = {}

-- The first byte outside of a string that matters, and inside of one.
local OUTSIDE, INSIDE = '["{}%[%]]', '["\\]'

--- Returns an iterator of the texts of the objects and arrays of a stream.
---@param next_chunk fun(): string? the next bytes; nil at the end
---@return fun(): string? text, string? message why there is no other value, if the stream ends inside of one
function json_stream.values(next_chunk)
	local buffer, at, start, depth, in_string = "", 1, nil, 0, false

	-- Looks at one byte; returns a value that ends there.
	local function step(place)
		local byte = buffer:sub(place, place)
		at = place + 1
		if byte == "\\" then
			at = place + 2
		elseif byte == '"' then
			in_string = not in_string
		elseif byte == "{" or byte == "[" then
			start = start or place
			depth = depth + 1
		elseif depth > 0 then
			depth = depth - 1
			if depth == 0 then
				local text = buffer:sub(start, place)
				start = nil
				return text
			end
		end
	end

	local function refill()
		local chunk = next_chunk()
		if not chunk then
			return false
		end
		local kept = start or math.min(at, #buffer + 1)
		buffer = buffer:sub(kept) .. chunk
		at = at - kept + 1
		start = start and 1
		return true
	end

	return function()
		while true do
			local place = buffer:find(in_string and INSIDE or OUTSIDE, at)
			local text
			if place then
				text = step(place)
			else
				at = math.max(at, #buffer + 1)
				if not refill() then
					return nil, depth > 0 and "it ends inside of a JSON value" or nil
				end
			end
			if text then
				return text
			end
		end
	end
end

return json_stream
