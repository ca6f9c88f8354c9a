-- The changes of hosts that are tried: each is a row of the table, and each row is tried in each of the columns.
local matrix = {}

--- After a change that ends a process at once, this many seconds' worth of events may be lost without a spool. SIGTERM
--- does so in HAProxy, which leaves that signal its default action.
matrix.bound = 1
matrix.rate = 1000 -- events a second
local at_once = { ["kill -9"] = true, SIGTERM = true }

--- The column says what keeps the events that a process did not write: nothing; its spool; a share, with a state file
--- or with a spool. A shared sink that names one of the two has both.
matrix.columns = { "alone", "spool", "share, state_file", "share, spool" }

local function add(row)
	row.ends_at_once = at_once[row.change]
	row.states = row.states or 1
	row.number = #matrix + 1
	matrix[row.number] = row
end

for _, workers in ipairs { 2, 8 } do
	for _, change in ipairs { "reload", "quit", "stop", "kill -9" } do
		add { host = "nginx", setup = workers .. " workers", change = change, settings = { workers = workers } }
	end
end

for _, mode in ipairs { "-W", "-D" } do
	for _, load in ipairs { { "lua-load" }, { "lua-load-per-thread", 2 }, { "lua-load-per-thread", 4 } } do
		local setup = mode .. ", " .. load[1] .. (load[2] and (", %d threads"):format(load[2]) or "")
		for _, change in ipairs { "SIGUSR1", "SIGTERM", "reload", "kill -9" } do
			add {
				host = "haproxy", setup = setup, change = change, states = load[2],
				settings = {
					mode = mode == "-W" and "-Ws" or mode, load = load[1],
					threads = load[2] and "nbthread " .. load[2] or "",
				},
			}
		end
	end
end

--- How many occurrences may be lost in a cell.
function matrix.loss_bound_of(row, column)
	return column == "alone" and row.ends_at_once and matrix.bound * matrix.rate or 0
end

--- How many occurrences may be counted though they were not noted: none, unless the change ends a process at once. With
--- a share the occurrences that its owner had not acknowledged are counted twice. Without a share each Lua state of the
--- process may have recorded one occurrence that it had not noted yet.
function matrix.unnoted_bound_of(row, column)
	if not row.ends_at_once then
		return 0
	end
	return matrix.shares(column) and matrix.bound * matrix.rate or row.states
end

function matrix.spools(column)
	return column == "spool" or column == "share, spool"
end

function matrix.shares(column)
	return column:find "^share" ~= nil
end

function matrix.keeps_state(column)
	return column == "share, state_file"
end

--- Whether each object has one event, whichever processes recorded it, and before or after the change.
matrix.has_one_event_each = matrix.shares

--- Calls the function with the name of each cell, its row and its column.
function matrix.each(visit)
	for _, row in ipairs(matrix) do
		for _, column in ipairs(matrix.columns) do
			visit(("%s %s: %s, %s"):format(row.host, row.setup, row.change, column), row, column)
		end
	end
end

--- The row and the column of a cell.
function matrix.find(name)
	local row, column
	matrix.each(function(this, its_row, its_column)
		if this == name then
			row, column = its_row, its_column
		end
	end)
	assert(row, "no such change")
	return row, column
end

return matrix
