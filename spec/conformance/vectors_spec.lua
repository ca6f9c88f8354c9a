-- evrec decides as client-go did when the vectors were made (`make vectors`). README.md tells their form.

local evrec = require "evrec"
local cjson = require "cjson"

local FILES = { "spec/conformance/vectors/scenarios.jsonl", "spec/conformance/vectors/random.jsonl" }

-- ---- the functions that a trace may ask for ----

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
	for key, value in pairs(vector.occurrences[step.event or step.update]) do
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

-- What the vector tells of an event: what it says, and else what was given. False: unset.
local function expected(step, event)
	local function either(key, given)
		if step.told[key] == nil then
			return given or false
		end
		return step.told[key]
	end
	return {
		why = step.told.why,
		skip = step.told.why == "rate_limited",
		name = either("name", event.metadata.name),
		count = either("count", event.count or 1),
		resourceVersion = either("resourceVersion", event.metadata.resourceVersion or ""),
		first = either("first", whole_seconds(event.firstTimestamp)),
		last = either("last", whole_seconds(event.lastTimestamp)),
		message = either("message", event.message or ""),
		patch = step.told.patch or false,
	}
end

-- Made names are told by where they were made; `names` has those that are known.
local function name_told(names, event, i)
	local name = event.metadata.name
	if not names[name] or (event.count == 1 and names[name]:find("^made at ")) then
		names[name] = "made at " .. i
	end
	return names[name]
end

local function got(result, names, i)
	local event = result.event
	return {
		why = result.why,
		skip = result.skip,
		name = name_told(names, event, i),
		count = event.count,
		resourceVersion = event.metadata.resourceVersion or "",
		first = event.firstTimestamp or false,
		last = event.lastTimestamp or false,
		message = event.message or "",
		patch = result.patch and cjson.decode(result.patch) or false,
	}
end

-- What an aggregate has of its occurrence.
local function kept(event)
	return {
		object = event.involvedObject, source = event.source, type = event.type, reason = event.reason,
		action = event.action, controller = event.reportingComponent, instance = event.reportingInstance,
		namespace = event.metadata.namespace,
	}
end

-- Empty objects are left out.
local function plain(event)
	if event.source and next(event.source) == nil then
		event.source = nil
	end
	return event
end

-- ---- running one ----

local function correlate(c, vector, i, names, results)
	local step = vector.steps[i]
	local event = event_of(vector, step)
	if step.name then
		names[step.name] = step.name
	end
	local result = assert(c:correlate(event))
	local want, have = expected(step, event), got(result, names, i)
	if result.skip then
		want.last, want.message, have.last, have.message = nil, nil, nil, nil
	else
		assert.same(kept(plain(event)), kept(plain(result.event:to_table())), "step " .. i)
		results[i] = result.event
	end
	assert.same(want, have, "step " .. i)
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
