-- Random choices for the generators of traces, by math.random.
local choose = {}

function choose.chance(percent)
	return math.random() * 100 < percent
end

function choose.pick(list)
	return list[math.random(#list)]
end

--- The list { prefix .. 1, prefix .. 2, ... }.
function choose.words(prefix, count)
	local out = {}
	for i = 1, count do
		out[i] = prefix .. i
	end
	return out
end

--- Sets a field of an event, and leaves an empty one unset.
function choose.set(object, key, value)
	if value ~= "" then
		object[key] = value
	end
end

return choose
