-- The forms in which `evrec events` prints: tables, json, yaml, name and html. Each has three functions: `event` takes
-- an event, `flush` writes the rows that wait, `finish` ends the output after the last event.
local columns = require "evrec.cli.columns"
local event_table = require "evrec.cli.event_table"
local group = require "evrec.cli.group"
local json = require "evrec.cli.json"
local stored_event = require "evrec.cli.stored_event"
local yaml = require "evrec.cli.yaml"

local event_output = {}

--- Settings of an output.
---@class evrec.cli.OutputSettings
---@field write fun(text: string)
---@field escape fun(text: string): string
---@field paint? fun(text: string): string
---@field now fun(): number seconds since 1970
---@field headers boolean
---@field namespaces boolean whether a table has the column NAMESPACE
---@field stream boolean whether events come one by one: json and yaml then print no list
---@field title string of a page
---@field subtitle string of a page

local function nothing() end

-- A table whose header is written before the first row.
local function new_table(settings, header)
	local writer, begun = columns.new(settings.write, settings.paint), false
	local function add(namespace, cells)
		if settings.namespaces then
			table.insert(cells, 1, namespace)
		end
		writer:add(cells)
	end
	return {
		add = function(namespace, cells)
			if not begun and settings.headers then
				add("NAMESPACE", { (table.unpack or unpack)(header) }) -- luacheck: ignore 143
			end
			begun = true
			add(namespace, cells)
		end,
		flush = function() writer:flush() end,
	}
end

local function table_of_events(settings, header, row)
	local rows = new_table(settings, header)
	return {
		event = function(event)
			rows.add(event_table.namespace(event, settings.escape), row(event, settings.now(), settings.escape))
		end,
		flush = rows.flush,
		finish = nothing,
	}
end

-- Prints lists as kubectl does: an EventList, whose keys are sorted, too. `form` has the text before, between and
-- behind the items.
local function list_of(settings, form)
	local count = 0
	return {
		event = function(event)
			count = count + 1
			if settings.stream then
				settings.write((count > 1 and form.separator or "") .. form.encode(event, ""))
			else
				settings.write((count == 1 and form.head or form.comma) .. form.item(event))
			end
		end,
		flush = nothing,
		finish = function()
			if count > 0 and not settings.stream then
				settings.write(form.tail)
			end
		end,
	}
end

local JSON = {
	encode = function(event) return json.encode(event, "") .. "\n" end,
	separator = "",
	head = '{\n    "apiVersion": "v1",\n    "items": [\n        ',
	item = function(event) return json.encode(event, "        ") end,
	comma = ",\n        ",
	tail = '\n    ],\n    "kind": "EventList",\n    "metadata": {}\n}\n',
}

local YAML = {
	encode = yaml.encode,
	separator = "---\n",
	head = "apiVersion: v1\nitems:\n",
	item = function(event) return yaml.encode({ event }, "") end,
	comma = "",
	tail = "kind: EventList\nmetadata: {}\n",
}

-- One page of all events, in the order in which they came.
local function page_of(settings)
	local html, items = require "evrec.cli.html.page", require "evrec.cli.html.items"
	local found = {}
	return {
		event = function(event) found[#found + 1] = items.of_event(event) end,
		flush = nothing,
		finish = function()
			settings.write(html.page {
				title = settings.title,
				subtitle = settings.subtitle,
				hatched = items.HATCHED,
				views = { { name = "events", events = found, suppressed = settings.suppressed() } },
			})
		end,
	}
end

local OUTPUTS = {
	table = function(settings) return table_of_events(settings, event_table.HEADER, event_table.row) end,
	wide = function(settings) return table_of_events(settings, event_table.WIDE_HEADER, event_table.wide_row) end,
	html = page_of,
	json = function(settings) return list_of(settings, JSON) end,
	yaml = function(settings) return list_of(settings, YAML) end,
	name = function(settings)
		return {
			event = function(event)
				local name = stored_event.text(stored_event.part(event, "metadata"), "name")
				settings.write("event/" .. settings.escape(name) .. "\n")
			end,
			flush = nothing,
			finish = nothing,
		}
	end,
}

--- The values of `-o`.
event_output.FORMATS = { "wide", "json", "yaml", "name", "html" }

--- Makes an output.
---@param format "table"|"wide"|"json"|"yaml"|"name"|"html"
---@param settings evrec.cli.OutputSettings
function event_output.new(format, settings)
	return OUTPUTS[format](settings)
end

--- Prints groups as a table.
---@param groups table of group.new
---@param list table[] the groups in their order
---@param settings evrec.cli.OutputSettings
function event_output.groups(groups, list, settings)
	local rows = new_table(settings, group.HEADERS[groups.by])
	for _, found in ipairs(list) do
		rows.add(settings.escape(found.namespace), groups:row(found, settings.now(), settings.escape))
	end
	rows.flush()
end

return event_output
