-- The model's part of the correlator target: repeats on the model each step that correlator_fuzz.c makes, and compares
-- the results. Times are nanoseconds since the start of the clock.
local side_by_side = require "side_by_side"

local check = {}
local pair, event, answers, handles, callbacks

-- The values of `answers` are set before each call. nil means that the function fails.
local functions = {
	key_func = function()
		if answers.key and answers.local_key then
			return answers.key, answers.local_key
		end
	end,
	message_func = function() return answers.message end,
	spam_key_func = function() return answers.spam_key end,
}

function check.begin(lru_cache_size, burst_size, qps, max_events, max_interval, has_key, has_message, has_spam_key)
	callbacks = has_key or has_message or has_spam_key
	pair = side_by_side.new {
		lru_cache_size = lru_cache_size, burst_size = burst_size, qps = qps, max_events = max_events,
		max_interval = max_interval,
		key_func = has_key and functions.key_func or nil,
		message_func = has_message and functions.message_func or nil,
		spam_key_func = has_spam_key and functions.spam_key_func or nil,
	}
	event = {}
	answers = {}
	handles = {}
end

function check.set(field, value)
	event[field] = field == "name" and pair:name(value) or value
end

function check.answer(name, value)
	if callbacks then
		answers[name] = value
	end
end

local function hold(fault)
	if fault then
		error(fault, 0)
	end
end

--- Returns false, which ends the run, if a name is not new: after a step back, a clock may give a name twice.
function check.correlate(now, stepped_back, why, skip, patch, handle, name, version, message, count, first, last)
	local expected = pair.model:correlate(event, now)
	local e = expected.event
	if stepped_back and type(e.name) == "table" and not pair.real[e.name] and pair.made[name] then
		return false
	end
	hold(pair:fault(expected, {
		why = why, skip = skip, patch = patch,
		event = { name = name, resource_version = version, message = message, count = count, first = first, last = last },
	}))
	if handles[handle] and handles[handle] ~= expected.entry then
		error("handle: it stands for another entry", 0)
	end
	handles[handle] = expected.entry
	return true
end

function check.update_state(name, version, count)
	local answer = {}
	for field, value in pairs(event) do
		answer[field] = value
	end
	answer.name, answer.resource_version, answer.count = pair:name(name), version, count
	pair.model:update_state(answer)
end

function check.answered(handle, name, version)
	local entry = handles[handle]
	if entry then
		pair.model:answered(entry, pair:name(name), version)
	end
end

function check.stats(correlated, new, duplicate, aggregated, rate_limited, errors, aggregates, observed, buckets)
	hold(pair:stats_fault {
		correlated = correlated, new = new, duplicate = duplicate, aggregated = aggregated, rate_limited = rate_limited,
		callback_errors = errors, aggregates = aggregates, observed = observed, buckets = buckets,
	})
end

return check
