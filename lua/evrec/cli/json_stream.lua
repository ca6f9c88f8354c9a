-- Cuts a stream of JSON into its values, whether each is a line or indented over many lines.
--
-- A full disk, or a program that was killed, may leave a truncated value, and the next value begins in the next line. A
-- truncated value is recognised by a line feed in a string, or by a line that begins with an object in the place of a
-- member's name: JSON has neither. If it ends after a colon, the next value is read as a member of it, and given back
-- once the value after it shows that it was none.
local json_stream = {}

-- The first byte outside of a string that matters, and inside of one.
local OUTSIDE, INSIDE = '["{}%[%]\n]', '["\\\n]'

---@class evrec.cli.JsonPlace
---@field line integer on which the value begins that was returned last, or that the stream ends inside of
---@field cut integer how many values were left out, as they end before their JSON does

--- Returns an iterator of the texts of the objects and arrays of a stream.
---@param next_chunk fun(): string? the next bytes; nil at the end
---@return fun(): string? text, string? message why there is no other value, if the stream ends inside of one
---@return evrec.cli.JsonPlace place
function json_stream.values(next_chunk)
	local buffer, at, start, in_string = "", 1, nil, false
	local parts, count = {}, 0 -- the value's beginning, in the chunks before the buffer
	local line, line_start = 1, 1 -- the number of the line that is read, and where it begins
	local first_line -- that of the value
	local member -- the last object behind a colon and a line feed; its text, if only white space came since
	local open, depth = {}, 0 -- the brackets that are open
	local place = { line = 1, cut = 0 }

	-- The value from a place in one of its parts on.
	local function text_from(part, offset, here)
		if part > count then
			return buffer:sub(start + offset - 1, here)
		end
		return parts[part]:sub(offset) .. table.concat(parts, "", part + 1, count) .. buffer:sub(start, here)
	end

	-- Returns the member that is a value of its own, if there is one.
	local function leave_out()
		local text = member and member.text
		if text then
			place.line = member.line
		end
		place.cut = place.cut + (start and 1 or 0)
		start, count, depth, in_string, member = nil, 0, 0, false, nil
		return text
	end

	-- Whether the last byte of the value before a place, white space aside, is a colon.
	local function is_behind_colon(here)
		local text, part = buffer:sub(start, here - 1), count
		while part > 0 and not text:find "%S" do
			text, part = parts[part], part - 1
		end
		return text:find(":%s*$") ~= nil
	end

	-- Returns a value that ended before.
	local function open_bracket(here, byte)
		local text
		if here == line_start and byte == "{" and depth > 0 and open[depth] == "{" then
			if is_behind_colon(here) then
				member = { part = count + 1, offset = here - start + 1, depth = depth, line = line }
			else
				text = leave_out()
			end
		end
		if not start then
			start, first_line = here, line
		end
		depth = depth + 1
		open[depth] = byte
		return text
	end

	-- Returns a value that ends with it.
	local function close_bracket(here)
		depth = depth - 1
		if depth == 0 then
			local text = text_from(1, 1, here)
			start, count, member, place.line = nil, 0, nil, first_line
			return text
		elseif member and depth == member.depth then
			member.text = text_from(member.part, member.offset, here)
		end
	end

	local function refill()
		local chunk = next_chunk()
		if not chunk then
			return false
		end
		if start then
			count = count + 1
			parts[count] = buffer:sub(start)
			start = 1
		end
		at, line_start = at - #buffer, line_start - #buffer
		buffer = chunk
		return true
	end

	-- Looks at one byte; returns a value that ends there.
	local function step(here)
		local byte = buffer:sub(here, here)
		at = here + 1
		if byte == "\n" then
			line, line_start = line + 1, at
			if in_string then
				return leave_out()
			end
		elseif byte == "\\" then
			if at > #buffer then
				refill()
			end
			at = at + (buffer:sub(at, at) == "\n" and 0 or 1)
		elseif byte == "{" or byte == "[" then
			return open_bracket(here, byte)
		else
			member = not (member and member.text) and member or nil
			if byte == '"' then
				in_string = not in_string
			elseif depth > 0 then
				return close_bracket(here)
			end
		end
	end

	return function()
		while true do
			local here = buffer:find(in_string and INSIDE or OUTSIDE, at)
			local text
			if here then
				text = step(here)
			else
				at = math.max(at, #buffer + 1)
				if not refill() then
					local message = start and "it ends inside of a JSON value" or nil
					place.line = start and first_line or place.line
					text = leave_out()
					return text, not text and message or nil
				end
			end
			if text then
				return text
			end
		end
	end, place
end

return json_stream
