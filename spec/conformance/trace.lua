-- Traces. A trace is { options =, steps = {} }. In a file it is a line of JSON for the options and one for every step,
-- as README.md defines.

local cjson = require "cjson"

local trace = {}

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\" }

local function quote(s)
	return '"' .. s:gsub('[%c"\\]', function(c)
		return escapes[c] or ("\\u%04x"):format(c:byte())
	end) .. '"'
end

--- JSON with sorted keys, and without a fraction in integers. A table with an element 1 is an array, any other an
--- object.
function trace.json(value)
	if type(value) == "string" then
		return quote(value)
	elseif type(value) ~= "table" then
		return value == cjson.null and "null" or math.type(value) == "float" and ("%.17g"):format(value) or
			tostring(value)
	end
	local keys, out = {}, {}
	if value[1] ~= nil then
		for i, element in ipairs(value) do
			out[i] = trace.json(element)
		end
		return "[" .. table.concat(out, ",") .. "]"
	end
	for key in pairs(value) do
		keys[#keys + 1] = key
	end
	table.sort(keys)
	for i, key in ipairs(keys) do
		out[i] = quote(key) .. ":" .. trace.json(value[key])
	end
	return "{" .. table.concat(out, ",") .. "}"
end

--- The lines of JSON of a trace.
function trace.lines(t)
	local out = { trace.json(t.options) }
	for i, step in ipairs(t.steps) do
		out[i + 1] = trace.json(step)
	end
	return out
end

--- Nanoseconds since 1970 as RFC 3339.
function trace.time(ns)
	local fraction = (".%09d"):format(ns % 1000000000):gsub("%.?0+$", "")
	return os.date("!%Y-%m-%dT%H:%M:%S", ns // 1000000000) .. fraction .. "Z"
end

--- The same trace without its steps `first` to `last`.
function trace.without(t, first, last)
	local steps = {}
	for i, step in ipairs(t.steps) do
		if i < first or i > last then
			steps[#steps + 1] = step
		end
	end
	return { options = t.options, steps = steps }
end

--- A deep copy.
local function copied(value)
	if type(value) ~= "table" then
		return value
	end
	local out = {}
	for key, v in pairs(value) do
		out[key] = copied(v)
	end
	return out
end
trace.copied = copied

return trace
