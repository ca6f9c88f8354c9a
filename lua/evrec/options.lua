-- Options of the functions that are written in Lua, and of the command. Errors are messages without a position.
local core = require "evrec.core"

local options = {}

--- Raises a formatted message.
---@param message string
function options.fail(message, ...)
	error(message:format(...), 0)
end

local modules = {} -- by the tables that hold the functions of the module

--- Tells the tables that hold the functions of the module.
---@param tables table[]
function options.set_modules(tables)
	for _, module in ipairs(tables) do
		modules[module] = true
	end
	core.set_modules(modules)
end

--- Raises if the first argument of a function of the module is such a table, as in evrec:broadcaster {}.
---@param first any
function options.refuse_colon(first)
	if first ~= nil and modules[first] then
		options.fail "called with ':', use '.'"
	end
end

--- Checks the names and types of options. Returns a copy of the options, without null. Raises on misuse.
---@param given any what the caller gave: a table, or nil for no options
---@param known table<string, true|type> the options' names, with their types or, if others check these, true
---@return table
function options.checked(given, known)
	local set = {}
	options.refuse_colon(given)
	if given ~= nil and type(given) ~= "table" then
		options.fail("expected a table of options, got %s", type(given))
	end
	for key, value in next, given or {} do
		local kind = known[key]
		if not kind then
			options.fail("unknown option '%s'%s", tostring(key), core.suggest(tostring(key), known))
		elseif value ~= core.null then
			if kind ~= true and type(value) ~= kind then
				options.fail("option '%s': expected a %s, got %s", key, kind, type(value))
			end
			set[key] = value
		end
	end
	return set
end

--- Splits KIND/NAME, such as "pod/web-0".
---@param text string
---@return string? kind as it is written; nil: the text is something else
---@return string? name
function options.kind_and_name(text)
	return text:match "^([^/]+)/([^/]+)$"
end

return options
