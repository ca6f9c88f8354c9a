-- Text of strangers, on a terminal and in files.
local command = require "command"
local shapes = require "event_shapes"
local terminal = require "evrec.cli.terminal"
local tmpfiles = require "tmpfiles"

describe("text of strangers", function()
	it("has no ESC and no carriage return, wherever it is printed", function()
		for _, escape in ipairs { terminal.escape, terminal.neutral } do
			assert.equal("^[[31mred^[]0;t\\rback", escape "\27[31mred\27]0;t\rback")
			local harmless = "a\tb\nc \230\151\165 \240\159\154\128 \195\188"
			assert.equal(harmless, escape(harmless))
		end
	end)

	it("stays in its row and column in a cell", function()
		assert.equal("fine\\n0s\\tWarning^[", terminal.cell "fine\n0s\tWarning\27")
	end)

	it("has nothing on a terminal that the terminal obeys", function()
		assert.equal("^@^G^H^K^L^_^?", terminal.neutral "\0\7\8\11\12\31\127")
		assert.equal("<U+0080><U+009B>31m<U+009F>\194\160", terminal.neutral "\194\128\194\15531m\194\159\194\160")
		for _, case in ipairs {
			{ "\216\156", "061C" }, { "\226\128\142", "200E" }, { "\226\128\143", "200F" }, { "\226\128\168", "2028" },
			{ "\226\128\169", "2029" }, { "\226\128\170", "202A" }, { "\226\128\174", "202E" }, { "\226\129\166", "2066" },
			{ "\226\129\169", "2069" }, { "\239\187\191", "FEFF" },
		} do
			assert.equal("x<U+" .. case[2] .. ">y", terminal.neutral("x" .. case[1] .. "y"))
		end
		-- A terminal that is not in UTF-8, or recovers from an error in it, takes a byte for a C1 control.
		for _, case in ipairs {
			{ "\155[31m", "<0x9B>[31m" }, { "\133\144\157", "<0x85><0x90><0x9D>" }, { "a\192\155b", "a<0xC0><0x9B>b" },
			{ "\195\188\155", "\195\188<0x9B>" }, { "\195", "<0xC3>" }, { "\195a", "<0xC3>a" },
			{ "\226\155", "<0xE2><0x9B>" },
			{ "\224\128\155", "<0xE0><0x80><0x9B>" }, { "\237\160\155", "<0xED><0xA0><0x9B>" },
			{ "\240\159\154", "<0xF0><0x9F><0x9A>" }, { "\240\130\130\155", "<0xF0><0x82><0x82><0x9B>" },
			{ "\244\144\128\155", "<0xF4><0x90><0x80><0x9B>" }, { "\255\254", "<0xFF><0xFE>" },
			{ "\240\159\154\128\155", "\240\159\154\128<0x9B>" },
		} do
			assert.equal(case[2], terminal.neutral(case[1]))
		end
		for _, harmless in ipairs { "\240\159\154\128", "\237\159\191", "\238\128\128", "\224\160\128",
			"\244\143\191\191", "\226\128\147", "\226\130\172", "\216\167", "\226\129\165" } do
			assert.equal(harmless, terminal.neutral(harmless))
		end
	end)

	it("has no byte that is no UTF-8 in the output of any subcommand, or in an error", function()
		local _, write, remove = tmpfiles.new()
		local event = shapes.plain("a", "default", os.time() - 20000)
		event.reason, event.message, event.source.component = "R\155[31m", "m\155", "c\155"
		event.involvedObject.name, event.count = "web-0\155", 200 -- of which most are rate limited
		local path = write("json", shapes.json(event) .. "\n")
		local function check(...)
			local status, output, told = command.evrec(...)
			assert.is_nil((output .. told):find("[\128-\255]"), output .. told)
			return status, output .. told
		end
		for _, words in ipairs { { "replay" }, { "lint" }, { "explain", "pod/web-0\155", "--trace" } } do
			words[#words + 1] = path
			local _, text = check((table.unpack or unpack)(words)) -- luacheck: ignore 143
			assert.truthy(text:find("R<0x9B>[31m", 1, true), text)
		end
		assert.truthy(select(2, check("replay", "-o", "json", path)):find([[R\ufffd[31m]], 1, true))
		for _, words in ipairs { { "events", "--for", "pod\155" }, { "events\155" }, { "replay", path .. "\155" },
			{ "explain", "pod/a\155", "--trace", path }, { "explain", "a\155" },
			{ "record", "--lines", "-", "a\155", "x", "y", "z" },
			{ "lint", "/nowhere/\155" }, { "events", "--lines", "/nowhere/\155" }, { "--x\155" },
			{ "record", "--lines", "/nowhere/\155", "--timeout", "0.1", "pod/a", "Normal", "R", "m" } } do
			local status, text = check((table.unpack or unpack)(words)) -- luacheck: ignore 143
			assert.truthy(status > 0)
			assert.truthy(text:find("<0x9B>", 1, true), text)
		end
		remove()
	end)
end)
