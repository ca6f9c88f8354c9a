-- The words that all subcommands have for the stages of a sink that keep an event from being seen as it was recorded.
local stages = {}

local WORDS = {
	aggregated = "combined", rate_limited = "rate limited", merged = "merged", dropped = "dropped",
	finished = "series ended",
}

--- Returns a stage's word.
---@param stage string of broadcaster:explain or source:suppressions
---@return string
function stages.word(stage)
	return WORDS[stage] or stage
end

return stages
