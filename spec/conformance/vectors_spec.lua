-- evrec's decisions equal those that client-go made when `make vectors` wrote the vectors. README.md defines their
-- format.

local evrec = require "evrec"
local cjson = require "cjson"

local FILES = { "spec/conformance/vectors/scenarios.jsonl", "spec/conformance/vectors/random.jsonl" }

-- ---- the custom functions of oracle/oracle.go and trace_runner.c ----

local custom = {
	key_func = function(e) return (e.type or "") .. "\1" .. (e.reason or ""), e.involvedObject.name or "" end,
	message_func = function(e) return "together: " .. (e.message or "") end,
	spam_key_func = function(e) return (e.involvedObject.name or "") .. "\1" .. (e.reason or "") end,
}

local function correlator_of(vector)
	local options = { clock = evrec.fake_clock(0) }
	for name, value in pairs(vector.options) do
		if not custom[name] then
			options[name] = value
		elseif value then
			options[name] = custom[name]
		end
	end
	return evrec.correlator(options), options.clock
end

-- ---- events ----

local function rfc3339(t)
	local fraction = ("%.2f"):format(t % 1):sub(2):gsub("%.?0+$", "")
	return os.date("!%Y-%m-%dT%H:%M:%S", math.floor(t)) .. fraction .. "Z"
end

local function whole_seconds(text)
	return text and (text:gsub("%.%d+", ""))
end

local function event_of(vector, step)
	local event = {}
	for key, value in pairs(vector.templates[step.event or step.update]) do
		event[key] = value
	end
	event.metadata = {
		name = step.name, namespace = event.involvedObject.namespace or "default", resourceVersion = step.resourceVersion,
	}
	event.count = step.count
	event.firstTimestamp = step.stamped and rfc3339(step.t) or step.first
	event.lastTimestamp = step.stamped and rfc3339(step.t) or step.last
	return event
end

-- The expected result of an event. A field that step.expect does not have equals the field of the event. False means
-- that the field is unset.
local function expected(step, event)
	local function either(key, given)
		if step.expect[key] == nil then
			return given or false
		end
		return step.expect[key]
	end
	return {
		why = step.expect.why,
		skip = step.expect.why == "rate_limited",
		name = either("name", event.metadata.name),
		count = either("count", event.count or 1),
		resourceVersion = either("resourceVersion", event.metadata.resourceVersion or ""),
		first = either("first", whole_seconds(event.firstTimestamp)),
		last = either("last", whole_seconds(event.lastTimestamp)),
		message = either("message", event.message or ""),
		patch = step.expect.patch or false,
	}
end

-- "made at STEP" for a name that the correlator generated, else the name itself. `names` maps each name seen so far to
-- the name to show for it.
local function name_shown(names, event, i)
	local name = event.metadata.name
	if not names[name] or (event.count == 1 and names[name]:find("^made at ")) then
		names[name] = "made at " .. i
	end
	return names[name]
end

local function actual(result, names, i)
	local event = result.event
	return {
		why = result.why,
		skip = result.skip,
		name = name_shown(names, event, i),
		count = event.count,
		resourceVersion = event.metadata.resourceVersion or "",
		first = event.firstTimestamp or false,
		last = event.lastTimestamp or false,
		message = event.message or "",
		patch = result.patch and cjson.decode(result.patch) or false,
	}
end

-- The fields that an aggregate takes over from the occurrence that made it.
local function kept(event)
	return {
		object = event.involvedObject, source = event.source, type = event.type, reason = event.reason,
		action = event.action, controller = event.reportingComponent, instance = event.reportingInstance,
		namespace = event.metadata.namespace,
	}
end

-- An event that was read from JSON may have an empty source, which to_table leaves out.
local function without_empty_source(event)
	if event.source and next(event.source) == nil then
		event.source = nil
	end
	return event
end

-- ---- running a vector ----

local function correlate(c, vector, i, names, results)
	local step = vector.steps[i]
	local event = event_of(vector, step)
	if step.name then
		names[step.name] = step.name
	end
	local result = assert(c:correlate(event))
	local want, got = expected(step, event), actual(result, names, i)
	if result.skip then
		want.last, want.message, got.last, got.message = nil, nil, nil, nil
	else
		assert.same(kept(without_empty_source(event)), kept(without_empty_source(result.event:to_table())), "step " .. i)
		results[i] = result.event
	end
	assert.same(want, got, "step " .. i)
end

local function answer(c, step, names, results)
	if not results[step.answer] then
		return
	end
	local event = results[step.answer]:to_table()
	event.metadata.resourceVersion = step.resourceVersion
	if step.name then
		event.metadata.name, names[step.name] = step.name, step.name
	end
	assert(c:update_state(event))
end

local function run(vector)
	local c, clock = correlator_of(vector)
	local names, results = {}, {}
	for i, step in ipairs(vector.steps) do
		clock:set(step.t)
		if step.event then
			correlate(c, vector, i, names, results)
		elseif step.update then
			names[step.name] = step.name
			assert(c:update_state(event_of(vector, step)))
		else
			answer(c, step, names, results)
		end
	end
end

describe("client-go's answers", function()
	for _, path in ipairs(FILES) do
		for line in io.lines(path) do
			local vector = cjson.decode(line)
			it(vector.name, function() run(vector) end)
		end
	end
end)
