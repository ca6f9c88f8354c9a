-- The rows of tables of events, and the text that comes from strangers. Real kubectl is compared in
-- spec/e2e/events_table_spec.lua.
local event_table = require "evrec.cli.event_table"
local stored_event = require "evrec.cli.stored_event"
local terminal = require "evrec.cli.terminal"

local NOW = 1795414925 -- 2026-11-23T06:22:05Z

local function plain()
	return {
		metadata = { name = "web-0.1", namespace = "shop" },
		involvedObject = { kind = "Pod", name = "web-0", fieldPath = "spec.containers{web}" },
		type = "Warning", reason = "BackOff", message = "Back-off",
		source = { component = "kubelet", host = "node-1" },
		firstTimestamp = "2026-11-23T06:21:05Z", lastTimestamp = "2026-11-23T06:22:00Z", count = 1,
	}
end

local function row(event) return event_table.row(event, NOW, terminal.escape) end
local function wide(event) return event_table.wide_row(event, NOW, terminal.escape) end

describe("a row of `kubectl events`", function()
	it("has the age of the first occurrence if there was one", function()
		assert.same({ "60s", "Warning", "BackOff", "Pod/web-0", "Back-off" }, row(plain()))
	end)

	it("has the last and the first occurrence, and how many there were", function()
		local event = plain()
		event.count = 3
		assert.equal("5s (x3 over 60s)", row(event)[1])
		event.eventTime = "2026-11-23T05:00:00.500000Z"
		assert.equal("5s (x3 over 82m)", row(event)[1])
		event.series = { count = 7, lastObservedTime = "2026-11-23T06:22:03.500000Z" }
		assert.equal("1s (x7 over 82m)", row(event)[1])
		event.series = { count = 1 }
		assert.equal("<unknown> (x1 over 82m)", row(event)[1])
	end)

	it("has no known age without times", function()
		assert.equal("<unknown>", row({})[1])
		assert.equal("<unknown> (x2 over <unknown>)", row({ count = 2 })[1])
		assert.equal("<unknown>", row({ firstTimestamp = "0001-01-01T00:00:00Z", count = 1 })[1])
	end)

	it("keeps the lines of a message, trimmed at both ends by Unicode", function()
		local event = plain()
		event.message = "\n\194\160\227\128\128 one\n two \226\128\168\194\133\t"
		assert.equal("one\n two", row(event)[5])
	end)
end)

describe("a row of `kubectl get events -o wide`", function()
	it("has ten cells", function()
		assert.same({ "5s", "Warning", "BackOff", "pod/web-0", "spec.containers{web}", "kubelet, node-1", "Back-off", "60s",
			"1", "web-0.1" }, wide(plain()))
	end)

	it("takes what events.k8s.io/v1 has if the fields of core/v1 are unset", function()
		local event = { eventTime = "2026-11-23T06:21:00.000000Z", reportingComponent = "c", reportingInstance = "i",
			involvedObject = { kind = "Node" } }
		assert.same({ "65s", "", "", "node", "", "c, i", "", "65s", "1", "" }, wide(event))
		event.series = { count = 4, lastObservedTime = "2026-11-23T06:22:00.000000Z" }
		assert.equal("5s", wide(event)[1])
		assert.equal("4", wide(event)[9])
	end)

	it("shows the first line of a cell", function()
		for _, ending in ipairs { "\n", "\r", "\f" } do
			local event = plain()
			event.message, event.reason = "one" .. ending .. "two", "R" .. ending
			assert.equal("one...", wide(event)[7])
			assert.equal("R...", wide(event)[3])
		end
	end)
end)

-- Sets a text in every field of an event.
local function filled(text)
	return {
		metadata = { name = text, namespace = text },
		involvedObject = { kind = text, name = text, fieldPath = text },
		type = text, reason = text, message = "a" .. text .. "b",
		source = { component = text, host = text },
		reportingComponent = text, reportingInstance = text,
		firstTimestamp = text, lastTimestamp = text, eventTime = text,
	}
end

describe("every cell", function()
	it("is without ESC and carriage return", function()
		for _, cells in ipairs { row(filled "\27[31m\r"), wide(filled "\27[31m\r"), wide(filled "\27]0;x\7") } do
			for i, cell in ipairs(cells) do
				assert.is_nil(cell:find "[\27\r]", i)
			end
		end
		assert.equal("^[[31m...", event_table.namespace(filled "\27[31m\r", terminal.escape))
	end)

	it("is text whatever the types of the fields are", function()
		for _, odd in ipairs { 12, true, { {} }, {} } do
			for _, cells in ipairs { row(filled "x"), wide(filled "x") } do
				assert.is_true(#cells >= 5)
			end
			local event = { metadata = odd, involvedObject = odd, source = odd, type = odd, reason = odd, message = odd,
				count = "many", eventTime = odd, firstTimestamp = odd, lastTimestamp = odd }
			assert.same({ "<unknown>", "", "", "/", "" }, row(event))
			assert.equal("<unknown>", wide(event)[1])
		end
	end)
end)

describe("a decoded event", function()
	it("of events.k8s.io/v1 has the fields of core/v1, and those that no API defines", function()
		local event = stored_event.decode [[{ "apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "n", "other": [1],
			"regarding": { "kind": "Pod", "name": "p" }, "reportingController": "c", "deprecatedCount": 3,
			"deprecatedSource": { "component": "s" }, "deprecatedFirstTimestamp": "f", "deprecatedLastTimestamp": "l" }]]
		assert.same({ apiVersion = "v1", kind = "Event", message = "n", other = { 1 },
			involvedObject = { kind = "Pod", name = "p" }, reportingComponent = "c", count = 3, source = { component = "s" },
			firstTimestamp = "f", lastTimestamp = "l" }, event)
	end)
end)
