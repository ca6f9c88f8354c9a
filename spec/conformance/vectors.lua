-- Makes the vectors: traces with client-go's answers, which vectors_spec.lua checks without client-go. They are the
-- scenarios, and random traces of fixed seeds. Ends in an error where the programs differ on one, or a scenario does
-- not go as client-go's tests say.
--
-- usage: vectors.lua DIR OUT    (DIR: of the programs)

local here = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path

local cjson = require "cjson"
local generate = require "generate"
local programs = require "programs"
local trace = require "trace"

local TRACES = 240

-- ---- the form of vectors: see README.md ----

-- Exactly, for a fraction that a double holds.
local function seconds(ns)
	return ns // 1000000000 + ns % 1000000000 / 1e9
end

-- What a time is on the wire; false for none.
local function on_the_wire(ns)
	return type(ns) == "string" and trace.time(math.tointeger(ns) // 1000000000 * 1000000000)
end

local function whole_seconds(text)
	return text and text:gsub("%.%d+", "") or false
end

-- The oracle's answer to an event, without what is as in the event itself.
local function changes(answer, event)
	local given = {
		name = event.metadata.name, resourceVersion = event.metadata.resourceVersion or "", count = event.count or 1,
		message = event.message or "", first = whole_seconds(event.firstTimestamp),
		last = whole_seconds(event.lastTimestamp),
	}
	local told = {
		name = answer.name, resourceVersion = answer.resourceVersion, count = answer.count, message = answer.message,
		first = on_the_wire(answer.firstTimestamp),
	}
	if not answer.skip then
		told.last = on_the_wire(answer.lastTimestamp)
	end
	local out = { why = answer.why, patch = type(answer.patch) == "table" and answer.patch or nil }
	for key, value in pairs(told) do
		if value ~= given[key] then
			out[key] = value
		end
	end
	return out
end

-- What of an event may be another with every occurrence.
local function dress_of(event, now)
	local stamped = event.firstTimestamp == now and event.lastTimestamp == now
	return {
		name = event.metadata.name, resourceVersion = event.metadata.resourceVersion, count = event.count,
		stamped = stamped or nil, first = not stamped and event.firstTimestamp or nil,
		last = not stamped and event.lastTimestamp or nil,
	}
end

local function without_dress(event)
	local what = trace.copied(event)
	what.metadata, what.count, what.firstTimestamp, what.lastTimestamp = nil, nil, nil, nil
	return what
end

local function vector(name, t, answers)
	local occurrences, known, steps = {}, {}, {}
	local function number_of(what)
		local text = trace.json(what)
		if not known[text] then
			occurrences[#occurrences + 1] = what
			known[text] = #occurrences
		end
		return known[text]
	end
	for i, step in ipairs(t.steps) do
		local event = step.event or step.update
		local out = { answer = step.answer, name = step.name, resourceVersion = step.resourceVersion }
		if event then
			out = dress_of(event, trace.time(math.tointeger(step.t)))
			out[step.event and "event" or "update"] = number_of(without_dress(event))
			out.told = step.event and changes(answers[i], event) or nil
		end
		out.t = seconds(math.tointeger(step.t))
		steps[i] = out
	end
	return trace.json { name = name, options = t.options, occurrences = occurrences, steps = steps }
end

-- ---- making them ----

local run = programs.new(arg[1], "vectors")

-- The oracle's answers to the steps; the cut trace where it ends early.
local function answered(t)
	local answers = {}
	local found = run:compare({ t }, function(_, line) answers[#answers + 1] = cjson.decode(line) end)[1]
	if found == "collision" then
		return answers, trace.without(t, #answers + 1, math.huge)
	elseif found then
		error(("differ in %s at step %d: %s"):format(found.fields, found.line - 1, trace.json(t)), 0)
	end
	return answers, t
end

local function check(scenario, answers)
	for i, expected in pairs(scenario.expect) do
		for key, value in pairs(expected) do
			if answers[i][key] ~= value then
				error(("%s: step %d: %s is %s, not %s"):format(scenario.name, i, key, answers[i][key], value), 0)
			end
		end
	end
end

local function write(path, lines)
	local file = assert(io.open(path, "w"))
	assert(file:write(table.concat(lines, "\n"), "\n"))
	file:close()
end

local function make()
	local lines = {}
	for i, scenario in ipairs(require "scenarios") do
		local answers, t = answered { options = scenario.options, steps = scenario.steps }
		check(scenario, answers)
		lines[i] = vector(scenario.name, t, answers)
	end
	write(arg[2] .. "/scenarios.jsonl", lines)
	lines = {}
	local seed = 0
	while #lines < TRACES do
		seed = seed + 1
		local answers, t = answered(generate.trace(seed, true))
		if #answers >= 20 then
			lines[#lines + 1] = vector("seed " .. seed, t, answers)
		end
	end
	write(arg[2] .. "/random.jsonl", lines)
end

local ok, why = pcall(make)
run:close()
if not ok then
	io.stderr:write("vectors: ", tostring(why), "\n")
	os.exit(false)
end
