-- Orders events by a field: by a name of the command's own, or by a path as `kubectl get --sort-by` takes it.
local cjson = require "cjson"

local stored_event = require "evrec.cli.stored_event"

local sort = {}

--- The names of `--sort-by`, with the field of a group that has the same meaning (group.lua).
sort.NAMES = {
	lastTimestamp = "last", firstTimestamp = "first", count = "count", reason = "reason", object = "object",
	type = "type",
}

local BY_NAME = {
	lastTimestamp = stored_event.last,
	firstTimestamp = stored_event.first,
	count = stored_event.count,
	reason = function(event) return stored_event.text(event, "reason") end,
	object = stored_event.object,
	type = function(event) return stored_event.text(event, "type") end,
}

-- ---- paths ----

-- Splits "metadata.labels['a.b']" into names. A backslash before a dot makes the dot a part of a name. Returns nil for
-- a path that needs more of JSONPath than fields and indexes.
local function steps_of(path)
	local steps, rest = {}, "." .. path:gsub("\\%.", "\1")
	while rest ~= "" do
		local step, behind = rest:match "^%.([^.%[%]*?@()]+)(.*)$"
		if not step then
			step, behind = rest:match "^%['([^']*)'%](.*)$"
		end
		if not step then
			step, behind = rest:match "^%[(%d+)%](.*)$"
			step = tonumber(step)
		end
		if not step then
			return nil
		end
		steps[#steps + 1] = type(step) == "number" and step + 1 or (step:gsub("\1", "."))
		rest = behind
	end
	return steps
end

local function by_path(steps)
	return function(event)
		local value = event
		for _, step in ipairs(steps) do
			if type(value) ~= "table" then
				return nil
			end
			value = value[step]
		end
		return value
	end
end

--- Reads a field of `--sort-by`: one of the names, or a path such as `.metadata.name` or `{.metadata.name}`.
---@param field string
---@return (fun(event: table): any)? key of a decoded event; nil: neither a name nor a path
---@return string? path in braces as kubectl writes it in messages; nil for a name
function sort.key_of(field)
	if BY_NAME[field] then
		return BY_NAME[field]
	end
	local path = field:match "^{%.?([^{}]+)}$" or field:match "^%.?([^{}]+)$"
	local steps = path and steps_of(path)
	if not steps then
		return nil
	end
	return by_path(steps), "{." .. path .. "}"
end

-- ---- the order ----

local SUFFIXES = {
	[""] = 1, n = 1e-9, u = 1e-6, m = 1e-3, k = 1e3, M = 1e6, G = 1e9, T = 1e12, P = 1e15, E = 1e18,
	Ki = 2 ^ 10, Mi = 2 ^ 20, Gi = 2 ^ 30, Ti = 2 ^ 40, Pi = 2 ^ 50, Ei = 2 ^ 60,
}

-- A number with a suffix of Kubernetes' quantities, such as "100m"; nil for other texts.
local function quantity(text)
	local digits, suffix = text:match "^([+-]?%d*%.?%d*)(%a?i?)$"
	local number = digits and tonumber(digits)
	return number and SUFFIXES[suffix] and number * SUFFIXES[suffix]
end

-- kubectl compares texts as quantities if they are. Here all keys have to be.
local function to_quantities(entries)
	local numbers = {}
	for i, entry in ipairs(entries) do
		if type(entry.key) == "string" then
			numbers[i] = quantity(entry.key)
			if not numbers[i] then
				return
			end
		end
	end
	for i, number in pairs(numbers) do
		entries[i].key = number
	end
end

local RANKS = { boolean = 3, number = 4, string = 5 }

-- Absent values come first, then null.
local function rank(key)
	if key == nil then
		return 1
	end
	return key == cjson.null and 2 or RANKS[type(key)]
end

local function before(one, other)
	local a, b = one.key, other.key
	local rank_a, rank_b = rank(a), rank(b)
	if rank_a ~= rank_b then
		return rank_a < rank_b
	elseif a == b or rank_a <= RANKS.boolean then
		return one.place < other.place
	end
	return a < b
end

--- Sorts entries by their keys, ascending; equal ones keep their order.
---@param entries { key: any, place: integer }[] key: nil, cjson.null, a boolean, a number or a string
function sort.entries(entries)
	to_quantities(entries)
	table.sort(entries, before)
end

return sort
