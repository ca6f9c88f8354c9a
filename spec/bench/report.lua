-- Reports the measurements of bench.sh: prints them as tables, writes the same to bench.md, and a chart to bench.svg.
--
-- usage: report.lua FOLDER    (has the measurements, and gets the two files)
local chart = require "chart"
local goals = require "goals"
local results = require "results"

local folder = ...
local r = results.read(folder)
local out = {}

local function say(...)
	table.insert(out, (...) and (...):format(select(2, ...)) or "")
end

-- ---- numbers ----

local NOTHING = "–"

local function thousands(value)
	local text = ("%.0f"):format(value)
	repeat
		local n
		text, n = text:gsub("^(-?%d+)(%d%d%d)", "%1,%2")
	until n == 0
	return text
end

local function short(value)
	return value >= 9.95 and thousands(value) or ("%.1f"):format(value)
end

local function few(value)
	if math.abs(value) < 0.005 then
		return value > 0 and "< 0.01" or "0"
	end
	return value >= 9.995 and short(value) or ("%.2f"):format(value)
end

local function ratio(of, to)
	return of and to and short(of.median / to.median) .. "×" or NOTHING
end

-- ---- tables ----

local function width(text)
	return utf8.len(text)
end

-- Prints an aligned Markdown table. The first column is text, the others are numbers.
local function show(header, rows)
	local widths = {}
	for _, row in ipairs { header, table.unpack(rows) } do
		for i, cell in ipairs(row) do
			widths[i] = math.max(widths[i] or 3, width(cell))
		end
	end
	local function put(row, pad)
		local cells = {}
		for i, w in ipairs(widths) do
			local gap = pad:rep(w - width(row[i]))
			cells[i] = i == 1 and row[i] .. gap or gap .. row[i]
		end
		say("| %s |", table.concat(cells, " | "))
	end
	local rule = {}
	for i, w in ipairs(widths) do
		rule[i] = i == 1 and ("-"):rep(w) or ("-"):rep(w - 1) .. ":"
	end
	put(header, " ")
	say("| %s |", table.concat(rule, " | "))
	for _, row in ipairs(rows) do
		put(row, " ")
	end
	say()
end

local function show_times(workload)
	local ns, counts = r.ns[workload.name], r.counts[workload.name] or {}
	local rows = {}
	for _, row in ipairs(results.rows) do
		local t, count = ns and ns[row.id], counts[row.id]
		if t then
			local end_to_end = row.variant ~= "correlator" and row.variant ~= "baseline"
			table.insert(rows, {
				row.title, short(t.median), short(t.min) .. " – " .. short(t.max),
				row.variant ~= "baseline" and ratio(ns["client-go/correlator"], t) or NOTHING,
				end_to_end and ratio(ns["client-go/recorder"], t) or NOTHING,
				end_to_end and ratio(t, ns[row.program .. "/baseline"]) or NOTHING,
				count and few(count.allocations) or NOTHING, count and few(count.bytes) or NOTHING,
			})
		end
	end
	if #rows > 0 then
		say("### %s", workload.title)
		say()
		show({ "", "ns", "least – most", "EventCorrelate", "end to end", "baseline", "allocations", "bytes" }, rows)
	end
end

local function show_keys()
	local header, rows = { "ns an event" }, {}
	for _, n in ipairs(r.sizes) do
		table.insert(header, thousands(n))
	end
	table.insert(header, "last / first")
	for _, row in ipairs {
		{ "5.4/limited", "evrec from Lua 5.4, a count that is not written" },
		{ "5.4/recorder", "evrec from Lua 5.4, each count written" },
		{ "c/limited", "evrec from C, a count that is not written" },
		{ "c/recorder", "evrec from C, each count written" },
		{ "c/correlator", "evrec from C, correlator alone" },
	} do
		local cells, first, last = { row[2] }, nil, nil
		for _, n in ipairs(r.sizes) do
			last = r.keys[n] and r.keys[n][row[1]]
			first = first or last
			table.insert(cells, last and ("%s (%s – %s)"):format(short(last.median), short(last.min), short(last.max))
				or NOTHING)
		end
		table.insert(cells, ratio(last, first))
		table.insert(rows, cells)
	end
	show(header, rows)

	rows = {}
	for _, n in ipairs(r.sizes) do
		local m = r.memory[n]
		table.insert(rows, { thousands(n), thousands(m.entries), short(m.bytes), short(m.own), short(m.beyond) })
	end
	show({ "lru_cache_size", "keys in three caches", "bytes a key", "its strings", "other" }, rows)
end

local function show_instructions()
	local header, rows = { "instructions an event" }, {}
	for _, workload in ipairs(results.workloads) do
		table.insert(header, workload.name)
	end
	for _, row in ipairs(results.rows) do
		local cells, any = { row.title }, false
		for _, workload in ipairs(results.workloads) do
			local value = r.instructions[workload.name] and r.instructions[workload.name][row.id]
			any = any or value
			table.insert(cells, value and thousands(value) or NOTHING)
		end
		if any then
			table.insert(rows, cells)
		end
	end
	show(header, rows)
end

local function show_goals()
	local rows = {}
	for _, goal in ipairs(goals.check(r)) do
		local met = goal.met and "met" or goal.met == false and "not met" or NOTHING
		table.insert(rows, { goal.name, goal.wanted, goal.value or NOTHING, goal.best or NOTHING, met })
	end
	show({ "Goal", "wanted", "measured", "fastest rounds", "" }, rows)
end

-- ---- the report ----

say("# The benchmark")
say()
say("Written by `make bench`; spec/bench/README.md describes what it measures, and how.")
say()
for _, line in ipairs(r.machine) do
	say("- %s: %s", line[1], line[2])
end
say()
say("## Goals")
say()
show_goals()
if next(r.ns) then
	say("## Time and allocations of an event")
	say()
	say("Nanoseconds of CPU time: the median, least and most of the rounds, in which all programs took turns. The next")
	say("columns: how many times faster than client-go's EventCorrelate alone, and than client-go end to end; and the")
	say("time relative to the baseline.")
	say()
	for _, workload in ipairs(results.workloads) do
		show_times(workload)
	end
end
if #r.sizes > 0 then
	say("## Many keys")
	say()
	show_keys()
end
if next(r.instructions) then
	say("## Instructions")
	say()
	say("Counted by callgrind. The machine's speed and load hardly change them.")
	say()
	show_instructions()
end

local text = table.concat(out, "\n"):gsub("\n+$", "") .. "\n"
io.write(text)
local function write(name, content)
	local file = assert(io.open(folder .. "/" .. name, "w"))
	assert(file:write(content))
	assert(file:close())
end
write("bench.md", text)
if next(r.ns) then
	write("bench.svg", chart.draw(r))
end

local disagreements = goals.disagreements(r)
for _, line in ipairs(disagreements) do
	io.stderr:write("evrec and client-go disagree: ", line, "\n")
end
os.exit(#disagreements == 0)
