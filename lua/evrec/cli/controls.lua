-- The characters beyond ASCII that a terminal may obey, or that change the order of the text around them: C1 controls,
-- the separators of lines and paragraphs, the byte order mark, and the marks, embeddings, overrides and isolates of
-- bidirectional text.
local controls = {}

local function code_point(sign)
	local lead, second, third = sign:byte(1, 3)
	return third and (lead % 16) * 4096 + (second % 64) * 64 + third % 64 or (lead % 32) * 64 + second % 64
end

local function is_control(point)
	return point < 0xA0 or point == 0x61C or point == 0x200E or point == 0x200F or (point >= 0x2028 and point <= 0x202E)
		or (point >= 0x2066 and point <= 0x2069) or point == 0xFEFF
end

--- Replaces these characters in a text of UTF-8.
---@param text string
---@param format string of a code point, such as "<U+%04X>"
---@return string
function controls.replace(text, format)
	if not text:find "[\194\216\226\239]" then
		return text
	end
	local function shown(sign)
		local point = code_point(sign)
		return is_control(point) and format:format(point)
	end
	return (text:gsub("[\194\216][\128-\191]", shown):gsub("[\226\239][\128-\191][\128-\191]", shown))
end

return controls
