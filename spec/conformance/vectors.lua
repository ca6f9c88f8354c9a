-- Writes the vectors: traces with client-go's answers, which vectors_spec.lua and series_vectors_spec.lua check
-- without client-go. The traces are the scenarios, and the random traces of the seeds in vector_seeds.lua. Fails if two
-- programs differ on a trace, or if a scenario contradicts client-go's tests.
--
-- usage: vectors.lua DIR OUT    (DIR has the programs; OUT gets the vectors)

local here = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path

local cjson = require "cjson"
local kinds = require "kinds"
local programs = require "programs"
local seeds = require "vector_seeds"
local series_vector = require "series_vector"
local trace = require "trace"

-- ---- the format of a vector, which README.md defines ----

-- Exact for the traces of generate.trace(seed, true), whose times are whole quarters of a second.
local function seconds(ns)
	return ns // 1000000000 + ns % 1000000000 / 1e9
end

-- A timestamp of the oracle as an event's JSON has it, in whole seconds. False if the timestamp is unset.
local function wire_time(ns)
	return type(ns) == "string" and trace.time(math.tointeger(ns) // 1000000000 * 1000000000)
end

local function whole_seconds(text)
	return text and text:gsub("%.%d+", "") or false
end

-- The fields in which the oracle's answer differs from the event that it answers.
local function expected_changes(answer, event)
	local given = {
		name = event.metadata.name, resourceVersion = event.metadata.resourceVersion or "", count = event.count or 1,
		message = event.message or "", first = whole_seconds(event.firstTimestamp),
		last = whole_seconds(event.lastTimestamp),
	}
	local answered = {
		name = answer.name, resourceVersion = answer.resourceVersion, count = answer.count, message = answer.message,
		first = wire_time(answer.firstTimestamp),
	}
	if not answer.skip then
		answered.last = wire_time(answer.lastTimestamp)
	end
	local out = { why = answer.why, patch = type(answer.patch) == "table" and answer.patch or nil }
	for key, value in pairs(answered) do
		if value ~= given[key] then
			out[key] = value
		end
	end
	return out
end

-- The fields that differ between two occurrences of the same event.
local function occurrence_fields(event, now)
	local stamped = event.firstTimestamp == now and event.lastTimestamp == now
	return {
		name = event.metadata.name, resourceVersion = event.metadata.resourceVersion, count = event.count,
		stamped = stamped or nil, first = not stamped and event.firstTimestamp or nil,
		last = not stamped and event.lastTimestamp or nil,
	}
end

-- The fields that all occurrences of an event share.
local function template_of(event)
	local template = trace.copied(event)
	template.metadata, template.count, template.firstTimestamp, template.lastTimestamp = nil, nil, nil, nil
	return template
end

local function vector(name, t, answers)
	local templates, known, steps = {}, {}, {}
	local function number_of(template)
		local text = trace.json(template)
		if not known[text] then
			templates[#templates + 1] = template
			known[text] = #templates
		end
		return known[text]
	end
	for i, step in ipairs(t.steps) do
		local event = step.event or step.update
		local out = { answer = step.answer, name = step.name, resourceVersion = step.resourceVersion }
		if event then
			out = occurrence_fields(event, trace.time(math.tointeger(step.t)))
			out[step.event and "event" or "update"] = number_of(template_of(event))
			out.expect = step.event and expected_changes(answers[i], event) or nil
		end
		out.t = seconds(math.tointeger(step.t))
		steps[i] = out
	end
	return trace.json { name = name, options = t.options, templates = templates, steps = steps }
end

-- ---- running the traces ----

local runs = {
	record = programs.new(kinds.record, arg[1], "vectors"),
	series = programs.new(kinds.series, arg[1], "vectors-series"),
}

-- The oracle's answers to the steps, and the trace, cut before the step in which two of client-go's keys collide.
local function answered(kind, t)
	local answers = {}
	local found = runs[kind]:compare({ t }, function(_, line) answers[#answers + 1] = cjson.decode(line) end)[1]
	if found == "collision" then
		return answers, trace.without(t, #answers + 1, math.huge)
	elseif found then
		error(("the programs differ in %s at step %d of %s"):format(found.fields, found.line - 1, trace.json(t)), 0)
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

local function write_vectors()
	local lines = {}
	for i, scenario in ipairs(require "scenarios") do
		local answers, t = answered("record", { options = scenario.options, steps = scenario.steps })
		check(scenario, answers)
		lines[i] = vector(scenario.name, t, answers)
	end
	write(arg[2] .. "/scenarios.jsonl", lines)
	for kind, write_one in pairs { record = vector, series = series_vector } do
		lines = {}
		for i, seed in ipairs(seeds[kind]) do
			local answers, t = answered(kind, kinds[kind].generate.trace(seed, true))
			lines[i] = write_one("seed " .. seed, t, answers)
		end
		write(arg[2] .. (kind == "series" and "/series.jsonl" or "/random.jsonl"), lines)
	end
end

local ok, why = pcall(write_vectors)
for _, run in pairs(runs) do
	run:close()
end
if not ok then
	io.stderr:write("vectors: ", tostring(why), "\n")
	os.exit(false)
end
