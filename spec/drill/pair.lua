-- Several broadcasters as one: what is recorded goes to each. They are not one broadcaster with several sinks, as an
-- event has the same name in each of its sinks, and no server has two events of one name.
local Pair = {}
Pair.__index = Pair

function Pair.new(broadcasters)
	local recorders = {}
	for i, broadcaster in ipairs(broadcasters) do
		recorders[i] = broadcaster:new_recorder { component = "drill", host = "here" }
	end
	return setmetatable({ broadcasters = broadcasters, recorders = recorders }, Pair)
end

function Pair:event(...)
	for _, recorder in ipairs(self.recorders) do
		assert(recorder:event(...))
	end
end

function Pair:poll()
	for _, broadcaster in ipairs(self.broadcasters) do
		broadcaster:poll()
	end
end

-- Adds the numbers of a table, and of the tables in it.
local function add(sums, numbers)
	for key, value in pairs(numbers) do
		if type(value) == "table" then
			sums[key] = add(sums[key] or {}, value)
		elseif type(value) == "number" then
			sums[key] = (sums[key] or 0) + value
		end
	end
	return sums
end

--- The sums of their stats.
function Pair:stats()
	local sums = {}
	for _, broadcaster in ipairs(self.broadcasters) do
		add(sums, broadcaster:stats())
	end
	return sums
end

--- Waits so many seconds for each; returns the sums of their stats.
function Pair:flush(seconds)
	for _, broadcaster in ipairs(self.broadcasters) do
		broadcaster:flush(seconds)
	end
	return self:stats()
end

function Pair:shutdown(seconds)
	for _, broadcaster in ipairs(self.broadcasters) do
		broadcaster:shutdown(seconds)
	end
	return self:stats()
end

return Pair
