-- Reconstructs occurrences, in the order of time, from correlated events, which have only a count and the times of the
-- first and the last occurrence.
local stored_event = require "evrec.cli.stored_event"

local occurrences = {}
occurrences.__index = occurrences

local COMBINED = "(combined from similar events): "
local MOST = 100000 -- occurrences that are replayed of one count

--- The most occurrences that are replayed of one count.
occurrences.MOST = MOST

function occurrences.new()
	return setmetatable({
		spans = {}, -- { event =, at =, step =, last =, left = }: `left` occurrences from `at` to `last`
		known = {}, -- by namespace and name: the event's count and last time until now
		reconstructed = 0, -- occurrences whose time is not known
		left_out = 0, -- occurrences beyond the bound of their count
	}, occurrences)
end

local function without_prefix(message)
	if type(message) == "string" and message:sub(1, #COMBINED) == COMBINED then
		return message:sub(#COMBINED + 1)
	end
	return message
end

--- Returns the fields of an event by which correlators tell events apart.
---@param object table of core/v1, as decoded from JSON
---@return table
function occurrences.fields(object)
	local metadata = object.metadata
	return {
		metadata = { name = metadata.name, namespace = metadata.namespace },
		involvedObject = object.involvedObject,
		related = object.related,
		type = object.type,
		reason = object.reason,
		action = object.action,
		message = without_prefix(object.message),
		source = object.source,
		reportingComponent = object.reportingComponent,
		reportingInstance = object.reportingInstance,
	}
end

--- Returns the count of an event, and the times of its first and last occurrence as far as it has them.
---@param object table of core/v1, as decoded from JSON
---@return integer count, number? first, number? last seconds since 1970
function occurrences.times(object)
	local series, time_of = stored_event.series(object) or {}, stored_event.time
	local count = stored_event.whole(series.count) or stored_event.whole(object.count) or 1
	local time = time_of(object, "eventTime")
	local first = time or time_of(object, "firstTimestamp")
	local last = time_of(series, "lastObservedTime") or time_of(object, "lastTimestamp") or time
	return count, first or last, last or first
end

-- Spreads occurrences evenly from `first` to `last`; `known` is how many of their times are known.
local function add_span(self, event, first, last, count, known)
	local left = math.min(count, MOST)
	self.spans[#self.spans + 1] = {
		event = event, at = first, step = left > 1 and (last - first) / (left - 1) or 0, last = last, left = left,
		order = #self.spans,
	}
	self.left_out = self.left_out + count - left
	self.reconstructed = self.reconstructed + math.max(left - known, 0)
end

--- Takes the present state of an event on a server.
---@param fields table of `occurrences.fields`
---@param count integer
---@param first number when the first of them happened
---@param last number likewise
function occurrences:observe(fields, count, first, last)
	local key = ("%s/%s"):format(fields.metadata.namespace, fields.metadata.name)
	local before = self.known[key]
	if before and count > before.count then
		local more, until_last = count - before.count, math.max(last - before.last, 0)
		add_span(self, fields, before.last + until_last / more, before.last + until_last, more, 1)
	elseif not before or (count < before.count and first > before.last) then
		add_span(self, fields, first, math.max(last, first), count, 2)
	else
		return
	end
	self.known[key] = { count = count, last = last, fields = fields }
end

--- Returns the count, the last time and the fields of an event that was observed; nil if it was not.
---@param namespace string
---@param name string
---@return { count: integer, last: number, fields: table }?
function occurrences:event(namespace, name)
	return self.known[("%s/%s"):format(namespace, name)]
end

-- ---- a heap of spans, the one that is next on top ----

local function before(a, b)
	return a.at < b.at or (a.at == b.at and a.order < b.order)
end

local function sink_down(heap, i)
	while true do
		local least = i
		for child = 2 * i, 2 * i + 1 do
			if heap[child] and before(heap[child], heap[least]) then
				least = child
			end
		end
		if least == i then
			return
		end
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	end
end

--- Returns an iterator of all occurrences in the order of time. The iterator removes each occurrence from the object.
---@return fun(): table? fields, number? time
function occurrences:each()
	local heap = self.spans
	for i = math.floor(#heap / 2), 1, -1 do
		sink_down(heap, i)
	end
	return function()
		local span = heap[1]
		if not span then
			return nil
		end
		local event, time = span.event, math.min(span.at, span.last) -- which rounding may exceed
		span.at, span.left = span.at + span.step, span.left - 1
		if span.left == 1 then
			span.at = span.last
		elseif span.left == 0 then
			heap[1] = heap[#heap]
			heap[#heap] = nil
		end
		if heap[1] then
			sink_down(heap, 1)
		end
		return event, time
	end
end

return occurrences
