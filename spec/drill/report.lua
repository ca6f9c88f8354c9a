-- Prints the results of the fire drills.
--
-- usage: luajit report.lua heads                 prints the heads of the columns
--        luajit report.lua line RESULTS          prints the last result, as a line
--        luajit report.lua broken RESULTS NAME N adds a result for the drill NAME, which ended with exit code N
--        luajit report.lua table RESULTS OUT     writes all results to OUT, as a table in Markdown; prints the sum
local cjson = require "cjson"

local function read(path)
	local results = {}
	for line in io.lines(path) do
		results[#results + 1] = cjson.decode(line)
	end
	return results
end

local columns = {
	{ "drill", 52, "%s", "name" }, { "recorded", 9, "%d", "recorded" }, { "events", 7, "%d", "events" },
	{ "lost", 5, "%d", "lost" }, { "twice", 5, "%d", "duplicates" }, { "exact", 5, "%s", "exact" },
	{ "dropped", 7, "%d", "dropped" }, { "retries", 7, "%d", "retries" }, { "KiB before", 10, "%.0f", "before" },
	{ "after", 6, "%.0f", "after" }, { "result", 6, "%s", "verdict" },
}

local function verdict(result)
	return result.skipped and "skip" or #result.faults == 0 and "passed" or "FAILED"
end

local function cells(result)
	local shown = {
		exact = result.exact and "yes" or result.events and "no", verdict = verdict(result),
		before = result.before and result.before / 1024, after = result.after and result.after / 1024,
	}
	local row = {}
	for i, column in ipairs(columns) do
		local value = shown[column[4]]
		if value == nil then
			value = result[column[4]]
		end
		row[i] = value == nil and "-" or column[3]:format(value)
	end
	return row
end

local function heads()
	local row = {}
	for i, column in ipairs(columns) do
		row[i] = column[1]
	end
	return row
end

local function padded(row)
	local line = {}
	for i, column in ipairs(columns) do
		line[i] = (i == 1 and "%%-%ds" or "%%%ds"):format(column[2]):format(row[i])
	end
	return table.concat(line, "  ")
end

--- Splits results into those of performed drills and those of skipped ones.
local function performed(results)
	local those, skipped = {}, {}
	for _, result in ipairs(results) do
		table.insert(result.skipped and skipped or those, result)
	end
	return those, skipped
end

--- Makes one row for each drill from all its runs: sums, and the memory of the run in which it grew most.
local function gather(results)
	local rows = {}
	for _, result in ipairs(results) do
		local row = rows[result.name]
		if not row then
			row = { name = result.name, runs = 0, passed = 0, exact = true, growth = -math.huge }
			rows[#rows + 1], rows[result.name] = row, row
		end
		row.runs = row.runs + 1
		row.passed = row.passed + (#result.faults == 0 and 1 or 0)
		row.exact = row.exact and result.exact or false
		for _, field in ipairs { "recorded", "events", "lost", "duplicates", "dropped", "retries" } do
			row[field] = (row[field] or 0) + (result[field] or 0)
		end
		if result.after and result.after - result.before >= row.growth then
			row.before, row.after, row.growth = result.before, result.after, result.after - result.before
		end
	end
	return rows
end

local function memory(row)
	return row.after and ("%.0f, %.0f"):format(row.before / 1024, row.after / 1024) or "-"
end

local function markdown(results)
	local lines = {
		"| drill | passed | recorded | events | lost | twice | counts exact | dropped | retries | KiB before, after |",
		"|---|---|---:|---:|---:|---:|---|---:|---:|---|",
	}
	for _, row in ipairs(gather(results)) do
		lines[#lines + 1] = ("| %s | %d of %d | %d | %d | %d | %d | %s | %d | %d | %s |"):format(row.name,
			row.passed, row.runs, row.recorded, row.events, row.lost, row.duplicates, row.exact and "yes" or "no",
			row.dropped, row.retries, memory(row))
	end
	return table.concat(lines, "\n") .. "\n"
end

local function show(result)
	print(padded(cells(result)))
	if result.skipped then
		print("    skipped: " .. result.skipped)
	end
	for _, fault in ipairs(result.faults) do
		print("    " .. fault)
	end
	if #result.faults > 0 then
		for name, message in pairs(result.errors) do
			print("    on_error: " .. name .. ": " .. message)
		end
	end
end

local function sum(results)
	local those, skipped = performed(results)
	local failed = 0
	for _, result in ipairs(those) do
		failed = failed + (#result.faults == 0 and 0 or 1)
	end
	local line = ("%d passed, %d failed"):format(#those - failed, failed)
	print(line .. (#skipped > 0 and (", %d skipped"):format(#skipped) or ""))
	-- true closes the Lua state, so that a sanitizer finds no leak.
	os.exit(failed == 0 and #results > 0 and 0 or 1, true)
end

local verb, path = arg[1], arg[2]
if verb == "heads" then
	print(padded(heads()))
elseif verb == "line" then
	local results = read(path)
	show(results[#results])
elseif verb == "broken" then
	local file = assert(io.open(path, "a"))
	file:write(cjson.encode { name = arg[3], faults = { "ended with exit code " .. arg[4] }, errors = {} }, "\n")
	file:close()
else
	local results = read(path)
	local file = assert(io.open(arg[3], "w"))
	file:write(markdown((performed(results))))
	file:close()
	print()
	sum(results)
end
