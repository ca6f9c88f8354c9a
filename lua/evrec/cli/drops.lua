-- The drops in a broadcaster's stats.
local drops = {}

--- Returns how many occurrences were dropped, of all causes.
---@param stats evrec.Stats
---@return integer
function drops.count(stats)
	local sum = 0
	for _, count in pairs(stats.dropped) do
		sum = sum + count
	end
	return sum
end

return drops
