-- Sources of events: the methods query and watch, which make iterators. The core reads (csrc/read). This file parses
-- filters, and waits for at most 0.2 s at a time, so that Ctrl-C and debuggers' hooks can run.
local core = require "evrec.core"
local kinds = require "evrec.kinds"
local kubernetes = require "evrec.kubernetes"
local options = require "evrec.options"
local times = require "evrec.times"

local fail = options.fail

local reading = {}

-- Seconds that a call of the core may wait.
local spell = 0.2

-- The filters of a query, with the types of those that the core does not check.
local filters = {
	namespace = true, for_object = true, mentions = true, controller = true, instance = true, types = true, reason = true,
	action = true, since = true, before = true, field_selector = true,
}

local function with_filters(set)
	for name, kind in next, filters do
		set[name] = kind
	end
	return set
end

local query_options = with_filters { order = true, limit = true }
local watch_options = with_filters { timeout = "number" }

-- The sources that are clusters: they can resolve kinds that are not built in.
local clusters = setmetatable({}, { __mode = "k" })

-- ---- filters ----

-- Reads "pod/web-0" or "deployment.apps/web". An event's apiVersion counts only if the group is given, as recorders may
-- leave it out.
local function object(option, value, cluster)
	if type(value) == "table" then
		return value
	elseif type(value) ~= "string" then
		fail("option '%s': expected a string or a table, got %s", option, type(value))
	end
	local name_of_kind, name = options.kind_and_name(value)
	if not name_of_kind then
		fail("option '%s': expected KIND/NAME, got '%s'", option, value)
	end
	local kind, with_group = kinds.find(name_of_kind, cluster)
	local as_given = not kind and not cluster and kinds.read(name_of_kind)
	if as_given then
		return { kind = as_given.kind, api_version = as_given.has_version and as_given.api_version or nil, name = name }
	elseif not kind then
		fail("option '%s': unknown kind '%s'", option, name_of_kind)
	end
	return { kind = kind.kind, api_version = with_group and kind.api_version or nil, name = name }
end

local function time(option, value)
	local seconds = times.parse(value)
	if not seconds then
		fail("option '%s': expected seconds since 1970, a duration such as \"90m\" or \"7d\", or RFC 3339, got %s", option,
			type(value) == "string" and ("'%s'"):format(value) or type(value))
	elseif seconds < 0 then
		fail("option '%s': %s is before 1970", option, type(value) == "string" and ("'%s'"):format(value) or value)
	end
	return seconds
end

-- Returns the filters in the form that the core takes.
local function prepared(source, given, known)
	local set = options.checked(given, known)
	local cluster = clusters[source] and source or nil
	for _, option in ipairs { "for_object", "mentions" } do
		set[option] = set[option] ~= nil and object(option, set[option], cluster) or nil
	end
	for _, option in ipairs { "since", "before" } do
		set[option] = set[option] ~= nil and time(option, set[option]) or nil
	end
	if set.timeout and not (set.timeout >= 0 and set.timeout < math.huge) then
		fail("option 'timeout': expected a finite number of seconds >= 0, got %s", set.timeout)
	end
	return set
end

-- ---- iterators ----

-- Waits until the reader has begun: true; or nil, message, name. Calls `waiting`, if given, after each spell.
local function begin(reader, waiting)
	local begun, message, name = reader:begin(spell)
	while begun == false do
		if waiting then
			waiting()
		end
		begun, message, name = reader:begin(spell)
	end
	return begun, message, name
end

-- The function of an iterator, which ends after `timeout` seconds of silence.
local function iterator(reader, timeout)
	return function()
		local silence = 0
		while true do
			local wait = timeout and math.min(spell, timeout - silence) or spell
			local event, json, deleted = reader:next(math.max(wait, 0))
			if event then
				return event, json, deleted
			elseif event == nil then
				reader:close()
				if json then
					error(json, 2)
				end
				return nil
			end
			silence = silence + wait
			if timeout and silence >= timeout then
				reader:close()
				return nil
			end
		end
	end
end

local function open(source, given, known, watch, called, waiting)
	local ok, set = pcall(prepared, source, given, known)
	if not ok then
		error(called .. ": " .. tostring(set), 3)
	end
	local timeout = set.timeout
	set.timeout = nil
	local opened, reader, message, name = pcall(core.source_open, source, set, watch, called)
	if not opened then
		error(reader, 3)
	elseif not reader then
		return nil, message, name
	end
	local begun
	begun, message, name = begin(reader, waiting)
	if not begun then
		reader:close()
		return nil, message, name
	end
	-- Lua 5.4 closes the fourth value at the end of the loop; the other Luas let the collector do it.
	return iterator(reader, timeout), nil, nil, reader
end

--- Reads the events to which all filters apply: `for event, json in assert(source:query { ... }) do`.
---@param source evrec.Source
---@param given? evrec.Query
---@param waiting? fun() is called each 0.2 s until the first event is found
function reading.query(source, given, waiting)
	local iterate, second, third, reader = open(source, given, query_options, false, "source:query", waiting)
	return iterate, second, third, reader
end

--- Reads the changes of events from now on.
---@param source evrec.Source
---@param given? evrec.WatchQuery
function reading.watch(source, given)
	local iterate, second, third, reader = open(source, given, watch_options, true, "source:watch")
	return iterate, second, third, reader
end

-- ---- a store's notes beside its events ----

-- Opens a reader of notes, and makes an iterator of tables. The function `finish` makes seconds of their nanoseconds.
local function notes(open_notes, source, set, called, finish)
	local decode = require("cjson").decode
	local opened, reader, message, name = pcall(open_notes, source, set, called)
	if not opened then
		error(reader, 3)
	elseif not reader then
		return nil, message, name
	end
	local function iterate()
		local json, why = reader:next(0)
		if json then
			return finish(decode(json))
		end
		reader:close()
		return why and error(why, 2) or nil
	end
	return iterate, nil, nil, reader
end

local suppression_options = { for_object = true, since = true, before = true, limit = true }

-- lua-cjson decodes all numbers as floats; math.floor makes integers of them in the Luas that have integers.
local function suppression(note)
	note.first, note.last, note.count = note.first / 1e9, note.last / 1e9, math.floor(note.count)
	return note
end

--- Reads the suppressions that a store sink with the option `suppressions` has noted.
---@param source evrec.Source
---@param given? evrec.SuppressionQuery
function reading.suppressions(source, given)
	local called = "source:suppressions"
	local ok, set = pcall(prepared, source, given, suppression_options)
	if not ok then
		error(called .. ": " .. tostring(set), 2)
	end
	local iterate, second, third, reader = notes(core.source_suppressions, source, set, called, suppression)
	return iterate, second, third, reader
end

local function occurrence(note)
	note.time, note.count = note.time / 1e9, math.floor(note.count)
	return note
end

--- Reads when an event occurred, as a store sink with the option `occurrences` has noted.
---@param source evrec.Source
---@param given { namespace: string, name: string }
function reading.occurrences(source, given)
	local iterate, second, third, reader = notes(core.source_occurrences, source, given, "source:occurrences", occurrence)
	return iterate, second, third, reader
end

-- ---- sources ----

--- The events in a file that a file sink wrote. Raises on misuse.
---@param given { path: string }
---@return evrec.Source
function reading.lines(given)
	local ok, source = pcall(core.source_lines, given)
	return ok and source or error(source, 2)
end

--- The events in a file that a store sink wrote. Raises on misuse.
---@param given { path: string }
---@return evrec.Source
function reading.store(given)
	local ok, source = pcall(core.source_store, given)
	return ok and source or error(source, 2)
end

--- The events of a cluster. Raises on misuse.
---@param given? evrec.KubernetesOptions
---@return evrec.Source
function reading.cluster(given)
	local ok, source = pcall(kubernetes.cluster, given)
	if not ok then
		error(source, 2)
	end
	clusters[source] = true
	return source
end

return reading
