-- Random events, from one API to the other and back, as tables and as JSON. EVREC_SEED repeats a run.
local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"

local both = { "v1", "events.k8s.io/v1" }

-- The names in events.k8s.io/v1, as an API server converts: of one stored event it shows both forms.
local new_names = {
	involvedObject = "regarding", message = "note", source = "deprecatedSource",
	firstTimestamp = "deprecatedFirstTimestamp", lastTimestamp = "deprecatedLastTimestamp", count = "deprecatedCount",
	reportingComponent = "reportingController",
}

local function converted(event, api)
	local form = {}
	for name, value in pairs(event) do
		form[api == "v1" and name or new_names[name] or name] = value
	end
	form.apiVersion = api
	return form
end

-- ---- random events, in the form of core/v1 ----

local pieces = { "a", "web-0", "\0", "\n", '"', "\\", "/", "\127", "\195\164", "\226\130\172", "\240\159\144\157", "%d",
	"null", "2023-11-14T22:13:20Z" }

local function text(random)
	local parts = {}
	for i = 1, random(4) do
		parts[i] = pieces[random(#pieces)]
	end
	return table.concat(parts)
end

-- Returns what `make` returns, or in one of three cases nil.
local function maybe(random, make, ...)
	if random(3) > 1 then
		return make(random, ...)
	end
end

-- Returns seconds from 1715 to 2223.
local function seconds(random)
	return (random(2000) - 1000) * 8000000 + random(8000000)
end

local function time(random)
	return os.date("!%Y-%m-%dT%H:%M:%SZ", seconds(random))
end

local function micro_time(random)
	return (time(random):gsub("Z", (".%06dZ"):format(random(1000000) - 1)))
end

local function count(random)
	return random(4) == 1 and 2147483647 or random(1000)
end

local function map(random)
	local strings = { [text(random)] = text(random) }
	for _ = 1, random(3) do
		strings[text(random)] = text(random)
	end
	return strings
end

local function boolean(random)
	return random(2) == 1
end

local function reference(random)
	return { kind = text(random), apiVersion = maybe(random, text), namespace = maybe(random, text),
		name = maybe(random, text), uid = maybe(random, text), resourceVersion = maybe(random, text),
		fieldPath = maybe(random, text) }
end

local function owners(random)
	local list = {}
	for i = 1, random(3) do
		list[i] = { kind = text(random), apiVersion = maybe(random, text), name = maybe(random, text),
			uid = maybe(random, text), controller = maybe(random, boolean), blockOwnerDeletion = maybe(random, boolean) }
	end
	return list
end

local function source(random)
	local component = maybe(random, text)
	return { component = component, host = component and maybe(random, text) or text(random) }
end

local states = { "Ongoing", "Finished", "Unknown" }

local function series(random)
	local state = states[random(4)]
	return { count = count(random), lastObservedTime = maybe(random, micro_time), state = state }
end

local function event_of(random)
	return {
		kind = "Event", apiVersion = "v1",
		metadata = { name = maybe(random, text), namespace = maybe(random, text), resourceVersion = maybe(random, text),
			labels = maybe(random, map), annotations = maybe(random, map), ownerReferences = maybe(random, owners) },
		involvedObject = maybe(random, reference), related = maybe(random, reference), reason = maybe(random, text),
		message = maybe(random, text), type = maybe(random, text), action = maybe(random, text),
		source = maybe(random, source), firstTimestamp = maybe(random, time), lastTimestamp = maybe(random, time),
		eventTime = maybe(random, micro_time), count = maybe(random, count), series = maybe(random, series),
		reportingComponent = maybe(random, text), reportingInstance = maybe(random, text),
	}
end

-- ---- what an API server adds ----

local fields = { "metadata", "involvedObject", "related", "reason", "message", "type", "action", "source",
	"firstTimestamp", "lastTimestamp", "eventTime", "count", "series", "reportingComponent", "reportingInstance" }
-- Structs that Go prints even if they are empty.
local printed = { involvedObject = true, source = true }

-- Fills unset fields of a copy as Go prints them, or with null, and adds fields that evrec does not know.
local function dressed(random, form, api)
	local full = {}
	for name, value in pairs(form) do
		full[name] = value
	end
	for _, field in ipairs(fields) do
		local name = api == "v1" and field or new_names[field] or field
		if full[name] == nil and random(2) == 1 then
			full[name] = printed[field] and {} or cjson.null
		end
	end
	full.metadata = {}
	for name, value in pairs(form.metadata) do
		full.metadata[name] = value
	end
	full.metadata.uid, full.metadata.creationTimestamp, full.metadata.managedFields = "u", time(random), { {} }
	return full
end

describe("an event", function()
	local random

	before_each(function() random = random or fixtures.random() end)

	it("has the same fields in both APIs, as a table and as JSON", function()
		for _ = 1, 300 do
			local core = event_of(random)
			local event = evrec.event(core)
			for _, api in ipairs(both) do
				local form = converted(core, api)
				assert.same(form, event:to_table(api))
				local json = cjson.decode(event:to_json(api))
				-- Go prints an unset eventTime as null.
				form.eventTime = form.eventTime or cjson.null
				assert.same(form, json)
			end
		end
	end)

	it("loses nothing on its way to either API and back, through tables and JSON", function()
		for _ = 1, 300 do
			local core = event_of(random)
			for _, from in ipairs(both) do
				local event = evrec.event(converted(core, from))
				for _, to in ipairs(both) do
					assert.same(core, evrec.event(event:to_table(to)):to_table())
					assert.same(core, evrec.event(cjson.decode(event:to_json(to))):to_table())
				end
			end
		end
	end)

	it("is read as an API server prints it, with null, empty structs and unknown fields", function()
		for _ = 1, 300 do
			local core = event_of(random)
			for _, api in ipairs(both) do
				local full = dressed(random, converted(core, api), api)
				assert.same(core, evrec.event(full):to_table())
				assert.same(core, evrec.event(cjson.decode(cjson.encode(full))):to_table())
			end
		end
	end)

	it("has the names of core/v1 whichever API it was read from", function()
		local event = evrec.event { apiVersion = "events.k8s.io/v1", regarding = { kind = "Pod" }, note = "n",
			deprecatedCount = 3, deprecatedSource = { component = "c" }, reportingController = "k",
			deprecatedFirstTimestamp = "2023-11-14T22:13:20Z", eventTime = "2023-11-14T22:13:20.000001Z",
			series = { count = 2, lastObservedTime = "2023-11-14T22:13:21.000002Z", state = "Ongoing" } }
		assert.equal("v1", event.apiVersion)
		assert.equal("Pod", event.involvedObject.kind)
		assert.equal("n", event.message)
		assert.equal(3, event.count)
		assert.same({ component = "c" }, event.source)
		assert.equal("k", event.reportingComponent)
		assert.equal("2023-11-14T22:13:20Z", event.firstTimestamp)
		assert.equal("2023-11-14T22:13:20.000001Z", event.eventTime)
		assert.same({ count = 2, lastObservedTime = "2023-11-14T22:13:21.000002Z", state = "Ongoing" }, event.series)
	end)
end)
