-- evrec lint: finds problems of recorded events that make them hard to read, to count or to write.
local plural = require "evrec.cli.plural"
local stored_event = require "evrec.cli.stored_event"
local terminal = require "evrec.cli.terminal"
local trace = require "evrec.cli.trace"

local lint = {}

local DESCRIPTION = "Check recorded events: reasons that are not in CamelCase; reasons, actions and components with "
	.. "more than 100 different values, by which no event is ever counted; messages that were cut; and types and lengths "
	.. "that events.k8s.io/v1 refuses. Exits with 0 if it finds nothing; 1 if it finds something, or reading failed; 2 on "
	.. "misuse."

local EPILOG = [[
FILE is in any of the forms that evrec replay takes; a dash is standard input.

Examples:
   evrec lint events.trace
   kubectl get events -A -o json | evrec lint -]]

--- Adds the arguments to a parser of argparse.
function lint.define(parser)
	parser:description(DESCRIPTION)
	parser:epilog(EPILOG)
	parser:help_max_width(100)
	parser:mutex(
		parser:argument("file", "The recorded events."):argname "FILE":args "?",
		parser:option("--trace", "The same: a file of broadcaster:start_trace."):argname "FILE",
		parser:option("--lines", "The same: a file of evrec.sink.file."):argname "FILE")
end

local MESSAGE = 1024 -- bytes that events.k8s.io/v1 takes, and evrec's max_message_bytes
local SHORT = 128 -- bytes of a reason, an action and an instance in events.k8s.io/v1
local MANY = 100 -- different values of a field from which on it is suspect, as for a recorder's error "cardinality"
local CUT = "\226\128\166" -- the end of a message that a recorder has cut

local text = stored_event.text

local function component_of(event)
	local component = text(event, "reportingComponent")
	return component ~= "" and component or text(stored_event.part(event, "source"), "component")
end

-- Each rule returns a problem of an event; nil if it finds none.
local rules = {
	function(event)
		local reason = text(event, "reason")
		return not reason:find "^[A-Z][A-Za-z0-9]*$" and "the reason is not in CamelCase" or nil
	end,
	function(event)
		local message = text(event, "message")
		if #message > MESSAGE then
			return ("the message has more than %d bytes, which events.k8s.io/v1 refuses"):format(MESSAGE)
		elseif #message > MESSAGE - 4 and message:sub(-#CUT) == CUT then
			return ("the message was cut at %d bytes"):format(MESSAGE)
		end
	end,
	function(event)
		for _, field in ipairs { "reason", "action", "reportingInstance" } do
			if #text(event, field) > SHORT then
				return ("%s has more than %d bytes, which events.k8s.io/v1 refuses"):format(field, SHORT)
			end
		end
	end,
	function(event)
		local type_of = text(event, "type")
		return type_of ~= "Normal" and type_of ~= "Warning" and "the type is neither Normal nor Warning, which "
			.. "events.k8s.io/v1 refuses" or nil
	end,
}

-- ---- findings ----

local Findings = {}
Findings.__index = Findings

local function new_findings()
	return setmetatable({ list = {}, by_key = {}, fields = {} }, Findings)
end

-- Counts a finding for each component and reason; the first event is the example. If a file has several states of an
-- event, they count once.
function Findings:add(problem, component, example, full_name)
	local key = ("%s\0%s\0%s"):format(problem, component, example)
	local finding = self.by_key[key]
	if not finding then
		finding = { problem = problem, component = component, example = example, count = 0, seen = {} }
		self.by_key[key] = finding
		self.list[#self.list + 1] = finding
	end
	if full_name == nil or not finding.seen[full_name] then
		finding.count = finding.count + 1
		finding.seen[full_name or ""] = true
	end
end

-- The namespace and the name, which all states of an event have; nil if it has no name, as in a trace.
local function full_name_of(event)
	local metadata = stored_event.part(event, "metadata")
	local name = text(metadata, "name")
	return name ~= "" and text(metadata, "namespace") .. "/" .. name or nil
end

-- Counts the different values of a field of one component; "" stands for all components.
function Findings:note(component, field, value)
	if value == "" then
		return
	end
	local key = component .. "\0" .. field
	local values = self.fields[key]
	if not values then
		values = { component = component, field = field, seen = {}, count = 0 }
		self.fields[key] = values
	end
	if values.count <= MANY and not values.seen[value] then
		values.seen[value] = true
		values.count = values.count + 1
		values.last = value
	end
end

function Findings:end_fields()
	for _, values in pairs(self.fields) do
		if values.count > MANY then
			self:add(("more than %d different %s: data in them makes each event a new one"):format(MANY, values.field),
				values.component, values.last)
		end
	end
end

local function look_at(findings, event)
	local component = component_of(event)
	for _, rule in ipairs(rules) do
		local problem = rule(event)
		if problem then
			findings:add(problem, component, text(event, "reason"), full_name_of(event))
		end
	end
	findings:note(component, "reasons", text(event, "reason"))
	findings:note(component, "actions", text(event, "action"))
	findings:note("", "components", component)
end

local function print_findings(list)
	table.sort(list, function(a, b)
		for _, key in ipairs { "problem", "component", "example" } do
			if a[key] ~= b[key] then
				return a[key] < b[key]
			end
		end
		return false
	end)
	local rows = { { "COMPONENT", "EXAMPLE", "EVENTS", "PROBLEM" } }
	for i, finding in ipairs(list) do
		rows[i + 1] = { finding.component, terminal.cut(finding.example), finding.count, finding.problem }
	end
	terminal.write_rows(rows)
end

--- Runs it. Returns the command's status.
---@param arguments { file?: string, trace?: string, lines?: string }
---@return integer
function lint.run(arguments)
	local path = arguments.file or arguments.trace or arguments.lines
	if not path then
		terminal.fail(2, "expected a FILE")
	end
	local findings = new_findings()
	local source, any = trace.open(path, "evrec events --store PATH -A -o json | evrec lint -"), false
	source:each_event(function(event)
		any = true
		look_at(findings, event)
	end)
	findings:end_fields()
	if (source.cut or 0) > 0 then
		terminal.tell(("%s: %s left out, as the JSON is cut"):format(source.name, plural.are(source.cut, "value")))
	end
	if (source.malformed or 0) > 0 then
		terminal.tell(("%s: %s cannot be read"):format(source.name, plural.counted(source.malformed, "line")))
	end
	if not any then
		source:tell_empty()
	end
	if #findings.list == 0 then
		return 0
	end
	print_findings(findings.list)
	return 1
end

return lint
