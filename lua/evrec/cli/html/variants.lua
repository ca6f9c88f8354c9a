-- Makes the views of a page from the results of a replay: one for each variant.
local variants = {}

local function milliseconds(seconds)
	return math.floor(seconds * 1000)
end

local function of_group(group)
	return {
		object = group.kind .. "/" .. group.name,
		namespace = group.namespace or "",
		type = group.type or "",
		reason = group.reason or "",
		message = group.message or "",
		source = group.component or "",
	}
end

-- The occurrences that are shown: until the last write, whose count has them all.
local function seen(group, tally)
	local item = of_group(group)
	item.first, item.last = milliseconds(group.first), milliseconds(tally.last_write)
	item.count = group.count - tally.unseen
	return item
end

--- The meaning of hatched spans on a page of a replay.
variants.HATCHED = "held back by the rate limit after the last write, so that no \195\151N has them"

-- The suppressed occurrences: after the last write, which no count has.
local function suppressed(group, tally)
	local item = of_group(group)
	item.first, item.last = milliseconds(tally.last_write or group.first), milliseconds(group.last)
	item.count = tally.unseen
	item.fate = "held back"
	item.why = ("no write followed; %d of %d occurrences were rate limited"):format(tally.rate_limited, group.count)
	return item
end

--- Makes the views.
---@param result table of replay.results
---@return evrec.html.view[]
function variants.views(result)
	local views = {}
	for i, variant in ipairs(result.variants) do
		local view = {
			name = ("%d: %s"):format(i, variant.name), events = {}, suppressed = {},
			facts = {
				{ "requests a minute", ("%.1f"):format(variant.mean) },
				{ "rate limited", ("%d"):format(variant.rate_limited) },
				{ "lost reasons", ("%d"):format(variant.lost) },
			},
		}
		for _, group in ipairs(result.groups) do
			local tally = group.variants[i]
			if tally.last_write and group.count > tally.unseen then
				view.events[#view.events + 1] = seen(group, tally)
			end
			if tally.unseen > 0 then
				view.suppressed[#view.suppressed + 1] = suppressed(group, tally)
			end
		end
		views[i] = view
	end
	return views
end

return variants
