-- Prints the results of the matrix as a table in Markdown. A cell has the lost occurrences of all columns.
--
-- usage: luajit report.lua RESULTS
local cjson = require "cjson"
local matrix = require "matrix"

local results, recorded, unnoted = {}, 0, 0
for line in io.lines(arg[1]) do
	local result = cjson.decode(line)
	results[result.row] = results[result.row] or {}
	results[result.row][result.column] = result.lost
	recorded, unnoted = recorded + result.recorded, unnoted + result.unnoted
end

-- Returns the occurrences that were lost by one change, for each column: "0 / 0"; "-" for a column that was not tried.
local function cell(row)
	local losses = {}
	for i, column in ipairs(matrix.columns) do
		losses[i] = (results[row.number] or {})[column] or "-"
	end
	return table.concat(losses, " / ")
end

local names = { nginx = "nginx", haproxy = "HAProxy" }
-- The changes of nginx and of HAProxy that stand in one column of the table.
local heads = { { "reload" }, { "quit", "SIGUSR1" }, { "stop", "SIGTERM" }, { "kill -9" } }

local lines, order = {}, {}
for _, row in ipairs(matrix) do
	local name = names[row.host] .. ", " .. row.setup
	if not lines[name] then
		lines[name], order[#order + 1] = {}, name
	end
	for i, changes in ipairs(heads) do
		for _, change in ipairs(changes) do
			lines[name][i] = change == row.change and cell(row) or lines[name][i]
		end
	end
end

local titles = {}
for i, changes in ipairs(heads) do
	titles[i] = "`" .. table.concat(changes, "`, `") .. "`"
end
print(("| lost: %s | %s |"):format(table.concat(matrix.columns, " / "):gsub(", ", "+"), table.concat(titles, " | ")))
print("|---|" .. ("---:|"):rep(#heads))
for _, name in ipairs(order) do
	print(("| %s | %s |"):format(name, table.concat(lines[name], " | ")))
end
print(("\n%d occurrences were noted, and %d more were counted."):format(recorded, unnoted))
print(("`kill -9`, and SIGTERM of HAProxy, may lose those of %d s, %d each, of a sink alone; others none.")
	:format(matrix.bound, matrix.bound * matrix.rate))
