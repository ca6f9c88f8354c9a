-- Compares a correlator with the model of it (model.lua), step by step. The caller converts the correlator's results to
-- the model's form: flat events, times in nanoseconds.
local model = require "model"

local side_by_side = {}
side_by_side.__index = side_by_side

function side_by_side.new(options)
	return setmetatable({ model = model.new(options), real = {}, made = {} }, side_by_side)
end

--- The model's name for a name that the correlator gave or took.
function side_by_side:name(real)
	return self.made[real] or real
end

-- Each name that the model made stands for exactly one name of the correlator's.
function side_by_side:name_fault(expected, got)
	if type(expected) == "string" then
		return expected ~= got and ("name: expected %q, got %q"):format(expected, got)
	end
	if self.real[expected] == nil then
		if self.made[got] or got == "" then
			return ("name: expected a new one, got %q"):format(got)
		end
		self.real[expected], self.made[got] = got, expected
	end
	return self.real[expected] ~= got and ("name: expected %q, got %q"):format(self.real[expected], got)
end

local function differs(expected, got, fields)
	for _, field in ipairs(fields) do
		if expected[field] ~= got[field] then
			return ("%s: expected %s, got %s"):format(field, tostring(expected[field]), tostring(got[field]))
		end
	end
end

local decisions = { "why", "skip", "patch" }
local observations = { "count", "message", "resource_version", "first", "last" }
local counters = { "correlated", "new", "duplicate", "aggregated", "rate_limited", "callback_errors" }

--- Compares two results, each with why, skip, patch and event; returns nil if they are equal, else a message.
function side_by_side:fault(expected, got)
	return differs(expected, got, decisions) or differs(expected.event, got.event, observations)
		or self:name_fault(expected.event.name, got.event.name) or nil
end

--- Compares the correlator's stats with the model's; returns nil if they are equal, else a message.
function side_by_side:stats_fault(got)
	local m = self.model
	local sizes = { aggregates = #m.aggregates, observed = #m.observed, buckets = #m.buckets }
	return differs(m.stats, got, counters) or differs(sizes, got, { "aggregates", "observed", "buckets" })
end

return side_by_side
