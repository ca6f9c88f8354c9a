-- Ages, by the values that apimachinery's duration.HumanDuration gives.
local age = require "evrec.cli.age"
local stored_event = require "evrec.cli.stored_event"

local MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400

describe("an age", function()
	it("has the units of HumanDuration, up to each of its limits and beyond", function()
		for _, case in ipairs {
			{ -1e9, "<invalid>" }, { -2, "<invalid>" }, { -1.999, "0s" }, { -1, "0s" }, { -0.001, "0s" }, { 0, "0s" },
			{ 0.999, "0s" }, { 1, "1s" }, { 59.9, "59s" }, { 60, "60s" }, { 119.999, "119s" },
			{ 2 * MINUTE, "2m" }, { 2 * MINUTE + 0.9, "2m" }, { 2 * MINUTE + 1, "2m1s" }, { 9 * MINUTE, "9m" },
			{ 10 * MINUTE - 1, "9m59s" }, { 10 * MINUTE, "10m" }, { 10 * MINUTE + 59, "10m" }, { HOUR, "60m" },
			{ 3 * HOUR - 1, "179m" }, { 3 * HOUR, "3h" }, { 3 * HOUR + 59, "3h" }, { 3 * HOUR + MINUTE, "3h1m" },
			{ 8 * HOUR - 1, "7h59m" }, { 8 * HOUR, "8h" }, { 9 * HOUR - 1, "8h" }, { 2 * DAY - 1, "47h" },
			{ 2 * DAY, "2d" }, { 2 * DAY + HOUR - 1, "2d" }, { 2 * DAY + HOUR, "2d1h" }, { 8 * DAY - 1, "7d23h" },
			{ 8 * DAY, "8d" }, { 2 * YEAR - 1, "729d" }, { 2 * YEAR, "2y" }, { 2 * YEAR + DAY - 1, "2y" },
			{ 2 * YEAR + DAY, "2y1d" }, { 8 * YEAR - 1, "7y364d" }, { 8 * YEAR, "8y" }, { 100 * YEAR, "100y" },
			{ 1e12, "292y" },
		} do
			assert.equal(case[2], age.of_seconds(case[1]), ("%.3f s"):format(case[1]))
		end
	end)

	it("is unknown without a time", function()
		assert.equal("<unknown>", age.since(nil, 100))
		assert.equal("40s", age.since(60.5, 100.6))
	end)
end)

describe("a timestamp", function()
	it("is read with its fraction and its zone", function()
		for _, case in ipairs {
			{ "1970-01-01T00:00:00Z", 0 }, { "2000-02-29T00:00:00Z", 951782400 }, { "2026-11-23T06:22:05Z", 1795414925 },
			{ "2026-11-23T06:22:05.250000Z", 1795414925.25 }, { "2026-11-23T00:52:05-05:30", 1795414925 },
		} do
			assert.equal(case[2], stored_event.time({ at = case[1] }, "at"), case[1])
		end
	end)

	it("is none if it is unset, Go's zero time, or malformed", function()
		for _, text in ipairs { "0001-01-01T00:00:00Z", "", "yesterday", "2026-11-23", 12 } do
			assert.is_nil(stored_event.time({ at = text }, "at"), text)
		end
		assert.is_nil(stored_event.time({}, "at"))
	end)
end)
