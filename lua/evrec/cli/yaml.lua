-- Writes YAML with sorted keys, as kubectl does. A text that could be read as anything else is in double quotes. lyaml,
-- which reads kubeconfigs, is optional and does not sort keys, so it is not used here.
local json = require "evrec.cli.json"

local yaml = {}

local WORDS = {} -- which YAML 1.1 or 1.2 reads as a boolean or null
for word in ("y yes n no true false on off null"):gmatch "%a+" do
	WORDS[word] = true
end

local function scalar(value)
	local is_plain = type(value) == "string" and value:find "^%a[%w_./ -]*$" and not value:find " $"
	return is_plain and not WORDS[value:lower()] and value or json.scalar(value)
end

local write

-- Adds a value behind "key:" or "-": on the same line if it is a scalar or empty.
local function write_inner(lines, start, value, indent)
	if type(value) ~= "table" then
		lines[#lines + 1] = start .. " " .. scalar(value)
	elseif next(value) == nil then
		lines[#lines + 1] = start .. " {}"
	else
		lines[#lines + 1] = start
		write(lines, value, indent)
	end
end

function write(lines, value, indent)
	if json.is_list(value) then
		for _, element in ipairs(value) do
			if type(element) == "table" and next(element) ~= nil then
				local before = #lines
				write(lines, element, indent .. "  ")
				lines[before + 1] = indent .. "- " .. lines[before + 1]:sub(#indent + 3)
			else
				write_inner(lines, indent .. "-", element, indent)
			end
		end
		return
	end
	for _, key in ipairs(json.keys(value)) do
		local inner = value[key]
		local is_list = type(inner) == "table" and json.is_list(inner)
		write_inner(lines, indent .. scalar(key) .. ":", inner, is_list and indent or indent .. "  ")
	end
end

--- Writes a table as cjson decodes it, as lines that end with a line feed.
---@param value table not empty
---@param indent string
---@return string
function yaml.encode(value, indent)
	local lines = {}
	write(lines, value, indent)
	return table.concat(lines, "\n") .. "\n"
end

return yaml
