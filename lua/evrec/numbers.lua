-- Numbers in texts that programs read.
local numbers = {}

--- Formats a number with a decimal point. In some locales string.format writes something else, such as a comma.
---@param format string such as "%.17g"
---@param number number
---@return string
function numbers.format(format, number)
	return (format:format(number):gsub("^(%-?%d+)[^%de]+", "%1."))
end

return numbers
