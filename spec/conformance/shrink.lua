-- Shrinks a trace on which the programs differ. It tries fewer steps, and plainer options, events and times, and keeps
-- each change after which the first field that differs is still the same.

local trace = require "trace"

local BATCH = 20000 -- lines of traces in one run of the programs
local PATIENCE = 120 -- seconds; a difference that needs a full large cache has no short trace

local function event_of(step)
	return step.event or step.update
end

-- Each of the following functions returns a list of candidates. A candidate is a function that returns a changed copy
-- of the trace.

local function plainer_options(t, kind)
	local out = {}
	for name, values in pairs(kind.plain) do
		for _, value in ipairs(values) do
			if t.options[name] == value then
				break
			end
			out[#out + 1] = function()
				local c = trace.copied(t)
				c.options[name] = value
				return c
			end
		end
	end
	return out
end

local function without_answers(t)
	local steps = {}
	for _, step in ipairs(t.steps) do
		if step.event then
			steps[#steps + 1] = step
		end
	end
	return #steps < #t.steps and { function() return { options = t.options, steps = steps } end } or {}
end

-- Candidates that leave one field out of all events.
local function without_a_field(t, kind)
	local out = {}
	for _, path in ipairs(kind.everywhere) do
		local c, changed = trace.copied(t), false
		for _, step in ipairs(c.steps) do
			local at = event_of(step) or {}
			if path[2] then
				at = at[path[1]] or {}
			end
			changed = changed or at[path[#path]] ~= nil
			at[path[#path]] = nil
		end
		if changed then
			out[#out + 1] = function() return c end
		end
	end
	return out
end

-- Candidates that leave one value of one step out, or make it plainer.
local function plainer_steps(t, kind)
	local out = {}
	local function change(i, apply)
		out[#out + 1] = function()
			local c = trace.copied(t)
			apply(c.steps[i], c)
			return c
		end
	end
	for i, step in ipairs(t.steps) do
		local back = math.tointeger(i > 1 and t.steps[i - 1].t or kind.start) + kind.apart - math.tointeger(step.t)
		if back ~= 0 then
			change(i, function(_, c)
				for k = i, #c.steps do
					c.steps[k].t = ("%d"):format(math.tointeger(c.steps[k].t) + back)
				end
			end)
		end
		if step.name then
			change(i, function(s) s.name = nil end)
		end
		for key, value in pairs(event_of(step) or {}) do
			if type(value) ~= "table" then
				if not kind.needed[key] then
					change(i, function(s) event_of(s)[key] = nil end)
				end
				if key == "message" and #value ~= 1 then
					change(i, function(s) event_of(s)[key] = "x" end)
				end
			else
				for inner in pairs(value) do
					if inner ~= "name" and not kind.needed[inner] then
						change(i, function(s) event_of(s)[key][inner] = nil end)
					end
				end
			end
		end
	end
	return out
end

-- Candidates without `size` consecutive steps. The first candidate lacks those from `first` on, the next one the `size`
-- steps after those, and so on.
local function shorter(t, first, size)
	local out = {}
	for from = first, #t.steps, size do
		out[#out + 1] = function() return trace.without(t, from, from + size - 1) end
	end
	return out
end

local function first_of(fields)
	return fields:match("^%a+")
end

local Shrink = {}
Shrink.__index = Shrink

-- Replaces the trace by the first candidate on which the programs differ in the same field, cut after the step that
-- differs. Returns the candidate's number. Nil if there is no such candidate, or the deadline has passed.
function Shrink:try(candidates)
	local at_once = math.max(1, BATCH // (#self.trace.steps + 1))
	for first = 1, #candidates, at_once do
		if os.time() > self.deadline then
			return nil
		end
		local traces = {}
		for i = first, math.min(first + at_once - 1, #candidates) do
			traces[#traces + 1] = candidates[i]()
		end
		local found = self.programs:compare(traces)
		for i, t in ipairs(traces) do
			if type(found[i]) == "table" and first_of(found[i].fields) == self.field then
				self.trace = trace.without(t, found[i].line, math.huge)
				return first + i - 1
			end
		end
	end
end

function Shrink:shorten()
	local size = math.max(1, #self.trace.steps // 2)
	while size >= 1 do
		local first = 1
		repeat
			local taken = self:try(shorter(self.trace, first, size))
			first = taken and first + (taken - 1) * size
		until not first
		size = size // 2
	end
end

--- Returns a smaller trace. `fields`: the fields in which the programs differ on `t`, as programs.difference returns
--- them.
return function(programs, t, fields)
	local kind = programs.kind
	local self = setmetatable({
		programs = programs, trace = t, field = first_of(fields), deadline = os.time() + PATIENCE,
	}, Shrink)
	self:try { function() return t end }
	repeat
		local before = self.trace
		repeat until not self:try(plainer_options(self.trace, kind))
		self:try(without_answers(self.trace))
		self:shorten()
		for _, plainer in ipairs(#self.trace.steps < 300 and { without_a_field, plainer_steps } or {}) do
			repeat until not self:try(plainer(self.trace, kind))
		end
	until self.trace == before
	return self.trace
end
