-- The parts of `evrec explain` that its three sources share: the object, its rows, and its buckets of tokens.
local kinds = require "evrec.kinds"
local options = require "evrec.options"

local plural = require "evrec.cli.plural"
local replay_table = require "evrec.cli.replay_table"
local stages = require "evrec.cli.stages"
local terminal = require "evrec.cli.terminal"
local values = require "evrec.cli.values"

local explained = {}

-- ---- the object ----

--- Returns the namespace of an object's events: its own, or default if it has none.
---@param object { namespace?: string }
---@return string
function explained.namespace(object)
	return (object.namespace or "") ~= "" and object.namespace or "default"
end

--- Returns a function that tells whether a reference is the object of the arguments.
---@param arguments { object: string, namespace?: string }
---@return fun(object: table): boolean
function explained.matcher(arguments)
	local kind, name = options.kind_and_name(arguments.object)
	local known = kinds.read(kind)
	kind = (known and known.kind or kind):lower()
	return function(object)
		return object.name == name and object.kind and object.kind:lower() == kind
			and (not arguments.namespace or explained.namespace(object) == arguments.namespace)
	end
end

--- Returns the object of the arguments in words for people.
---@param arguments { object: string, namespace?: string }
---@return string
function explained.object(arguments)
	return arguments.object .. (arguments.namespace and " in the namespace " .. arguments.namespace or "")
end

--- Says that nothing is known of the object, and that its kind may be misspelt.
---@param message string
---@param arguments { object: string }
function explained.tell_nothing(message, arguments)
	terminal.tell(message)
	local misspelt = values.misspelt_kind((options.kind_and_name(arguments.object)))
	if misspelt then
		terminal.tell(misspelt)
	end
end

-- ---- rows ----

-- The columns that a table has only if its rows differ in them.
local DISTINCT = { { "NAMESPACE", "namespace" }, { "COMPONENT", "component" }, { "HOST", "host" } }

-- Tells whether rows differ in a field. Rows in which it is not known do not count.
local function differ(rows, field)
	local known
	for _, row in ipairs(rows) do
		local value = row[field] ~= "" and row[field] or known
		if known and value ~= known then
			return true
		end
		known = value
	end
	return false
end

--- Prints a table. Rows that may be alike but for their namespace or their source get columns for these in front.
---@param header string[]
---@param rows any[][] each has the fields namespace, component and host besides its cells, unless they are not known
function explained.print_rows(header, rows)
	local all = { header }
	for i, row in ipairs(rows) do
		all[i + 1] = row
	end
	for k = #DISTINCT, 1, -1 do
		local title, field = DISTINCT[k][1], DISTINCT[k][2]
		for i, row in ipairs(differ(rows, field) and all or {}) do
			table.insert(row, 1, i == 1 and title or row[field] or "")
		end
	end
	terminal.write_rows(all)
end

-- ---- buckets of tokens ----

--- Returns the key of a group in words: the one that a callback chose, or the default one.
---@param group table
---@return string
function explained.key_of(group)
	return group.key or replay_table.source_key(group)
end

--- Tells by which key a group of occurrences has tokens, and which other reasons are known to take them, sorted.
--- `in_words` returns the key of a group.
function explained.bucket(group, found, in_words)
	local key, reasons, seen = in_words(group), {}, { [group.reason] = true }
	for _, other in ipairs(found) do
		if not seen[other.reason] and in_words(other) == key then
			seen[other.reason] = true
			reasons[#reasons + 1] = other.reason
		end
	end
	if #reasons == 0 then
		return ("No other reason is known to take tokens from its bucket (%s)"):format(key)
	end
	table.sort(reasons)
	return ("Its bucket (%s) is also that of %s"):format(key, table.concat(reasons, ", "))
end

--- Prints why groups of the stage "rate_limited" were suppressed, below an empty line.
---@param found table[]
function explained.print_limited(found)
	local begun = false
	for _, group in ipairs(found) do
		if group.stage == "rate_limited" then
			terminal.write(begun and "" or "\n")
			begun = true
			terminal.write_prose(("%s: %s %s, as there was no token for %s. %s."):format(group.reason,
				plural.were(group.suppressed, "occurrence"), stages.word(group.stage), plural.them(group.suppressed),
				explained.bucket(group, found, explained.key_of)))
		end
	end
end

--- Makes a group as replay_table names it, of an object as broadcaster:explain, notes and events have it.
function explained.group_of(object, fields)
	fields.kind, fields.namespace, fields.name = object.kind or "", object.namespace or "", object.name or ""
	return fields
end

return explained
