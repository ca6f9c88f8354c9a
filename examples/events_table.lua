-- Prints events as `kubectl get events` did in 2015, from a file that a file sink has written: `events_table.lua FILE`.
-- The sink appends a line for every write, so the last line of a name is how the event stands.
local cjson = require "cjson"

local columns = { "FIRSTSEEN", "LASTSEEN", "COUNT", "NAME", "KIND", "SUBOBJECT", "REASON", "SOURCE", "MESSAGE" }

local events_table = {}

--- Reads the events of a file sink's file, each as it last stood, in the order in which they first appeared.
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
		object.name, object.kind, object.fieldPath or "", event.reason,
		("{%s %s}"):format(event.source.component, event.source.host or ""), event.message,
	}
end

--- Lays rows of cells out in columns.
---@param rows string[][] the first one holds the headings
---@return string text a line a row
function events_table.layout(rows)
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
		lines[#lines + 1] = table.concat(padded, "   "):gsub("%s+$", "")
	end
	return table.concat(lines, "\n")
end

--- The table of 2015.
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
