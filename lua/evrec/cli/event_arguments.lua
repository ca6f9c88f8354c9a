-- The arguments of `evrec events`, and the query that they make.
local times = require "evrec.times"

local event_output = require "evrec.cli.event_output"
local event_table = require "evrec.cli.event_table"
local sort = require "evrec.cli.sort"
local sources = require "evrec.cli.sources"
local values = require "evrec.cli.values"

local event_arguments = {}

-- ---- values ----

-- A value behind a short option and an equals sign, as in -o=json.
local function without_equals(text)
	return (text:gsub("^=", ""))
end

-- One of `names`, in the case that `names` has.
local function one_of(option, names)
	return function(text)
		text = without_equals(text)
		for _, name in ipairs(names) do
			if name:lower() == text:lower() then
				return name
			end
		end
		return nil, ("%s: expected %s, got '%s'"):format(option, table.concat(names, ", "):gsub(", (%w+)$", " or %1"), text)
	end
end

local function list_of_types(text)
	local types = {}
	for word in (text .. ","):gmatch "([^,]*)," do
		local name, message = one_of("--types", { "Normal", "Warning" })(word)
		if not name then
			return nil, message
		end
		types[#types + 1] = name
	end
	return types
end

local MOST = 1000000000

local function whole_number(option, least)
	return function(text)
		local number = text:find "^%d+$" and tonumber(text)
		if number and number >= least and number <= MOST then
			return number
		end
		return nil, ("%s: expected a whole number from %d to %d, got '%s'"):format(option, least, MOST, text)
	end
end

-- In March 1973. A smaller number is more likely a duration without its unit than seconds since 1970.
local EARLIEST = 1e8
local LATEST = 9223372036 -- in 2262; the nanoseconds of a later time do not fit into 64 bits

-- Tells if a text is a timestamp of any year.
local function is_timestamp(text)
	local behind_year = text:match "^%d%d%d%d(%-.*)$"
	return behind_year ~= nil and times.parse("2000" .. behind_year) ~= nil
end

local function time(option)
	return function(text)
		local number = tonumber(text)
		local seconds = times.parse(number or text)
		if number and (number ~= number or number < EARLIEST) or not (seconds or is_timestamp(text)) then
			return nil, ("%s: expected a duration such as 90m or 7d, a timestamp such as 2026-11-23T06:00:00Z, or seconds "
				.. "since 1970, got '%s'"):format(option, text)
		elseif seconds and seconds >= 0 and seconds <= LATEST then
			return seconds
		elseif times.duration(text) then
			return nil, ("%s: %s ago is before 1970"):format(option, text)
		end
		return nil, ("%s: '%s' is not between 1970 and 2262"):format(option, text)
	end
end

local function sort_field(text)
	if sort.key_of(text) then
		return text
	end
	return nil, ("--sort-by: expected a name, or a path of fields such as .metadata.name, got '%s'"):format(text)
end

-- ---- options ----

local DESCRIPTION = "List events: of the cluster that kubectl would ask, of an event store, or of a file of JSON "
	.. "lines. Flags, columns, ages and order are those of kubectl events. Exits with 0, also if no event was found; 1 if "
	.. "reading failed; 2 on misuse."

local EPILOG = [[
A TIME is a duration before now (90s, 15m, 2h, 7d), a timestamp of RFC 3339, or seconds since 1970.

Examples:
   evrec events -A --types Warning --since 1h
   evrec events --mentions pod/web-0        the pod is the event's object, or related to it
   evrec events --store events.db --group   one line for each object, with sums
   evrec events --lines events.json -o wide --sort-by count
   evrec events -w --controller kubelet     the list, then each event as it is written]]

local function define_selection(parser)
	parser:group("Which events",
		parser:flag("-A --all-namespaces", "Of all namespaces."),
		parser:option("-n --namespace", "Of this namespace; else the context's, and default for a store or lines.")
			:argname "NAME":convert(without_equals):action(values.set_namespace),
		parser:option("--for", "About this object, such as pod/web-0."):target "for_object":argname "KIND/NAME"
			:convert(values.object "--for"),
		parser:option("--mentions", "About or related to this object."):argname "KIND/NAME"
			:convert(values.object "--mentions"),
		parser:option("--types", "Normal, Warning, or both with a comma."):argname "TYPES":count "*"
			:convert(list_of_types),
		parser:option("--reason", "With this reason."):argname "REASON",
		parser:option("--action", "With this action."):argname "ACTION",
		parser:option("--controller", "Reported by this controller."):argname "NAME",
		parser:option("--instance", "Reported by this instance of a controller."):argname "NAME",
		parser:option("--since", "Last occurred at or after a time."):argname "TIME":convert(time "--since"),
		parser:option("--before --until", "Last occurred before a time."):argname "TIME"
			:convert(time "--before"),
		parser:option("--field-selector", "As of kubectl get, such as type!=Normal,reason=Killing."):argname "FIELDS"
			:convert(event_table.trim),
		parser:option("--limit", "At most N events, the newest."):argname "N":convert(whole_number("--limit", 1)))
end

local function define_output(parser)
	parser:group("How to print them",
		parser:option("-o --output", "wide (as kubectl get events -o wide), json, yaml, name, or html (a page).")
			:argname "FORM":convert(one_of("-o", event_output.FORMATS)),
		parser:option("--sort-by", "Ascending by lastTimestamp (the last occurrence), firstTimestamp, count, reason, "
			.. "object, type, or a path such as .metadata.name."):argname "FIELD":convert(sort_field),
		parser:option("--group", "One line for each object, or each reason, with sums: events, occurrences, and "
			.. "warnings. BY is object, the default, or reason."):argname "BY":args "?"
			:convert(one_of("--group", { "object", "reason" })),
		parser:flag("-w --watch", "After the sorted list, print each event as it is written."),
		parser:flag("--no-headers", "No header."),
		parser:flag("--show-managed-fields", "Keep metadata.managedFields in json and yaml."),
		parser:option("--chunk-size", "Understood for kubectl's sake; evrec chooses its pages."):argname "N"
			:convert(whole_number("--chunk-size", 0)))
end

--- Adds the arguments to a parser of argparse.
function event_arguments.define(parser)
	parser:description(DESCRIPTION)
	parser:epilog(EPILOG)
	parser:help_max_width(100)
	parser:help_description_margin(30)
	define_selection(parser)
	define_output(parser)
	parser:group("Where they are", sources.define(parser))
end

--- Tells which arguments exclude each other.
---@return string? message nil: they are fine
function event_arguments.misuse(arguments)
	if arguments.watch and arguments.output == "html" then
		return "-o html: not together with --watch, as a page is written once"
	end
	if not arguments.group then
		return nil
	end
	for _, name in ipairs { "watch", "output" } do
		if arguments[name] then
			return ("--group: not together with --%s"):format(name)
		end
	end
	if arguments.sort_by and not sort.NAMES[arguments.sort_by] then
		return "--sort-by: groups have no such field; lastTimestamp, firstTimestamp, count, reason, object or type"
	end
end

local function types_of(arguments)
	local types = {}
	for _, list in ipairs(arguments.types) do
		for _, name in ipairs(list) do
			types[#types + 1] = name
		end
	end
	return #types > 0 and types or nil
end

--- Makes a query.
---@param arguments table
---@param namespace string? nil: all
---@return table as source:query and source:watch take it, without an order
function event_arguments.query(arguments, namespace)
	return {
		namespace = namespace,
		for_object = arguments.for_object,
		mentions = arguments.mentions,
		controller = arguments.controller,
		instance = arguments.instance,
		types = types_of(arguments),
		reason = arguments.reason,
		action = arguments.action,
		since = arguments.since,
		before = arguments.before,
		field_selector = arguments.field_selector,
	}
end

return event_arguments
