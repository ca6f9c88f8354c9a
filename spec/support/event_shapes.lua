-- Events of fifty shapes, as table and terminal see them: other fields, other times, other characters.
local cjson = require "cjson"

local event_shapes = {}

--- The reason of the events without a time that `kubectl events` sorts by. kubectl prints them in any order.
event_shapes.UNSORTED = "Unsorted"

-- ---- times ----

local function seconds(time)
	return os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(time))
end

local function micros(time)
	return os.date("!%Y-%m-%dT%H:%M:%S", math.floor(time)) .. (".%06dZ"):format(math.floor(time % 1 * 1e6))
end

local function new_api(event, time)
	event.eventTime = micros(time + 0.123456)
	event.action, event.reportingComponent, event.reportingInstance = "Acting", "example.com/controller", "controller-0"
end

-- Each sets the times and counts of an event whose last occurrence is at a time.
local OCCURRENCES = {
	function(event, time) -- once
		event.firstTimestamp, event.lastTimestamp, event.count = seconds(time), seconds(time), 1
	end,
	function(event, time) -- often
		event.firstTimestamp, event.lastTimestamp, event.count = seconds(time - 4000), seconds(time), 1234567
	end,
	function(event, time) -- often, of which one time is known
		event.lastTimestamp, event.count = seconds(time), 3
	end,
	function(event, time) -- no count
		event.firstTimestamp, event.lastTimestamp = seconds(time - 7), seconds(time)
	end,
	function(event, time) -- eventTime alone
		new_api(event, time)
	end,
	function(event, time) -- a series
		new_api(event, time - 7261.5)
		event.series = { count = 42, lastObservedTime = micros(time + 0.5) }
	end,
	function(event, time) -- a series with times of the old API
		new_api(event, time - 100)
		event.series = { count = 2, lastObservedTime = micros(time) }
		event.firstTimestamp, event.lastTimestamp, event.count = seconds(time - 9e5), seconds(time - 5), 9
	end,
	function(event, time) -- both APIs
		new_api(event, time)
		event.firstTimestamp, event.lastTimestamp, event.count = seconds(time - 3e7), seconds(time), 5
	end,
	function(event, time) -- a negative count
		event.firstTimestamp, event.lastTimestamp, event.count = seconds(time - 60), seconds(time), -1
	end,
	function(event, time) -- firstTimestamp alone
		event.firstTimestamp = seconds(time)
	end,
}

-- ---- texts ----

local TEXTS = {
	"Back-off restarting failed container",
	("a long message, "):rep(60),
	"two\nlines",
	"\n  trimmed at both ends\t\194\160\227\128\128",
	"tabs\tbetween\tcells",
	"many\n\n\nlines\nwith\ttabs\nand an end\n.",
	"return\rof the carriage",
	"ESC \27[31mred\27[0m and \27]0;title\7 bells",
	"wide \230\151\165\230\156\172\232\170\158 \240\159\154\128 signs",
	"form\ffeed, vertical\vtab",
	"combining e\204\129, zero width \226\128\139 joiner \226\128\141",
	"\194\155C1\194\133 and bidi \226\128\174drow\226\128\172",
	"quotes \" ' ` and <b>&amp;</b> \\ %s %d {} []",
	"",
	"\226\128\168line separator",
	"x",
	"null\0byte",
}

local LEVELS = { "Normal", "Warning" }
local REASONS = {
	"BackOff", "Pulled", "FailedScheduling", "X", "Reason with spaces", "R\27[5m", "R\tT", "\230\151\165",
}
local KINDS = { "Pod", "Node", "Deployment", "CronJob", "PersistentVolumeClaim", "Kind\27c", "" }
local NAMES = { "web-0", "a", "a-very-long-name-of-an-object-that-widens-its-column", "odd\tname", "odd\nname", "" }
local SOURCES = {
	{}, { component = "kubelet", host = "node-1" }, { component = "scheduler" }, { host = "node-2" },
	{ component = "c\27[m" },
}

local function nth(list, i)
	return list[(i - 1) % #list + 1]
end

--- Makes an event. Events whose numbers differ by 50 have the same shape, but other names and times.
---@param i integer from 1
---@param namespace string
---@param time number of the last occurrence, seconds since 1970
---@return table as core/v1 has it
function event_shapes.event(i, namespace, time)
	local shape = (i - 1) % 50 + 1
	local event = {
		apiVersion = "v1", kind = "Event",
		metadata = { name = ("event-%04x.%d"):format(i * 40503 % 65536, i), namespace = namespace },
		type = nth(LEVELS, math.floor(shape / 3) + 1),
		reason = nth(REASONS, shape),
		message = nth(TEXTS, shape),
		source = nth(SOURCES, shape),
		involvedObject = {
			kind = nth(KINDS, shape), name = nth(NAMES, math.floor(shape / 2) + 1), namespace = namespace, apiVersion = "v1",
			fieldPath = shape % 4 == 0 and "spec.containers{web}" or nil,
		},
	}
	if shape % 7 == 0 then
		event.related = { kind = "Node", name = "node-1", apiVersion = "v1" }
	end
	if shape % 11 == 0 then
		event.metadata.labels, event.metadata.annotations = { team = "blue" }, { ["example.com/note"] = "a\nb\27" }
	end
	if shape % 10 == 0 then
		event.reason, event.message = event_shapes.UNSORTED, "of no known place in the order"
		event.involvedObject.kind, event.involvedObject.name = "Pod", "web-0"
	end
	if shape ~= 50 then
		nth(OCCURRENCES, shape)(event, time)
	end
	return event
end

--- An event that every table shows in one plain line.
function event_shapes.plain(name, namespace, time)
	return {
		apiVersion = "v1", kind = "Event", metadata = { name = name, namespace = namespace },
		type = "Normal", reason = "Started", message = "Started container web", source = { component = "kubelet" },
		involvedObject = { kind = "Pod", name = "web-0", namespace = namespace, apiVersion = "v1" },
		firstTimestamp = seconds(time), lastTimestamp = seconds(time), count = 1,
	}
end

--- Writes an event as JSON.
function event_shapes.json(event)
	return cjson.encode(event)
end

return event_shapes
