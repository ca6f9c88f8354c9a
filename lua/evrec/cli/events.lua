-- evrec events: lists and watches events as `kubectl events` does, of a cluster, a store, or lines.
local evrec = require "evrec"
local core = require "evrec.core"
local kinds = require "evrec.kinds"
local options = require "evrec.options"

local event_arguments = require "evrec.cli.event_arguments"
local event_output = require "evrec.cli.event_output"
local explained = require "evrec.cli.explained"
local group = require "evrec.cli.group"
local progress = require "evrec.cli.progress"
local sort = require "evrec.cli.sort"
local sources = require "evrec.cli.sources"
local stored_event = require "evrec.cli.stored_event"
local terminal = require "evrec.cli.terminal"
local values = require "evrec.cli.values"

local events = {}

events.define = event_arguments.define

-- ---- reading ----

-- Ends the command by a failure of a source.
local function failed(status, message)
	message = sources.reworded(message)
	local store = message:match "^(.*) is an event store, not lines of events$"
	if store then
		status, message = 2, store .. " is an event store: use --store"
	end
	if message:find "line %d+ is no event" then
		message = message .. "; --lines reads an event a line, as evrec.sink.file writes them"
	end
	terminal.fail(status, message)
end

-- On a cluster `kubectl events --for` compares the object's apiVersion, too; a recorder may leave it out elsewhere.
local function with_api_version(source, for_object)
	local resource, name = options.kind_and_name(for_object)
	local kind = kinds.find(resource, source)
	return kind and { kind = kind.kind, api_version = kind.api_version, name = name } or for_object
end

-- Begins a query or a watch. Returns an iterator of events as the source has them: JSON. Deleted events are left out.
-- The counter, if there is one, counts them.
local function texts(begin, source, query, counter)
	local ok, next_event, message = pcall(begin, source, query, counter and counter.look)
	if not ok then
		failed(2, next_event) -- only misuse is raised
	elseif not next_event then
		failed(1, message)
	end
	return function()
		local read, event, json, deleted
		repeat
			read, event, json, deleted = pcall(next_event)
			if not read then
				failed(1, event)
			end
		until not deleted
		if counter then
			(json and counter.add or counter.clear)()
		end
		return json
	end
end

local function decode(json, arguments)
	local event = stored_event.decode(json)
	if type(event.metadata) == "table" and not arguments.show_managed_fields then
		event.metadata.managedFields = nil
	end
	return event
end

-- ---- the order ----

-- Reads all events, and returns an iterator over them in the order of a key. Only keys and texts stay in memory.
local function sorted(next_text, key)
	local entries = {}
	for json in next_text do
		entries[#entries + 1] = { key = key(stored_event.decode(json)), place = #entries, json = json }
	end
	sort.entries(entries)
	local i = 0
	return function()
		i = i + 1
		return entries[i] and entries[i].json
	end
end

-- All states of an event have this name. An API server's list is in its order, in which `kubectl get events` prints.
local function full_name(event)
	local metadata = stored_event.part(event, "metadata")
	return stored_event.text(metadata, "namespace") .. "/" .. stored_event.text(metadata, "name")
end

-- Raises if no event has the path, as it is misspelt then.
local function found_once(key, path)
	local found, any = false, false
	return function(event)
		local value = key(event)
		found, any = found or value ~= nil, true
		if type(value) == "table" then
			terminal.fail(1, ("--sort-by: %s is no text or number"):format(path))
		end
		return value
	end, function()
		if any and not found then
			terminal.fail(1, ("couldn't find any field with path %q in the list of objects"):format(path))
		end
	end
end

-- With a limit the source returns the newest events first; the list shows them last.
local function reversed(next_text)
	local list = {}
	for json in next_text do
		list[#list + 1] = json
	end
	return function() return table.remove(list) end
end

-- Returns an iterator over the events of the list, in the order in which they are printed.
local function listed(source, query, arguments, counter)
	local field = arguments.sort_by or arguments.output == "wide" and "name" or "lastTimestamp"
	local ordered = { order = arguments.limit and "newest" or "oldest", limit = arguments.limit }
	for name, value in pairs(query) do
		ordered[name] = value
	end
	local next_text = texts(source.query, source, ordered, counter)
	if field == "lastTimestamp" then
		return arguments.limit and reversed(next_text) or next_text
	elseif field == "name" and not arguments.sort_by then
		return sorted(next_text, full_name)
	end
	local key, path = sort.key_of(field)
	if not path then
		return sorted(next_text, key)
	end
	local checked, finish = found_once(key, path)
	local next_sorted = sorted(next_text, checked)
	finish()
	return next_sorted
end

-- ---- printing ----

local function tell_of_misspelt_kind(object)
	local message = object and values.misspelt_kind((options.kind_and_name(object)))
	if message then
		terminal.tell(message)
	end
end

-- Prints kubectl's words. A store or a file cannot check a kind, so evrec adds why there may be no event.
local function tell_nothing(namespace, arguments)
	progress.clear()
	io.stderr:write(namespace and ("No events found in %s namespace.\n"):format(terminal.cell(namespace))
		or "No events found.\n")
	if arguments.store or arguments.lines then
		tell_of_misspelt_kind(arguments.for_object)
		tell_of_misspelt_kind(arguments.mentions)
		if namespace and not arguments.namespace then
			terminal.tell "-A searches all namespaces"
		end
	end
end

local function utc(seconds)
	return os.date("!%Y-%m-%d %H:%M:%S UTC", math.floor(seconds))
end

local function as_given(value)
	return value
end

-- The filters with their words on a page.
local FILTERS = {
	{ "for_object", "for", as_given }, { "mentions", "mentions", as_given },
	{ "types", "types", function(types) return table.concat(types, ", ") end }, { "reason", "reason", as_given },
	{ "action", "action", as_given }, { "controller", "controller", as_given }, { "instance", "instance", as_given },
	{ "since", "since", utc }, { "before", "before", utc }, { "field_selector", "fields", as_given },
	{ "limit", "the newest", as_given },
}

-- The title of a page; and a line that names its source, its time and its filters.
local function heading(arguments, namespace, clock)
	local subtitle = { ("from %s, read %s"):format(sources.describe(arguments), utc(clock:now())) }
	local given = event_arguments.query(arguments)
	given.limit = arguments.limit
	for _, filter in ipairs(FILTERS) do
		local value = given[filter[1]]
		if value then
			subtitle[#subtitle + 1] = ("%s %s"):format(filter[2], filter[3](value))
		end
	end
	return namespace and "Events in " .. namespace or "Events", table.concat(subtitle, "; ")
end

-- Filters by which a store cannot select suppressions. A query with one of them finds no suppression.
local UNKNOWN_OF_SUPPRESSIONS = { "mentions", "controller", "instance", "action", "field_selector" }

-- Returns the spans in which a store has suppressions to which the query's filters apply, for a page.
local function suppressed_spans(source, query)
	for _, filter in ipairs(UNKNOWN_OF_SUPPRESSIONS) do
		if query[filter] then
			return {}
		end
	end
	local types = query.types and {}
	for _, name in ipairs(query.types or {}) do
		types[name] = true
	end
	local ok, notes, message = pcall(source.suppressions, source, {
		for_object = query.for_object, since = query.since, before = query.before,
	})
	if not ok or not notes then
		failed(1, ok and message or notes)
	end
	return require "evrec.cli.html.items".of_suppressions(sources.guarded(notes), function(note)
		return (not query.namespace or query.namespace == explained.namespace(note.object))
			and (not query.reason or query.reason == note.reason) and (not types or types[note.type] == true)
	end)
end

local function settings_of(arguments, namespace, clock)
	local title, subtitle = heading(arguments, namespace, clock)
	return {
		title = title,
		subtitle = subtitle,
		write = terminal.write,
		escape = arguments.group and terminal.cell or terminal.escaper(),
		paint = terminal.has_colours() and terminal.paint or nil,
		now = function() return clock:now() end,
		headers = not arguments.no_headers,
		namespaces = arguments.all_namespaces,
		stream = arguments.watch,
	}
end

local function print_groups(next_text, arguments, settings)
	local groups = group.new(arguments.group[1] or "object", arguments.all_namespaces)
	for json in next_text do
		groups:add(stored_event.decode(json))
	end
	groups:sort() -- the order of groups that have the same key below
	local entries, list = {}, {}
	for i, found in ipairs(groups.list) do
		entries[i] = { key = found[sort.NAMES[arguments.sort_by or "lastTimestamp"]], place = i, group = found }
	end
	sort.entries(entries)
	for i, entry in ipairs(entries) do
		list[i] = entry.group
	end
	event_output.groups(groups, list, settings)
	return #list
end

-- Prints the events of the list. `each` gets them. Returns their number.
local function print_list(next_text, arguments, output, each)
	local count = 0
	for json in next_text do
		local event = decode(json, arguments)
		count = count + 1
		output.event(event)
		each(event)
	end
	output.flush()
	return count
end

-- Whether the events come from a pipe or a terminal, which have no list of present events.
local function is_stream(arguments)
	local kind = arguments.lines and core.file_at(arguments.lines == "-" and "/dev/stdin" or arguments.lines)
	return kind and kind ~= "file"
end

-- The watch begins before the list is read, so that no event is missed. So the watch may return states that the list
-- has, or older ones. They are not shown: the last row of an event must be its newest state.
local function list_and_watch(source, query, arguments, output, counter)
	local next_written, listed_states = texts(source.watch, source, query), {}
	if not is_stream(arguments) then
		print_list(listed(source, query, arguments, counter), arguments, output, function(event)
			listed_states[full_name(event)] = stored_event.state(event)
		end)
	end
	terminal.flush()
	for json in next_written do
		local event = decode(json, arguments)
		local name = full_name(event)
		local listed_state = listed_states[name]
		if not listed_state or stored_event.is_newer(stored_event.state(event), listed_state) then
			listed_states[name] = nil -- a watch tells the states of an event in their order
			output.event(event)
			output.flush()
			terminal.flush()
		end
	end
end

local function nothing() end

--- Runs it. Returns the command's status.
---@param arguments table
---@return integer
function events.run(arguments)
	local misuse = event_arguments.misuse(arguments)
	if misuse then
		terminal.fail(2, misuse)
	end
	local source, default_namespace = sources.open(arguments)
	local namespace = not arguments.all_namespaces and (arguments.namespace or default_namespace) or nil
	local query = event_arguments.query(arguments, namespace)
	if query.for_object and not arguments.store and not arguments.lines then
		query.for_object = with_api_version(source, query.for_object)
	end
	local clock = evrec.clock()
	local settings = settings_of(arguments, namespace, clock)
	local counter = progress.new(clock, "events found")
	if arguments.group then
		query.order, query.limit = "newest", arguments.limit
		local count = print_groups(texts(source.query, source, query, counter), arguments, settings)
		if count == 0 then
			tell_nothing(namespace, arguments)
		end
		return 0
	end
	settings.suppressed = function()
		return arguments.store and suppressed_spans(source, query) or {}
	end
	local output = event_output.new(arguments.output or "table", settings)
	if arguments.watch then
		list_and_watch(source, query, arguments, output, counter)
	elseif print_list(listed(source, query, arguments, counter), arguments, output, nothing) == 0 then
		tell_nothing(namespace, arguments)
	end
	output.finish()
	return 0
end

return events
