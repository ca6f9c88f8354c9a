-- Prints the results of a replay for people.
local age = require "evrec.cli.age"
local occurrences = require "evrec.cli.occurrences"
local plural = require "evrec.cli.plural"
local stages = require "evrec.cli.stages"
local terminal = require "evrec.cli.terminal"
local variants = require "evrec.cli.variants"

local replay_table = {}

local ROWS = 20 -- of a table of groups

--- Tells which of two groups goes first: the one of which `measure` is larger, else by object and reason.
function replay_table.before(a, b, measure)
	if measure(a) ~= measure(b) then
		return measure(a) > measure(b)
	end
	for _, key in ipairs { "kind", "namespace", "name", "reason", "type" } do
		if a[key] ~= b[key] then
			return a[key] < b[key]
		end
	end
	return a.first < b.first
end

--- Returns an object as KIND/NAME, with its namespace unless that is empty.
---@param group table
---@return string
function replay_table.object(group)
	local name = ("%s/%s"):format(group.kind, group.name)
	return group.namespace ~= "" and group.namespace .. " " .. name or name
end

local FIELDS = {
	["source.component"] = "component", ["source.host"] = "host", ["involvedObject.kind"] = "kind",
	["involvedObject.namespace"] = "namespace", ["involvedObject.name"] = "name", ["involvedObject.uid"] = "uid",
	["involvedObject.apiVersion"] = "apiVersion", type = "type", reason = "reason", message = "message",
	reportingComponent = "controller", reportingInstance = "instance", ["metadata.namespace"] = "namespace",
}

--- Names the source, the object and the type of a group.
---@param group table
---@return string
function replay_table.source_key(group)
	return ("%s, %s, %s"):format(group.component or group.controller or "-", replay_table.object(group), group.type)
end

--- Tells by which values a group has tokens of its own: those of the variant's fields, else source, object and type.
---@param group table
---@param variant { options: table, custom_key?: boolean }
---@return string
function replay_table.spam_key(group, variant)
	local values = {}
	for field in (variant.options.spam_key or ""):gmatch "[^,]+" do
		values[#values + 1] = group[FIELDS[field]] or field
	end
	if #values == 0 and variant.custom_key then
		return "the spam_key_func's of " .. replay_table.object(group)
	elseif #values == 0 then
		return replay_table.source_key(group)
	end
	return table.concat(values, ", ")
end

-- ---- the trace ----

--- Says whether the trace has all recorded events.
---@param trace table of a result
---@return string
function replay_table.exactness(trace)
	if trace.lower_bound then
		local text = "counts are lower bounds, as a correlator has left events out before"
		if trace.reconstructed > 0 then
			text = text .. (trace.reconstructed == 1 and "; the time of 1 occurrence is reconstructed"
				or ("; the times of %d occurrences are reconstructed"):format(trace.reconstructed))
		end
		if trace.left_out > 0 then
			text = text .. ("; %s left out, as at most %d of one count are replayed"):format(
				plural.are(trace.left_out, "occurrence"), occurrences.MOST)
		end
		if trace.cut > 0 then
			text = text .. ("; %s left out, as the JSON is cut"):format(plural.are(trace.cut, "value"))
		end
		return trace.unknown and trace.unknown > 0
			and text .. ("; %d %s left out"):format(trace.unknown,
				trace.unknown == 1 and "patch of an unknown event is" or "patches of unknown events are") or text
	elseif trace.exact then
		return "exact"
	end
	local why = {}
	if trace.lost > 0 then
		why[1] = ("%s missing in %s"):format(plural.are(trace.lost, "event"), plural.counted(trace.gaps, "gap"))
	end
	if trace.malformed > 0 then
		why[#why + 1] = plural.counted(trace.malformed, "line") .. " cannot be read"
	end
	return "not exact: " .. table.concat(why, "; ")
end

local function count_objects(groups)
	local seen, count = {}, 0
	for _, group in ipairs(groups) do
		local object = replay_table.object(group)
		count = count + (seen[object] and 0 or 1)
		seen[object] = true
	end
	return count
end

local function print_trace(result)
	local trace = result.trace
	local span = trace.first and age.of_seconds(trace.last - trace.first) or "0s"
	local ended = trace.ended == "max_bytes" and "; it ends at max_bytes" or ""
	terminal.write_prose(("%s, %s: %s of %s of %s in %s"):format(trace.source, trace.description,
		plural.counted(trace.occurrences, "occurrence"), plural.counted(#result.groups, "reason"),
		plural.counted(count_objects(result.groups), "object"), span))
	terminal.write_prose(replay_table.exactness(trace) .. ended)
	terminal.write "\n"
end

-- ---- the variants ----

local MEASURES = {
	{ "CREATED", function(v) return v.created end },
	{ "PATCHED", function(v) return v.patched + v.heartbeats end },
	{ "REQUESTS A MINUTE, MEAN", function(v) return ("%.1f"):format(v.mean) end },
	{ "REQUESTS A MINUTE, PEAK", function(v) return v.peak end },
	{ "RATE LIMITED", function(v) return v.rate_limited end },
	{ "COMBINED", function(v) return v.aggregated end },
	{ "COUNTED BY SERIES", function(v) return v.counted end },
	{ "LOST REASONS", function(v) return v.lost end },
}

local function print_variants(result)
	local rows = { { "VARIANT" } }
	for i in ipairs(result.variants) do
		rows[1][i + 1] = tostring(i)
	end
	for _, measure in ipairs(MEASURES) do
		local row = { measure[1] }
		for i, variant in ipairs(result.variants) do
			row[i + 1] = measure[2](variant)
		end
		rows[#rows + 1] = row
	end
	for i, variant in ipairs(result.variants) do
		local options = i == 1 and next(variant.options) and (" (%s)"):format(variants.describe(variant.options)) or ""
		terminal.write_prose(("Variant %d: %s%s"):format(i, variant.name, options))
	end
	terminal.write "\n"
	terminal.write_rows(rows)
end

-- ---- suppressed occurrences ----

local function suppressed_by(result)
	local rows = {}
	for i, variant in ipairs(result.variants) do
		for _, group in ipairs(result.groups) do
			local tally = group.variants[i]
			if tally.rate_limited > 0 then
				rows[#rows + 1] = { i, stages.word "rate_limited", tally.rate_limited, group,
					replay_table.spam_key(group, variant) }
			end
			if tally.aggregated > 0 then
				rows[#rows + 1] = { i, stages.word "aggregated", tally.aggregated, group,
					("%s, %s"):format(replay_table.source_key(group), group.reason) }
			end
		end
	end
	table.sort(rows, function(a, b)
		if a[3] ~= b[3] then
			return a[3] > b[3]
		elseif a[4] ~= b[4] then
			return replay_table.before(a[4], b[4], function(group) return group.count end)
		end
		return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])
	end)
	return rows
end

local function print_suppressed(result)
	local found = suppressed_by(result)
	if #found == 0 then
		return
	end
	local rows = { { "VARIANT", "STAGE", "COUNT", "REASON", "KEY" } }
	for i = 1, math.min(#found, ROWS) do
		local row = found[i]
		rows[i + 1] = { row[1], row[2], row[3], row[4].reason, row[5] }
	end
	terminal.write "\n"
	terminal.write_rows(rows)
	if #found > ROWS then
		terminal.write(("and %d more: -o json has all\n"):format(#found - ROWS))
	end
end

-- ---- lost reasons ----

local function cure(lost, count)
	if count == 1 then
		return ""
	elseif #lost.cured_by == 0 then
		return "; no other variant shows it"
	end
	return ("; shown by variant %s"):format(table.concat(lost.cured_by, " and "))
end

local function print_lost(result, silent_after)
	local count = #result.variants
	if #result.lost == 0 then
		local longest = age.of_seconds(silent_after)
		terminal.write(("\nVariant 1 loses no reason of an object for longer than %s.\n"):format(longest))
		return
	end
	terminal.write "\nLost by variant 1:\n"
	for i = 1, math.min(#result.lost, ROWS) do
		local lost = result.lost[i]
		local group, tally = lost.group, lost.group.variants[1]
		local since = tally.last_write
			and ("last written %s after its first occurrence"):format(age.of_seconds(tally.last_write - group.first))
			or "never written"
		terminal.write_prose(("%s of %s: %d of %s lost, %s%s"):format(group.reason, replay_table.object(group),
			tally.unseen, plural.counted(group.count, "occurrence"), since, cure(lost, count)), "   ")
	end
	if #result.lost > ROWS then
		terminal.write(("   and %d more: -o json has all\n"):format(#result.lost - ROWS))
	end
end

--- Prints the results of a replay.
---@param result table of replay.results
---@param silent_after number seconds
function replay_table.print(result, silent_after)
	print_trace(result)
	print_variants(result)
	print_suppressed(result)
	print_lost(result, silent_after)
end

return replay_table
