-- Compares the correlator with a slow model of it (spec/support/model.lua): random events, times and answers, and
-- caches so small that entries are evicted soon. EVREC_SEED repeats a run. The fuzz target of the correlator uses the
-- model, too.
local evrec = require "evrec"
local fixtures = require "fixtures"
local side_by_side = require "side_by_side"

local second = 1000000000
local words = { "", "a", "b", "ab" }
local fields = { "component", "host", "kind", "namespace", "object", "uid", "api_version", "field_path", "type",
	"reason", "controller", "instance" }

local function pick(random, list)
	return list[random(#list)]
end

-- ---- results of the model and of the correlator in one form ----

local function set(text)
	return text ~= "" and text or nil
end

local function rfc3339(time)
	return os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(fixtures.now + time / second))
end

local function core_v1(e)
	return {
		metadata = { name = set(e.name), resourceVersion = set(e.resource_version) },
		involvedObject = { kind = e.kind, namespace = set(e.namespace), name = set(e.object), uid = set(e.uid),
			apiVersion = set(e.api_version), fieldPath = set(e.field_path) },
		source = { component = set(e.component), host = set(e.host) },
		type = set(e.type), reason = set(e.reason), message = set(e.message),
		reportingComponent = set(e.controller), reportingInstance = set(e.instance),
		count = e.count, firstTimestamp = rfc3339(e.first), lastTimestamp = rfc3339(e.last),
	}
end

local function expected_of(result)
	local e = result.event
	return {
		why = result.why, skip = result.skip, patch = result.patch,
		event = { name = e.name, resource_version = e.resource_version, message = e.message, count = e.count,
			first = rfc3339(e.first), last = rfc3339(e.last) },
	}
end

local function got_of(result)
	local e = result.event
	return {
		why = result.why, skip = result.skip, patch = result.patch ~= nil,
		event = { name = e.metadata.name or "", resource_version = e.metadata.resourceVersion or "",
			message = e.message or "", count = e.count, first = e.firstTimestamp, last = e.lastTimestamp },
	}
end

-- ---- one run ----

-- Makes the callbacks of both sides, which give the same answers. The model's callback returns nil to fail, evrec's
-- raises.
local function callbacks(random, run)
	local mine, evrecs = {}, {}
	local function either(name, answer)
		if random(4) > 1 then
			return
		end
		mine[name] = function()
			if run.fails then
				return nil
			end
			return answer()
		end
		evrecs[name] = function()
			if run.fails then
				error("not now")
			end
			return answer()
		end
	end
	either("key_func", function() return run.key, run.local_key end)
	either("message_func", function() return run.key .. " together" end)
	either("spam_key_func", function() return run.key end)
	return mine, evrecs
end

local function options_of(random)
	return {
		lru_cache_size = random(4), burst_size = random(4), max_events = random(4),
		qps = pick(random, { 0, 1 / 300, 0.5, 4 }), max_interval = pick(random, { 0, 1, 600 }) * second,
	}
end

local function begin(random)
	local run = { now = 0, key = "", local_key = "", names = { "" } }
	local options = options_of(random)
	local mine, evrecs = callbacks(random, run)
	run.clock = evrec.fake_clock(fixtures.now)
	run.correlator = evrec.correlator {
		lru_cache_size = options.lru_cache_size, burst_size = options.burst_size, max_events = options.max_events,
		qps = options.qps, max_interval_in_seconds = options.max_interval / second, clock = run.clock,
		key_func = evrecs.key_func, message_func = evrecs.message_func, spam_key_func = evrecs.spam_key_func,
	}
	for name, func in pairs(mine) do
		options[name] = func
	end
	run.pair = side_by_side.new(options)
	run.steps = { options.max_interval, options.max_interval + second / 8, 300 * second, second / 4, 2 * second, 0 }
	run.event = { count = 1, first = 0, last = 0, name = "", resource_version = "", message = "" }
	for _, field in ipairs(fields) do
		run.event[field] = "a"
	end
	return run
end

local function correlate(run)
	run.event.first, run.event.last = run.now, run.now
	run.event.name, run.event.resource_version = "", ""
	local got = got_of(assert(run.correlator:correlate(core_v1(run.event))))
	table.insert(run.names, got.event.name)
	return run.pair:fault(expected_of(run.pair.model:correlate(run.event, run.now)), got)
end

local function update_state(random, run)
	local answer = {}
	for name, value in pairs(run.event) do
		answer[name] = value
	end
	answer.name = run.names[math.max(1, #run.names - random(4) + 1)]
	answer.resource_version, answer.count = pick(random, words), random(6) - 1
	assert(run.correlator:update_state(core_v1(answer)))
	answer.name = run.pair:name(answer.name)
	run.pair.model:update_state(answer)
end

local function step(random, run)
	local choice = random(10)
	if choice <= 2 then
		run.now = run.now + pick(random, run.steps)
		run.clock:set(fixtures.now + run.now / second)
	elseif choice <= 4 then
		-- The kind is never empty, because the correlator refuses such an event.
		run.event[pick(random, fields)] = pick(random, words)
		run.event.kind = run.event.kind == "" and "b" or run.event.kind
	elseif choice == 5 then
		update_state(random, run)
	elseif choice == 6 then
		run.fails, run.key, run.local_key = random(3) == 1, pick(random, words), pick(random, words)
	else
		run.event.message = pick(random, words) .. random(5)
		run.event.count = random(3) - 1
		return correlate(run)
	end
end

describe("evrec.correlator", function()
	it("decides as the model does at every step", function()
		local random = fixtures.random()
		for round = 1, 250 do
			local run = begin(random)
			for i = 1, 100 do
				local fault = step(random, run) or run.pair:stats_fault(run.correlator:stats())
				assert.is_nil(fault, ("round %d, step %d: %s"):format(round, i, tostring(fault)))
			end
		end
	end)
end)
