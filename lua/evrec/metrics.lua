-- Counters as text in Prometheus' exposition format, version 0.0.4: broadcaster:metrics() and evrec.metrics().
local core = require "evrec.core"
local numbers = require "evrec.numbers"
local read = require "evrec.options"

local checked, fail = read.checked, read.fail

local metrics = {}

-- Each metric is { name, type, help }. Its value is the field of that name in stats(), or in an element of
-- stats().sinks. If the metric has a `group`, its value is the `field` in that table of the element instead. A value
-- that is a table by cause becomes a sample for each cause, with the label `cause`.
local totals = {
	{ "recorded", "counter", "Recording calls." },
	{ "broadcast", "counter", "Events given to watchers, queues and sinks." },
	{ "queued", "gauge", "Events recorded inside a callback and not yet broadcast." },
	{ "invalid", "counter", "Recording calls with an invalid argument." },
	{ "refused", "counter", "Events dropped before any sink." },
	{ "dropped", "counter", "Events dropped before or in the sinks." },
	{ "rate_limited", "counter", "Events suppressed by the rate limits of the sinks." },
	{ "watch_dropped", "counter", "Events dropped by full queues." },
	{ "callback_errors", "counter", "Callbacks that raised or returned a wrong type." },
	{ "untold", "counter", "Refused calls, lost events and errors that could not be printed." },
}
local per_sink = {
	{ "api", "gauge", "Always 1; the label api is the API by which events are written." },
	{ "received", "counter", "Events given to the sink." },
	{ "created", "counter", "Events written as new." },
	{ "patched", "counter", "Events written as a change of an event." },
	{ "coalesced", "counter", "Events carried by the write of another event." },
	{ "counted", "gauge", "Events counted and not yet written: of series, or within a sink's minimum interval." },
	{ "rate_limited", "counter", "Events suppressed by the rate limit." },
	{ "retries", "counter", "Requests sent again." },
	{ "pending", "gauge", "Events that wait to be written." },
	{ "spooled", "counter", "Events left in the spool for the next process." },
	{ "forwarded", "counter", "Events that another process of the host has written." },
	{ "restored", "counter", "Events taken up from the spool." },
	{ "pending_writes", "gauge", "Requests to be made or under way." },
	{ "pending_bytes", "gauge", "Bytes of memory that those requests take." },
	{ "dropped", "counter", "Events dropped by the sink." },
	{ "errors_lost", "counter", "Messages that on_error did not get." },
	{ "notes_lost", "counter", "Notes of occurrences and suppressions that the store has not." },
	{ "throttle_refused", "counter", "Requests answered with 429 or 503, or not in time.", group = "throttle",
		field = "refused" },
	{ "throttle_window", "gauge", "Requests that may be under way at once.", group = "throttle", field = "window" },
	{ "throttle_rate", "gauge", "Requests a second that may start, or 0 for no limit.", group = "throttle",
		field = "rate" },
	{ "throttle_paused_seconds", "gauge", "Time until the next request may start.", group = "throttle",
		field = "paused_for" },
	{ "series_remembered", "gauge", "Events that are remembered: single ones, and series.", group = "series",
		field = "series" },
	{ "series_ongoing", "gauge", "Series that go on.", group = "series", field = "ongoing" },
	{ "series_begun", "counter", "Series that began.", group = "series", field = "begun" },
	{ "series_finished", "counter", "Series that ended.", group = "series", field = "finished" },
	{ "series_evicted", "counter", "Series ended early to make room.", group = "series", field = "evicted" },
	{ "series_evicted_singles", "counter", "Single events forgotten early to make room.", group = "series",
		field = "evicted_singles" },
	{ "series_notes", "counter", "Different notes that series merged.", group = "series", field = "notes" },
}

local escapes = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }

local function quoted(value)
	return '"' .. value:gsub('[\\"\n]', escapes) .. '"'
end

-- Adds a label to a text of labels: pairs of name and quoted value, joined by commas.
local function with(labels, name, value)
	local pair = name .. "=" .. quoted(value)
	return labels == "" and pair or labels .. "," .. pair
end

local function line(out, name, labels, value)
	local braces = labels ~= "" and "{" .. labels .. "}" or ""
	local number = numbers.format(value == math.floor(value) and "%.0f" or "%.9f", value)
	out[#out + 1] = ("%s%s %s"):format(name, braces, number)
end

local function sorted_keys(t)
	local keys = {}
	for key in pairs(t) do
		keys[#keys + 1] = key
	end
	table.sort(keys)
	return keys
end

local function value_of(stats, metric)
	if metric.group then
		return stats[metric.group][metric.field]
	end
	return stats[metric[1]]
end

-- Adds the lines of one metric's value: one line, or one for each cause. A text becomes a label.
local function sample(out, name, labels, value)
	if type(value) == "string" then
		return line(out, name, with(labels, "api", value), 1)
	elseif type(value) ~= "table" then
		return line(out, name, labels, value)
	end
	for _, cause in ipairs(sorted_keys(value)) do
		line(out, name, with(labels, "cause", cause), value[cause])
	end
end

-- Adds the lines that describe a metric. Returns the metric's full name.
local function head(out, prefix, metric)
	local name = prefix .. metric[1] .. (metric[2] == "counter" and "_total" or "")
	out[#out + 1] = ("# HELP %s %s"):format(name, metric[3])
	out[#out + 1] = ("# TYPE %s %s"):format(name, metric[2])
	return name
end

local function samples_of_sinks(out, name, source, metric)
	for i, sink in ipairs(source.stats.sinks) do
		sample(out, name, source.labels_of_sinks[i], value_of(sink, metric))
	end
	-- Counters of forgotten sinks are a part of `ended`, so that the sum over the label `sink` never falls.
	if metric[2] == "counter" then
		sample(out, name, with(source.labels, "sink", "ended"), value_of(source.stats.ended, metric))
	end
end

-- Returns a broadcaster's stats with the labels of its samples.
local function source_of(stats, labels)
	local source = { stats = stats, labels = labels, labels_of_sinks = {} }
	for i, sink in ipairs(stats.sinks) do
		source.labels_of_sinks[i] = with(with(labels, "sink", ("%d"):format(sink.number)), "name", sink.name)
	end
	return source
end

-- Formats several sources as one text, in which each metric is described once. A counter's name ends in `_total`;
-- durations are seconds.
local function format_sources(sources)
	local out, sinks = {}, 0
	for _, source in ipairs(sources) do
		sinks = sinks + #source.stats.sinks
	end
	for _, metric in ipairs(totals) do
		local name = head(out, "evrec_", metric)
		for _, source in ipairs(sources) do
			sample(out, name, source.labels, value_of(source.stats, metric))
		end
	end
	for _, metric in ipairs(per_sink) do
		if metric[2] == "counter" or sinks > 0 then
			local name = head(out, "evrec_sink_", metric)
			for _, source in ipairs(sources) do
				samples_of_sinks(out, name, source, metric)
			end
		end
	end
	out[#out + 1] = ""
	return table.concat(out, "\n")
end

-- ---- labels ----

-- Labels that evrec sets.
local own_labels = { sink = true, name = true, cause = true, api = true, broadcaster = true }

-- The characters of UTF-8 that have more than one byte, as patterns.
local tail = "[\128-\191]"
local characters = {
	"[\194-\223]" .. tail,
	"\224[\160-\191]" .. tail, "[\225-\236\238\239]" .. tail .. tail, "\237[\128-\159]" .. tail,
	"\240[\144-\191]" .. tail .. tail, "[\241-\243]" .. tail .. tail .. tail, "\244[\128-\143]" .. tail .. tail,
}

local function is_utf8(text)
	for _, character in ipairs(characters) do
		text = text:gsub(character, " ")
	end
	return text:find "[\128-\255]" == nil
end

-- Returns the text of a label's value. Numbers are allowed, as ngx.worker.id() is one.
local function value_text(name, value)
	if type(value) == "number" then
		return numbers.format("%.14g", value)
	elseif type(value) ~= "string" then
		fail("label '%s': expected a string or a number, got %s", name, type(value))
	elseif not is_utf8(value) then
		fail("label '%s': not valid UTF-8", name)
	end
	return value
end

local function check_name(name)
	if type(name) ~= "string" then
		fail("option 'labels': labels are named by strings, found a %s as a name", type(name))
	elseif not name:find "^[A-Za-z_][A-Za-z0-9_]*$" then
		fail("label '%s': a name has letters, digits and underscores, and begins with no digit", name)
	elseif name:find "^__" then
		fail("label '%s': Prometheus keeps names that begin with two underscores to itself", name)
	elseif own_labels[name] then
		fail("label '%s': evrec sets a label of this name", name)
	end
end

-- Returns the text of the option `labels`, sorted by name.
local function read_labels(labels)
	local text = ""
	if labels == nil then
		return text
	elseif type(labels) ~= "table" then
		fail("option 'labels': expected a table, got %s", type(labels))
	end
	for name in next, labels do
		check_name(name)
	end
	for _, name in ipairs(sorted_keys(labels)) do
		text = with(text, name, value_text(name, labels[name]))
	end
	return text
end

-- Returns what `f` returns. If it raises, the message begins with the name of the public function, and the position is
-- that of the function's caller; the public function must not call this in its `return`, or it would have no level.
local function named(what, f, ...)
	local ok, result = pcall(f, ...)
	if not ok then
		error(what .. ": " .. tostring(result), 3)
	end
	return result
end

local function format_one(broadcaster, options)
	if not core.is_broadcaster(broadcaster) then
		fail("called with '.', use ':'")
	end
	local labels = read_labels(checked(options, { labels = true }).labels)
	return format_sources { source_of(broadcaster:stats(), labels) }
end

-- Returns the label that tells sources apart, by default `broadcaster`.
local function read_by(by, labels)
	if by == nil or by == "broadcaster" then
		return "broadcaster"
	end
	check_name(by)
	if type(labels) == "table" and labels[by] ~= nil then
		fail("option 'by': '%s' is one of the labels", by)
	end
	return by
end

local function stats_of(source, name)
	if core.is_broadcaster(source) then
		return source:stats()
	elseif type(source) == "table" and type(source.sinks) == "table" and type(source.ended) == "table" then
		return source
	end
	return fail("expected a broadcaster or its stats() at '%s', got %s", name, type(source))
end

local function format_all(sources, options)
	read.refuse_colon(sources)
	if type(sources) ~= "table" then
		fail("expected a table of broadcasters, got %s", type(sources))
	end
	local set = checked(options, { labels = true, by = true })
	local labels = read_labels(set.labels)
	local by, by_name = read_by(set.by, set.labels), {}
	for key, source in next, sources do
		local name = value_text(by, key)
		if by_name[name] then
			fail("two broadcasters are named '%s'", name)
		end
		by_name[name] = stats_of(source, name)
	end
	local all = {}
	for i, name in ipairs(sorted_keys(by_name)) do
		all[i] = source_of(by_name[name], with(labels, by, name))
	end
	return format_sources(all)
end

--- broadcaster:metrics(options). Raises on misuse.
---@param broadcaster evrec.Broadcaster
---@param options? evrec.MetricsOptions
---@return string
function metrics.one(broadcaster, options)
	local text = named("broadcaster:metrics", format_one, broadcaster, options)
	return text
end

--- evrec.metrics(sources, options). Raises on misuse.
---@param sources table<string|integer, evrec.Broadcaster|evrec.Stats>
---@param options? evrec.AllMetricsOptions
---@return string
function metrics.all(sources, options)
	local text = named("evrec.metrics", format_all, sources, options)
	return text
end

return metrics
