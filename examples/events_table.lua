-- Prints events almost as `kubectl get events` did in 2015, from a file that a file sink has written:
-- `events_table.lua FILE`. The sink appends a line for every write, so the last line with an event's name shows its
-- present state.
local cjson = require "cjson"

local columns = { "FIRSTSEEN", "LASTSEEN", "COUNT", "NAME", "KIND", "REASON", "SOURCE", "MESSAGE" }

local events_table = {}

--- Reads the events that a file sink wrote, each in its last state, in the order in which they first appeared. Raises
--- if the file cannot be read.
---@param path string
---@return table[] events core/v1 events, as decoded from JSON
function events_table.read(path)
	local events, place = {}, {}
	for line in io.lines(path) do
		local event = cjson.decode(line)
		local name = event.metadata.name
		place[name] = place[name] or #events + 1
		events[place[name]] = event
	end
	return events
end

local function row(event)
	local object = event.involvedObject
	return {
		event.firstTimestamp:sub(12, 19), event.lastTimestamp:sub(12, 19), ("%d"):format(event.count),
		object.name, object.kind, event.reason,
		event.source.component .. (event.source.host and " " .. event.source.host or ""), event.message,
	}
end

--- Lays rows of cells out in columns.
---@param rows string[][] the first one holds the headings
---@param limit? integer longer lines are cut, and end in "..."
---@return string text a line for each row
function events_table.layout(rows, limit)
	local width, lines = {}, {}
	for _, cells in ipairs(rows) do
		for i, cell in ipairs(cells) do
			width[i] = math.max(width[i] or 0, #cell)
		end
	end
	for _, cells in ipairs(rows) do
		local padded = {}
		for i, cell in ipairs(cells) do
			padded[i] = cell .. (" "):rep(width[i] - #cell)
		end
		local line = table.concat(padded, "  "):gsub("%s+$", "")
		lines[#lines + 1] = limit and #line > limit and line:sub(1, limit - 3) .. "..." or line
	end
	return table.concat(lines, "\n")
end

--- Formats events as the table of 2015.
---@param events table[]
---@return string text
function events_table.format(events)
	local rows = { columns }
	for _, event in ipairs(events) do
		rows[#rows + 1] = row(event)
	end
	return events_table.layout(rows)
end

if arg and arg[0] and arg[0]:find("events_table%.lua$") then
	print(events_table.format(events_table.read(arg[1])))
end

return events_table
