-- Bytes beyond ASCII that a terminal may obey, or that change the order of the text around them: C1 controls, the
-- separators of lines and paragraphs, the byte order mark, the marks, embeddings, overrides and isolates of
-- bidirectional text; and bytes that are no UTF-8, among which a terminal may find C1 controls.
local controls = {}

-- The bounds of the second byte, if they are narrower than 0x80 to 0xBF: outside of them the sequence is overlong, a
-- surrogate, or above U+10FFFF.
local SECOND = { [0xE0] = { 0xA0, 0xBF }, [0xED] = { 0x80, 0x9F }, [0xF0] = { 0x90, 0xBF }, [0xF4] = { 0x80, 0x8F } }

-- The length of the UTF-8 sequence at the beginning of a lead byte and its continuation bytes; 0 if there is none.
local function length_of_sign(bytes)
	local lead, second = bytes:byte(1, 2)
	local length = (lead < 0xC2 or lead > 0xF4) and 0 or lead < 0xE0 and 2 or lead < 0xF0 and 3 or 4
	local bounds = SECOND[lead]
	if #bytes < length or (bounds and (second < bounds[1] or second > bounds[2])) then
		return 0
	end
	return length
end

local function code_point(sign)
	local lead, second, third = sign:byte(1, 3)
	return third and (lead % 16) * 4096 + (second % 64) * 64 + third % 64 or (lead % 32) * 64 + second % 64
end

local function is_control(point)
	return point < 0xA0 or point == 0x61C or point == 0x200E or point == 0x200F or (point >= 0x2028 and point <= 0x202E)
		or (point >= 0x2066 and point <= 0x2069) or point == 0xFEFF
end

--- Replaces these characters and bytes in a text.
---@param text string
---@param character string the format of a code point, such as "<U+%04X>"
---@param no_character string the format of a byte that is no UTF-8, such as "<0x%02X>"
---@return string
function controls.replace(text, character, no_character)
	if not text:find "[\128-\255]" then
		return text
	end
	local function byte(sign)
		return no_character:format(sign:byte())
	end
	return (text:gsub("[\128-\255][\128-\191]*", function(bytes)
		local length = length_of_sign(bytes)
		local sign = bytes:sub(1, length)
		local point = (length == 2 or length == 3) and code_point(sign)
		if point and is_control(point) then
			sign = character:format(point)
		end
		return sign .. bytes:sub(length + 1):gsub(".", byte)
	end))
end

return controls
