-- Numbers and their nouns in messages.
local plural = {}

--- Returns a number and its noun: "1 event", "2 events".
---@param count integer
---@param noun string
---@return string
function plural.counted(count, noun)
	return ("%d %s%s"):format(count, noun, count == 1 and "" or "s")
end

--- Returns a number, its noun and a verb: "1 event was", "2 events were".
---@param count integer
---@param noun string
---@return string
function plural.were(count, noun)
	return plural.counted(count, noun) .. (count == 1 and " was" or " were")
end

--- Returns the same in the present: "1 event is", "2 events are".
---@param count integer
---@param noun string
---@return string
function plural.are(count, noun)
	return plural.counted(count, noun) .. (count == 1 and " is" or " are")
end

--- Returns "it" for one, "them" for several.
---@param count integer
---@return string
function plural.them(count)
	return count == 1 and "it" or "them"
end

return plural
