-- Events a second, measured in several ways and rounds: a file of results, their medians, and goals.
--
-- A script of ways is called with
--   list                 prints the names of the ways
--   WAY EVENTS RESULTS   measures one way, and appends a line to the file RESULTS
--   medians RESULTS      prints the medians of the lines
local rates = {}

---@class Way
---@field name string
---@field run fun(events: integer): number, number? events a second; nanoseconds of processor time an event

local function measure(ways, name, events, results)
	for _, way in ipairs(ways) do
		if way.name == name then
			local rate, processor = way.run(events)
			local file = assert(io.open(results, "a"))
			file:write(("%s %.0f\n"):format(name, rate))
			if processor then
				file:write(("%s-processor %.0f\n"):format(name, processor))
			end
			file:close()
			print(("%-20s %7.0f events a second"):format(name, rate) ..
				(processor and (", %.1f us of processor time each"):format(processor / 1000) or ""))
		end
	end
end

-- The rates of a way, one of each round.
local function rates_of(name, results)
	local values = {}
	for line in io.lines(results) do
		local of, rate = line:match "^(%S+) (%d+)$"
		values[#values + 1] = of == name and tonumber(rate) or nil
	end
	return values
end

local function median(values)
	table.sort(values)
	return values[math.ceil(#values / 2)]
end

-- The median of the rounds' ratios to the best of the others in the same round: the machine's speed changes less within
-- a round than between two.
local function median_ratio(results, name, ...)
	local ratios, best = {}, {}
	for _, other in ipairs { ... } do
		for round, rate in ipairs(rates_of(other, results)) do
			best[round] = math.max(best[round] or 0, rate)
		end
	end
	for round, rate in ipairs(rates_of(name, results)) do
		ratios[round] = rate / best[round]
	end
	return median(ratios)
end

--- Does what the words of a command line say.
---@param words string[]
---@param ways Way[]
---@param tell fun(median_of: fun(name: string): number, ratio_of: fun(name: string, ...: string): number) prints the
---  medians
function rates.main(words, ways, tell)
	if words[1] == "list" then
		for _, way in ipairs(ways) do
			print(way.name)
		end
	elseif words[1] == "medians" then
		tell(function(name) return median(rates_of(name, words[2])) end,
			function(name, ...) return median_ratio(words[2], name, ...) end)
	else
		measure(ways, words[1], tonumber(words[2]), words[3])
	end
end

--- Prints whether a goal is met: at least `wanted`.
function rates.goal(text, value, wanted)
	print(("%-46s %6.2f, the goal is %.2f: %s"):format(text, value, wanted, value >= wanted and "met" or "NOT met"))
end

--- Prints whether a goal is met: at most `wanted`.
function rates.bound(text, value, wanted)
	print(("%-46s %6.1f, the goal is %.1f: %s"):format(text, value, wanted, value <= wanted and "met" or "NOT met"))
end

return rates
