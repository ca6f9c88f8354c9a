-- A second implementation of the correlator, slow and simple, with plain tables and linear searches, so that a reader
-- can check it against client-go's EventCorrelator. It shares no code with csrc/correlate.
--
-- An event is a flat table of strings: component, host, kind, namespace, object, uid, api_version, field_path, type,
-- reason, message, controller, instance; name, resource_version ("" is unset); with count, and the times first, last.
-- Times are whole nanoseconds since any moment, below 2^53, so that a double holds them exactly.
local model = {}
model.__index = model

local second = 1000000000
local max_count = 2147483647

-- ---- a cache: a list of entries, the most recently used first ----

-- Keys are lists of strings. The first one says what kind of key it is.
local function same(key, other)
	for i = 1, math.max(#key, #other) do
		if key[i] ~= other[i] then
			return false
		end
	end
	return true
end

-- The entry of a key, or nil. A lookup counts as use.
local function use(cache, key)
	for i, entry in ipairs(cache) do
		if same(entry.key, key) then
			table.remove(cache, i)
			table.insert(cache, 1, entry)
			return entry
		end
	end
end

local function add(cache, key, entry)
	entry.key = key
	table.insert(cache, 1, entry)
	if #cache > cache.size then
		table.remove(cache)
	end
	return entry
end

-- ---- options ----

-- client-go keeps the rate in 32 bits: to 24 binary digits.
local function single(number)
	local scale = 1
	while number ~= 0 and number * scale < 2 ^ 23 do
		scale = scale * 2
	end
	while number * scale >= 2 ^ 24 do
		scale = scale / 2
	end
	local digits = math.floor(number * scale)
	local rest = number * scale - digits
	if rest > 0.5 or (rest == 0.5 and digits % 2 == 1) then
		digits = digits + 1
	end
	return digits / scale
end

--- `options`: lru_cache_size, burst_size, qps, max_events, max_interval (in nanoseconds); and key_func, message_func,
--- spam_key_func, which return nil to take the default.
function model.new(options)
	return setmetatable({
		options = options,
		qps = single(options.qps),
		aggregates = { size = options.lru_cache_size },
		observed = { size = options.lru_cache_size },
		buckets = { size = options.lru_cache_size },
		stats = { correlated = 0, new = 0, duplicate = 0, aggregated = 0, rate_limited = 0, callback_errors = 0 },
	}, model)
end

function model:ask(name, event)
	local func = self.options[name]
	if not func then
		return nil
	end
	local answer, second_answer = func(event)
	if answer == nil then
		self.stats.callback_errors = self.stats.callback_errors + 1
	end
	return answer, second_answer
end

-- ---- 1. aggregator ----

local function event_key(e)
	return { "event", e.component, e.host, e.kind, e.namespace, e.object, e.field_path, e.uid, e.api_version, e.type,
		e.reason, e.message }
end

local function aggregate_keys(self, e)
	local chosen, chosen_local = self:ask("key_func", e)
	if chosen then
		return { "chosen", chosen }, chosen_local
	end
	return { "aggregate", e.component, e.host, e.kind, e.namespace, e.object, e.uid, e.api_version, e.type, e.reason,
		e.controller, e.instance }, e.message
end

local function contains(list, wanted)
	for _, value in ipairs(list) do
		if value == wanted then
			return true
		end
	end
	return false
end

-- The key to count the event by, and whether it was made an aggregate.
function model:aggregate(e, now)
	local key, local_key = aggregate_keys(self, e)
	local record = use(self.aggregates, key) or add(self.aggregates, key, {})
	if not record.last or now - record.last > self.options.max_interval then
		record.local_keys = {}
	end
	record.last = now
	if not contains(record.local_keys, local_key) then
		table.insert(record.local_keys, local_key)
	end
	if #record.local_keys < self.options.max_events then
		return event_key(e), false
	end
	table.remove(record.local_keys, 1)
	e.message = self:ask("message_func", e) or "(combined from similar events): " .. e.message
	e.name, e.resource_version = "", ""
	e.count, e.first, e.last = 1, now, now
	return key, true
end

-- ---- 2. logger ----

-- A name that the correlator makes differs from every other event's name: here it is a new table.
local function make_name()
	return {}
end

-- An entry without a count was made by an answer that had no count: such an entry counts as none.
function model:log(e, key)
	local entry = use(self.observed, key)
	if entry and entry.count > 0 then
		entry.count = math.min(entry.count + 1, max_count)
		e.name, e.resource_version = entry.name, entry.resource_version
		e.count, e.first = entry.count, entry.first
		return entry, true
	end
	if e.name == "" then
		e.name = make_name()
	end
	e.count = math.max(e.count, 1)
	entry = entry or add(self.observed, key, {})
	entry.name, entry.resource_version, entry.count, entry.first = e.name, e.resource_version, e.count, e.first
	return entry, false
end

-- ---- 3. spam filter ----

function model:take_token(e, now)
	local chosen = self:ask("spam_key_func", e)
	local key = chosen and { "chosen", chosen }
		or { "source", e.component, e.host, e.kind, e.namespace, e.object, e.uid, e.api_version, e.type }
	local full = { tokens = self.options.burst_size, last = now }
	local bucket = use(self.buckets, key) or add(self.buckets, key, full)
	local elapsed = math.max(now - bucket.last, 0)
	local refill = (math.floor(elapsed / second) + elapsed % second / second) * self.qps
	local tokens = math.min(bucket.tokens + refill, self.options.burst_size) - 1
	-- As in Go's rate.Limiter: a debt that is paid within a nanosecond does not count.
	if tokens < 0 and (self.qps == 0 or -tokens / self.qps * second >= 1) then
		return false
	end
	bucket.tokens, bucket.last = tokens, now
	return true
end

-- ---- all three ----

--- Correlates an event; returns the event as observed, patch, skip, why, and the logger's entry.
function model:correlate(event, now)
	local e = {}
	for name, value in pairs(event) do
		e[name] = value
	end
	local key, combined = self:aggregate(e, now)
	local entry, known = self:log(e, key)
	local skip = not self:take_token(e, now)
	local why = skip and "rate_limited" or combined and "aggregated" or known and "duplicate" or "new"
	self.stats.correlated = self.stats.correlated + 1
	self.stats[why] = self.stats[why] + 1
	return { event = e, patch = known and not skip, skip = skip, why = why, entry = entry }
end

-- ---- answers ----

local function set_answer(entry, event)
	if event.name ~= "" then
		entry.name = event.name
	end
	entry.resource_version = event.resource_version
end

--- The server's answer to the write of an entry. It has no effect if the entry was evicted, and is no use of the entry.
function model:answered(entry, name, resource_version)
	if contains(self.observed, entry) then
		set_answer(entry, { name = name, resource_version = resource_version })
	end
end

-- The most recently used entry with the name.
local function named(cache, name)
	for _, entry in ipairs(cache) do
		if entry.count > 0 and entry.name == name then
			return use(cache, entry.key)
		end
	end
end

--- Takes the server's answer as an event. An aggregate's entry is found by its name, as the aggregate was not observed
--- under its event key.
function model:update_state(event)
	local key = event_key(event)
	local entry = use(self.observed, key)
	if event.name ~= "" and not (entry and entry.name == event.name) then
		entry = named(self.observed, event.name) or entry
	end
	entry = entry or add(self.observed, key, { name = "", count = 0, first = event.first })
	set_answer(entry, event)
	entry.count = math.max(entry.count, event.count)
end

return model
