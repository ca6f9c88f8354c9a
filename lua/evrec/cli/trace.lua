-- Reads recorded events for replay, explain and lint, in any of these forms. The form is recognised from the content:
--
--   trace   a file of broadcaster:start_trace: each event as it was recorded
--   watch   kubectl get events -A -w -o json --output-watch-events: {"type","object"}, each change of an event
--   audit   lines of the API server's audit log, of creates and patches, at the level Request or above
--   list    an EventList, as kubectl get events -A -o json prints it
--   lines   an event a line, as evrec.sink.file writes them
--
-- In all forms but the first a correlator has already left occurrences out: the counts of a replay are lower bounds
-- then.
local cjson = require "cjson"
local evrec = require "evrec"

local json_stream = require "evrec.cli.json_stream"
local occurrences = require "evrec.cli.occurrences"
local progress = require "evrec.cli.progress"
local stored_event = require "evrec.cli.stored_event"
local terminal = require "evrec.cli.terminal"

local trace = {}
trace.__index = trace

local CHUNK = 65536 -- bytes
local SQLITE = "SQLite format 3\0" -- the beginning of every SQLite database, such as an event store
local START = '{"evrec_trace":'

local DESCRIPTIONS = {
	trace = "a trace of evrec",
	watch = "a watch of events",
	audit = "lines of an audit log",
	list = "a list of events",
	lines = "lines of events",
}

-- ---- reading ----

local function fail(self, message)
	terminal.fail(1, ("%s: %s"):format(self.name, message))
end

-- Returns the next bytes of the file; nil at the end.
local function read_chunk(self)
	local chunk, message = self.file:read(CHUNK)
	if chunk then
		self.counter.add(#chunk)
	else
		self.counter.clear()
	end
	return chunk, message
end

-- As read_chunk, but first returns the bytes that look_at_first has read.
local function next_chunk(self)
	local chunk = self.looked_at
	if chunk then
		self.looked_at = nil
		return chunk
	end
	local message
	chunk, message = read_chunk(self)
	if message then
		fail(self, message)
	end
	return chunk
end

local function decode(self, text, place)
	local ok, value = pcall(cjson.decode, text)
	if not ok or type(value) ~= "table" then
		fail(self, ("the value that begins in line %d is no JSON"):format(place.line))
	end
	return value
end

-- Calls `func` for each JSON object. Returns the number of those that are cut, and were left out.
local function each_object(self, func)
	local values, place = json_stream.values(function() return next_chunk(self) end)
	for text in values do
		func(decode(self, text, place))
	end
	return place.cut
end

local function form_of(object)
	if type(object.object) == "table" and type(object.type) == "string" then
		return "watch"
	elseif object.auditID or (type(object.apiVersion) == "string" and object.apiVersion:find "^audit%.k8s%.io/") then
		return "audit"
	elseif type(object.items) == "table" then
		return "list"
	elseif object.involvedObject or object.regarding then
		return "lines"
	end
end

-- A path as a word of the shell.
local function quoted(path)
	return path:find "^[%w_./][%w_./-]*$" and path or "'" .. path:gsub("'", [['\'']]) .. "'"
end

local function refuse_store(self, path, advice)
	terminal.fail(2, ("%s is an event store: use %s"):format(self.name, advice:gsub("PATH", function()
		return path == "-" and "PATH" or quoted(path)
	end)))
end

-- Reads on until the first value is whole; returns it, and its place.
local function look_at_first(self, path, advice)
	local pieces = {}
	local values, place = json_stream.values(function()
		local chunk, why = read_chunk(self)
		if why then
			fail(self, (why:gsub("^Is", "is")))
		elseif not pieces[1] and chunk and chunk:sub(1, #SQLITE) == SQLITE then
			refuse_store(self, path, advice)
		end
		pieces[#pieces + 1] = chunk
		return chunk
	end)
	local text, message = values()
	self.looked_at = table.concat(pieces)
	message = message and ("%s, which begins in line %d"):format(message, place.line)
	return text or fail(self, message or self.looked_at == "" and "is empty" or "holds no JSON"), place
end

--- Opens a file, and recognises its form. Ends the command if it has none of the forms.
---@param path string - is standard input
---@param advice string the command that works if the file is an event store; PATH in it stands for the file
---@return table trace with the fields form, name and header (of a trace)
function trace.open(path, advice)
	local self = setmetatable({ name = path == "-" and "standard input" or path }, trace)
	local message
	self.file, message = io.stdin, nil
	if path ~= "-" then
		self.file, message = io.open(path, "rb")
	end
	if not self.file then
		terminal.fail(1, message)
	end
	self.counter = progress.new(evrec.clock(), "MiB read", 1048576)
	local first, place = look_at_first(self, path, advice)
	if first:sub(1, #START) == START then
		self.form, self.header = "trace", decode(self, first, place)
	else
		self.form = form_of(decode(self, first, place))
	end
	return self.form and self or fail(self, "holds no events: expected a trace of evrec, a watch, a list, lines of "
		.. "events, or lines of an audit log")
end

--- Says on standard error that the file has no event, or that no event has a time.
function trace:tell_empty()
	terminal.tell(self.name .. (self.timeless and ": no event in it has a time" or ": there is no event in it"))
end

--- Returns the file's form in words.
---@return string
function trace:description()
	return DESCRIPTIONS[self.form]
end

-- ---- from events to occurrences ----

-- An event of either API as one of core/v1; nil if the object is none.
local function event_of(object)
	if type(object) ~= "table" or type(object.metadata) ~= "table" then
		return nil
	end
	local event = stored_event.to_core(object)
	return type(event.involvedObject) == "table" and event or nil
end

-- The items of a list; none if the object, one behind the first, is something else.
local function items_of(list)
	return type(list.items) == "table" and list.items or {}
end

local function observe(self, found, object)
	local event = event_of(object)
	if not event then
		return
	end
	local count, first, last = occurrences.times(event)
	self.timeless = self.timeless or not last
	if last then
		found:observe(occurrences.fields(event), count, first, last)
	end
end

-- A patch has only the fields that it changes.
local function observe_patch(found, reference, patch, time)
	local known = found:event(reference.namespace, reference.name)
	local count = occurrences.times(stored_event.to_core(patch))
	if known then
		local fields = {}
		for key, value in pairs(known.fields) do
			fields[key] = value
		end
		fields.message = patch.message and occurrences.fields({ metadata = {}, message = patch.message }).message
			or fields.message
		found:observe(fields, count, known.last, time)
	end
	return known ~= nil
end

-- Each returns the number of values that are cut.
local readers = {}

function readers.watch(self, found)
	return each_object(self, function(line)
		if line.type ~= "DELETED" then
			observe(self, found, line.object)
		end
	end)
end

function readers.list(self, found)
	return each_object(self, function(list)
		for _, object in ipairs(items_of(list)) do
			observe(self, found, object)
		end
	end)
end

function readers.lines(self, found)
	return each_object(self, function(object) observe(self, found, object) end)
end

function readers.audit(self, found)
	return each_object(self, function(line)
		local reference, request = line.objectRef, line.requestObject
		local time = stored_event.time(line, "requestReceivedTimestamp")
		if line.stage ~= "ResponseComplete" or type(reference) ~= "table" or reference.resource ~= "events"
			or type(request) ~= "table" or not time then
			return
		end
		local created = line.verb == "create" and event_of(request)
		if created then
			found:observe(occurrences.fields(created), (occurrences.times(created)), time, time)
		elseif line.verb == "patch" and not observe_patch(found, reference, request, time) then
			self.unknown = self.unknown + 1
		end
	end)
end

-- ---- for the commands ----

--- Replays all events. Ends the command if that fails.
---@param replay table of evrec.replay
function trace:feed(replay)
	local ok, message
	if self.form == "trace" then
		for chunk in next_chunk, self do
			ok, message = replay:feed(chunk)
			if not ok then
				fail(self, message)
			end
		end
		return
	end
	local found = occurrences.new()
	self.unknown = 0
	self.cut = readers[self.form](self, found)
	local counter = progress.new(evrec.clock(), "occurrences replayed")
	for event, time in found:each() do
		ok, message = replay:add(event, time)
		counter.add()
		if not ok then
			fail(self, ("event %s/%s: %s"):format(stored_event.text(event.metadata, "namespace"),
				stored_event.text(event.metadata, "name"), (message:gsub("^evrec%.event: ", ""))))
		end
	end
	counter.clear()
	self.reconstructed, self.left_out = found.reconstructed, found.left_out
end

-- Calls `func` for the events that a trace defines; the lines of their further occurrences are short, and end with a
-- digit. A replay checks the header, and counts the lines that cannot be read.
local function each_defined(self, func)
	local rest, checker = "", evrec.replay { {} }
	for chunk in next_chunk, self do
		local ok, message = checker:feed(chunk)
		if not ok then
			fail(self, message)
		end
		chunk = rest .. chunk
		local last = 0
		for line, behind in chunk:gmatch "([^\n]*)\n()" do
			last = behind - 1
			local read, object = pcall(cjson.decode, line:find('"event":', 1, true) and line or "{}")
			if read and type(object) == "table" and type(object.event) == "table" then
				func(stored_event.to_core(object.event))
			end
		end
		rest = chunk:sub(last + 1)
	end
	local result, message = checker:finish()
	self.malformed = result and result.trace.malformed or fail(self, message)
end

--- Calls `func` for each different event, as decoded from JSON. Of a trace the field `malformed` is then the number of
--- lines that cannot be read; of another form `cut` is the number of values that end before their JSON does.
---@param func fun(event: table) of core/v1
function trace:each_event(func)
	if self.form == "trace" then
		return each_defined(self, func)
	end
	local function give(object)
		local event = event_of(object)
		if event then
			func(event)
		end
	end
	self.cut = each_object(self, function(object)
		if self.form == "watch" then
			give(object.object)
		elseif self.form == "audit" then
			give(object.requestObject)
		elseif self.form == "list" then
			for _, item in ipairs(items_of(object)) do
				give(item)
			end
		else
			give(object)
		end
	end)
end

return trace
