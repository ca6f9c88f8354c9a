-- A replay decides as client-go did: the vectors of kind record, written as traces and replayed. README.md defines
-- their format. A trace has no answers of a server. They change a decision only if they make an entry of the event log,
-- which takes an UpdateState of another event, or a cache from which the answered event was evicted: such vectors are
-- left out.

local evrec = require "evrec"
local cjson = require "cjson"

local FILES = { "spec/conformance/vectors/scenarios.jsonl", "spec/conformance/vectors/random.jsonl" }
local OPTIONS = { "lru_cache_size", "burst_size", "qps", "max_events", "max_interval_in_seconds" }

-- ---- from a vector to a trace ----

local function depends_on_answers(vector)
	-- An event has an entry of its own, and one of its aggregate.
	local evicts = (vector.options.lru_cache_size or 4096) < 2 * #vector.templates
	for _, step in ipairs(vector.steps) do
		if step.update or (step.answer and evicts) then
			return true
		end
	end
	return false
end

-- The keys that the custom functions of oracle/oracle.go choose; nil if the vector sets no custom function.
local function keys_of(vector, event)
	local keys = {}
	if vector.options.key_func then
		keys.aggregate = (event.type or "") .. "\1" .. (event.reason or "")
		keys["local"] = event.involvedObject.name or ""
	end
	if vector.options.spam_key_func then
		keys.spam = (event.involvedObject.name or "") .. "\1" .. (event.reason or "")
	end
	return next(keys) and keys or nil
end

local function time(seconds)
	return ("%.9f"):format(seconds)
end

-- The lines of a trace; an id stands for a template.
local function lines_of(vector)
	local lines, known = { '{"evrec_trace":1}' }, {}
	for _, step in ipairs(vector.steps) do
		local id = step.event
		if id and known[id] then
			lines[#lines + 1] = ('{"id":%d,"t":%s}'):format(id, time(step.t))
		elseif id then
			known[id] = true
			local event = vector.templates[id]
			lines[#lines + 1] = ('{"id":%d,"t":%s,"event":%s,"keys":%s}'):format(id, time(step.t), cjson.encode(event),
				cjson.encode(keys_of(vector, event) or { none = true }))
		end
	end
	return table.concat(lines, "\n") .. "\n"
end

-- ---- client-go's answers, by the group that a replay counts by ----

local function group_key(group)
	local parts = {}
	for _, field in ipairs { "kind", "namespace", "name", "uid", "apiVersion", "component", "host", "type", "reason",
		"controller", "instance" } do
		parts[#parts + 1] = group[field] or ""
	end
	return table.concat(parts, "\0")
end

local function group_of(event)
	local object, source = event.involvedObject, event.source or {}
	return {
		kind = object.kind, namespace = object.namespace, name = object.name, uid = object.uid,
		apiVersion = object.apiVersion,
		component = source.component, host = source.host, type = event.type, reason = event.reason,
		controller = event.reportingComponent, instance = event.reportingInstance,
	}
end

local function add(tally, name)
	tally[name] = (tally[name] or 0) + 1
end

local function wanted_of(vector)
	local wanted = {}
	for _, step in ipairs(vector.steps) do
		if step.event then
			local key = group_key(group_of(vector.templates[step.event]))
			wanted[key] = wanted[key] or { created = 0, patched = 0, aggregated = 0, rate_limited = 0 }
			local why = step.expect.why
			if why == "rate_limited" then
				add(wanted[key], "rate_limited")
			else
				add(wanted[key], step.expect.patch and "patched" or "created")
				if why == "aggregated" then
					add(wanted[key], "aggregated")
				end
			end
		end
	end
	return wanted
end

local function replayed(vector)
	local options, found = {}, {}
	for _, name in ipairs(OPTIONS) do
		options[name] = vector.options[name]
	end
	local replay = evrec.replay { options }
	assert(replay:feed(lines_of(vector)))
	for _, group in ipairs(assert(replay:finish()).groups) do
		local tally = group.variants[1]
		found[group_key(group)] = {
			created = tally.created, patched = tally.patched, aggregated = tally.aggregated, rate_limited = tally.rate_limited,
		}
	end
	return found
end

describe("a replay and client-go", function()
	local compared, left_out = 0, 0

	for _, path in ipairs(FILES) do
		for line in io.lines(path) do
			local vector = cjson.decode(line)
			if depends_on_answers(vector) then
				left_out = left_out + 1
			else
				compared = compared + 1
				it("decide alike: " .. vector.name, function()
					assert.same(wanted_of(vector), replayed(vector))
				end)
			end
		end
	end

	it("have enough vectors", function()
		assert.is_true(compared >= 10, compared .. " vectors, without " .. left_out)
	end)
end)
