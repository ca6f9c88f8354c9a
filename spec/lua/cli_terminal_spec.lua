-- Text of strangers, on a terminal and in files.
local terminal = require "evrec.cli.terminal"

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
		for _, harmless in ipairs { "\226\128\147", "\226\130\172", "\216\167", "\226\129\165" } do
			assert.equal(harmless, terminal.neutral(harmless))
		end
	end)
end)
