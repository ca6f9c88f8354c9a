-- Counts and times that no API server writes, and large ones: evrec replay, explain and events read them all, and end.
local cjson = require "cjson"
local command = require "command"
local occurrences = require "evrec.cli.occurrences"
local tmpfiles = require "tmpfiles"

local START = "2023-11-14T22:13:20Z" -- 1700000000
local MOST = 100000 -- occurrences of one count that are replayed

describe("counts and times of strangers", function()
	local write, remove

	before_each(function()
		local _
		_, write, remove = tmpfiles.new()
	end)
	after_each(function() remove() end)

	-- An event, with a count as JSON has it.
	local function event(count, first, last)
		local text = cjson.encode {
			kind = "Event", apiVersion = "v1", metadata = { name = "e", namespace = "n" },
			involvedObject = { kind = "Pod", name = "a", namespace = "n" }, type = "Normal", reason = "R", message = "m",
			count = "COUNT", firstTimestamp = first or START, lastTimestamp = last or START,
		}
		return (text:gsub('"COUNT"', count))
	end

	local function replayed(text)
		local status, output, told = command.evrec("replay", "-o", "json", write("json", text))
		assert.equal(0, status, told)
		return cjson.decode(output).trace
	end

	for count, expected in pairs { ["1.5"] = 1, ["-3"] = 1, ["0"] = 1, ["NaN"] = 1, ["3.99"] = 3, ["1e3"] = 1000 } do
		it("are whole numbers from 1 on: " .. count, function()
			local trace = replayed(event(count))
			assert.same({ expected, 0 }, { trace.occurrences, trace.left_out })
		end)
	end

	for count, read in pairs { ["2147483647"] = 2147483647, ["1e300"] = 2147483647, ["1e309"] = 2147483647,
		["100001"] = 100001 } do
		it("are replayed up to a bound, and the rest is told: " .. count, function()
			local trace = replayed(event(count))
			assert.same({ MOST, read - MOST }, { trace.occurrences, trace.left_out })
		end)
	end

	it("are bounded by every command, which says how many it leaves out", function()
		local path = write("json", event("100001"))
		for _, words in ipairs { { "replay", path }, { "explain", "pod/a", "--trace", path } } do
			local _, output = command.evrec((table.unpack or unpack)(words)) -- luacheck: ignore 143
			output = output:gsub("%s+", " ")
			assert.truthy(output:find("counts are lower bounds", 1, true), output)
			assert.truthy(output:find("1 occurrence is left out, as at most 100000 of one count are replayed", 1, true),
				output)
		end
		local _, page = command.evrec("replay", "-o", "html", path)
		assert.truthy(page:find("1 occurrence is left out", 1, true))
		local status, shown, told = command.evrec("events", "-A", "-o", "html", "--lines", write("json", event("1e300")))
		assert.equal(0, status, told)
		assert.truthy(shown:find("2147483647", 1, true))
		-- No double holds it, so that the line is no event.
		path = write("json", event("1e309"))
		local refusal = "evrec: %s: line 1 is no event; --lines reads an event a line, as evrec.sink.file writes them\n"
		assert.same({ 1, "", refusal:format(path) }, { command.evrec("events", "-A", "-o", "html", "--lines", path) })
	end)

	it("are spread over the whole time of a bounded count, also of one that jumps", function()
		local trace = replayed(event("2147483647", START, "2023-11-14T23:13:20Z"))
		assert.same({ 1700000000, 1700003600 }, { trace.first, trace.last })
		local function line(count, last)
			return ('{"type":"MODIFIED","object":%s}\n'):format(event(count, START, last))
		end
		trace = replayed(line("1", START) .. line("1000001", "2023-11-14T23:13:20Z"))
		assert.same({ MOST + 1, 1000000 - MOST, 1700003600 }, { trace.occurrences, trace.left_out, trace.last })
	end)

	it("have times between the first and the last one", function()
		local found, first, last = occurrences.new(), 1700000000.1, 1700000000.7
		found:observe({ metadata = {} }, 3000, first, last)
		local before, count = first, 0
		for _, time in found:each() do
			assert.is_true(time >= before and time <= last)
			before, count = time, count + 1
		end
		assert.same({ 3000, last }, { count, before })
	end)

	it("are told without a place in a Lua file if a time is out of range", function()
		local latest, earliest = "2262-04-11T23:47:16.854775807Z", "1677-09-21T00:12:43.145224193Z"
		for _, times in ipairs { { latest, latest }, { earliest, latest }, { latest, START }, { earliest, START },
			{ "9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z" }, { "2023-99-99T00:00:00Z", "soon" } } do
			local path = write("json", event("3", times[1], times[2]))
			for _, words in ipairs { { "replay", path }, { "explain", "pod/a", "--trace", path }, { "lint", path },
				{ "events", "-A", "--lines", path }, { "events", "-A", "--lines", path, "-o", "html" },
				{ "events", "-A", "--lines", path, "--since", latest } } do
				local _, output, told = command.evrec((table.unpack or unpack)(words)) -- luacheck: ignore 143
				assert.is_nil((output .. told):find("%.lua:%d"), told)
				assert.is_nil(told:find "bad argument", told)
			end
		end
	end)
end)
