-- The variants of `evrec replay`: options of a correlator, from arguments and from the header of a trace.
local values = require "evrec.cli.values"

local variants = {}

-- ---- arguments ----

local function correlate_from(text)
	if text == "record" or text == "series" then
		return text
	end
	return nil, ("--correlate: expected record or series, got '%s'"):format(text)
end

-- Each option: its flag, its name in evrec.replay, and its value.
local OPTIONS = {
	{ "--burst-size", "burst_size", "N", values.number("--burst-size", 1, true), "Tokens of a full bucket." },
	{ "--qps", "qps", "NUMBER", values.number("--qps", 0), "Tokens that a bucket gains a second, such as 1 or 1/300." },
	{ "--spam-key", "spam_key", "FIELDS", nil, "Events have a bucket of their own by these fields, separated by commas, "
		.. "such as source.component,involvedObject.name,reason." },
	{ "--max-events", "max_events", "N", values.number("--max-events", 1, true),
		"Distinct messages from which on similar events are combined." },
	{ "--max-interval", "max_interval_in_seconds", "TIME", values.duration "--max-interval",
		"The pause after which distinct messages are counted anew." },
	{ "--lru-cache-size", "lru_cache_size", "N", values.number("--lru-cache-size", 1, true),
		"Entries in each cache of the correlator." },
	{ "--correlate", "correlate", "HOW", correlate_from,
		"record, as client-go's tools/record does, or series, as its tools/events does." },
}

-- The variant that the arguments have described so far.
local function current(arguments)
	arguments.given = arguments.given or { {} }
	return arguments.given[#arguments.given]
end

--- Adds the options to a parser of argparse, and returns them.
function variants.define(parser)
	local defined = {}
	for _, row in ipairs(OPTIONS) do
		local name = row[2]
		local option = parser:option(row[1], row[5]):argname(row[3]):count "*"
		if row[4] then
			option:convert(row[4])
		end
		option:action(function(arguments, _, value) current(arguments)[name] = value end)
		defined[#defined + 1] = option
	end
	defined[#defined + 1] = parser:flag("--against", "Begins the next variant."):count "*"
		:action(function(arguments)
			if next(current(arguments)) then
				arguments.given[#arguments.given + 1] = {}
			elseif arguments.begun then
				arguments.has_empty = true
			end
			arguments.begun = true
		end)
	return (table.unpack or unpack)(defined) -- luacheck: ignore
end

--- Tells whether a variant has no option. An --against before all options begins no variant.
---@param arguments table
---@return string? message nil: all have one
function variants.misuse(arguments)
	if arguments.has_empty or (arguments.begun and not next(current(arguments))) then
		return "--against: no option of a variant follows it, so that this variant equals the one before it"
	end
end

-- ---- names ----

local SHORT = {
	burst_size = "burst %d", qps = "qps %s", spam_key = "spam key %s", max_events = "max events %d",
	max_interval_in_seconds = "max interval %g s", lru_cache_size = "cache %d", correlate = "%s",
}

--- Writes tokens a second as people give them: 1/300 in place of 0.0033.
---@param qps number
---@return string
function variants.qps(qps)
	local period = qps > 0 and 1 / qps or 0
	if period > 1 and math.abs(period - math.floor(period + 0.5)) < 1e-6 then
		return ("1/%d"):format(math.floor(period + 0.5))
	end
	return ("%g"):format(qps)
end

--- Tells in words which options a variant has.
---@param options table
---@return string
function variants.describe(options)
	local words = {}
	for _, row in ipairs(OPTIONS) do
		local value = options[row[2]]
		if value ~= nil then
			words[#words + 1] = SHORT[row[2]]:format(row[2] == "qps" and variants.qps(value) or value)
		end
	end
	return #words > 0 and table.concat(words, ", ") or "client-go's defaults"
end

--- Returns the variants of a replay: the first one as it was recorded, if that is known, then those that were given.
---@param recorded table? options of a trace's header; nil: client-go's defaults
---@param given table[]? of the arguments
---@return { name: string, options: table }[]
function variants.of(recorded, given)
	local all = { { name = recorded and "as recorded" or "client-go's defaults", options = recorded or {} } }
	recorded = all[1].options
	for _, changes in ipairs(given or {}) do
		if next(changes) then
			local options = {}
			for key, value in pairs(recorded) do
				options[key] = value
			end
			for key, value in pairs(changes) do
				options[key] = value
			end
			all[#all + 1] = { name = variants.describe(changes), options = options }
		end
	end
	return all
end

return variants
