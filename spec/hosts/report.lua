-- Prints the results of the matrix as a table in Markdown.
--
-- usage: luajit report.lua RESULTS
local cjson = require "cjson"
local matrix = require "matrix"

local results = {}
for line in io.lines(arg[1]) do
	local result = cjson.decode(line)
	results[result.row] = results[result.row] or {}
	results[result.row][result.column] = result
end

local heads, rule = { "host", "change" }, { "---", "---" }
for _, column in ipairs(matrix.columns) do
	heads[#heads + 1], rule[#rule + 1] = column .. ": recorded", "---:"
	heads[#heads + 1], rule[#rule + 1] = "lost", "---:"
	heads[#heads + 1], rule[#rule + 1] = "twice", "---:"
end

local function show(cells)
	print("| " .. table.concat(cells, " | ") .. " |")
end

show(heads)
show(rule)
local names = { nginx = "nginx", haproxy = "HAProxy" }
for number, row in ipairs(matrix) do
	if results[number] then
		local cells = { names[row.host] .. ", " .. row.setup, row.change }
		for _, column in ipairs(matrix.columns) do
			local result = results[number][column]
			for _, field in ipairs { "recorded", "lost", "twice" } do
				cells[#cells + 1] = result and tostring(result[field]) or "-"
			end
		end
		show(cells)
	end
end
