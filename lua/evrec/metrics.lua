-- stats() in Prometheus' text format, version 0.0.4.
local metrics = {}

-- Of the broadcaster, and of each sink: the field of stats, what kind of metric, and its help. A field that is a table
-- has a cause for its key.
local totals = {
	{ "recorded", "counter", "Recording calls." },
	{ "broadcast", "counter", "Events given to the watchers and sinks." },
	{ "queued", "gauge", "Events recorded inside a callback and not yet given on." },
	{ "invalid", "counter", "Recording calls that were refused for what they were given." },
	{ "refused", "counter", "Events dropped before any sink." },
	{ "dropped", "counter", "Events dropped, before and in the sinks." },
	{ "watch_dropped", "counter", "Events dropped by full watches." },
	{ "callback_errors", "counter", "Callbacks that raised or returned something else." },
}
local per_sink = {
	{ "received", "counter", "Events given to the sink." },
	{ "created", "counter", "Events written as new." },
	{ "patched", "counter", "Writes of a count." },
	{ "coalesced", "counter", "Events that another one's write carried." },
	{ "rate_limited", "counter", "Events suppressed by the rate limit." },
	{ "retries", "counter", "Requests sent again." },
	{ "pending", "gauge", "Events that wait to be written." },
	{ "spooled", "counter", "Events left in the spool for the next process." },
	{ "restored", "counter", "Events taken up from the spool." },
	{ "pending_writes", "gauge", "Requests to be made or under way." },
	{ "pending_bytes", "gauge", "Memory that they take." },
	{ "dropped", "counter", "Events dropped by the sink." },
	{ "errors_lost", "counter", "Messages that on_error did not get." },
}

local function quoted(value)
	return '"' .. tostring(value):gsub('[\\"\n]', { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }) .. '"'
end

local function line(out, name, labels, value)
	local pairs_of = {}
	for _, label in ipairs(labels) do
		pairs_of[#pairs_of + 1] = label[1] .. "=" .. quoted(label[2])
	end
	local braces = #pairs_of > 0 and "{" .. table.concat(pairs_of, ",") .. "}" or ""
	out[#out + 1] = ("%s%s %.0f"):format(name, braces, value)
end

local function sorted_keys(t)
	local keys = {}
	for key in pairs(t) do
		keys[#keys + 1] = key
	end
	table.sort(keys)
	return keys
end

local function sample(out, name, labels, value)
	if type(value) ~= "table" then
		return line(out, name, labels, value)
	end
	for _, cause in ipairs(sorted_keys(value)) do
		local with_cause = {}
		for i, label in ipairs(labels) do
			with_cause[i] = label
		end
		with_cause[#with_cause + 1] = { "cause", cause }
		line(out, name, with_cause, value[cause])
	end
end

local function head(out, prefix, metric)
	local name = prefix .. metric[1] .. (metric[2] == "counter" and "_total" or "")
	out[#out + 1] = ("# HELP %s %s"):format(name, metric[3])
	out[#out + 1] = ("# TYPE %s %s"):format(name, metric[2])
	return name
end

--- Formats what broadcaster:stats() returned.
---@param stats evrec.Stats
---@return string text
function metrics.format(stats)
	local out = {}
	for _, metric in ipairs(totals) do
		sample(out, head(out, "evrec_", metric), {}, stats[metric[1]])
	end
	for _, metric in ipairs(per_sink) do
		if #stats.sinks > 0 then
			local name = head(out, "evrec_sink_", metric)
			for i, sink in ipairs(stats.sinks) do
				sample(out, name, { { "sink", ("%d"):format(i - 1) }, { "name", sink.name } }, sink[metric[1]])
			end
		end
	end
	out[#out + 1] = ""
	return table.concat(out, "\n")
end

return metrics
