-- Writes JSON as kubectl prints it: keys sorted, four spaces a level.
local numbers = require "evrec.numbers"

local controls = require "evrec.cli.controls"

local json = {}

local NAMED = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function escaped(control)
	return NAMED[control] or ("\\u%04x"):format(control:byte())
end

--- Writes a string. Control characters, and those that change the direction of text, are escaped; a byte that is no
--- UTF-8 becomes U+FFFD.
---@param text string
---@return string
function json.string(text)
	return '"' .. controls.replace((text:gsub('[%z\1-\31"\\\127]', escaped)), "\\u%04x", "\\ufffd") .. '"'
end

--- Writes a number, a boolean or null; a string with `json.string`.
---@param value any
---@return string
function json.scalar(value)
	if type(value) == "string" then
		return json.string(value)
	elseif type(value) == "number" then
		if value == math.floor(value) and math.abs(value) < 2 ^ 63 then
			return ("%.0f"):format(value)
		end
		local short = numbers.format("%.14g", value)
		return tonumber(short) == value and short or numbers.format("%.17g", value)
	elseif type(value) == "boolean" then
		return tostring(value)
	end
	return "null"
end

--- Tells whether a table is a list. An empty table is not.
function json.is_list(value)
	return value[1] ~= nil
end

--- Returns the keys of a table, sorted.
function json.keys(value)
	local keys = {}
	for key in pairs(value) do
		keys[#keys + 1] = key
	end
	table.sort(keys)
	return keys
end

--- Writes a value as cjson decodes it.
---@param value any
---@param indent string that of the line on which the value begins
---@return string
function json.encode(value, indent)
	if type(value) ~= "table" then
		return json.scalar(value)
	elseif next(value) == nil then
		return "{}"
	end
	local inner, parts = indent .. "    ", {}
	if json.is_list(value) then
		for i, element in ipairs(value) do
			parts[i] = inner .. json.encode(element, inner)
		end
		return "[\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "]"
	end
	for i, key in ipairs(json.keys(value)) do
		parts[i] = inner .. json.string(key) .. ": " .. json.encode(value[key], inner)
	end
	return "{\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "}"
end

return json
