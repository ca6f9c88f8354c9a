-- Columns as kubectl's tabwriter aligns them. spec/e2e/events_table_spec.lua compares with kubectl itself.
local columns = require "evrec.cli.columns"

describe("columns", function()
	local written, writer

	local function lines(...)
		assert.equal(table.concat({ ... }, "\n") .. "\n", table.concat(written))
	end

	before_each(function()
		written = {}
		writer = columns.new(function(text) written[#written + 1] = text end)
	end)

	it("are at least 6 wide, and have 3 spaces between them", function()
		writer:add { "A", "LONGER", "LAST" }
		writer:add { "aaa", "b", "the last column has no width" }
		writer:add { "aaaa", "", "" }
		writer:flush()
		lines("A      LONGER   LAST", "aaa    b        the last column has no width", "aaaa            ")
	end)

	it("count code points, not bytes nor cells of the terminal", function()
		writer:add { "\230\151\165\230\156\172\232\170\158\240\159\154\128", "x" }
		writer:add { "abcde", "x" }
		writer:flush()
		lines("\230\151\165\230\156\172\232\170\158\240\159\154\128    x", "abcde   x")
	end)

	it("keep their width from flush to flush", function()
		writer:add { "a wide cell", "x" }
		writer:flush()
		writer:add { "b", "x" }
		writer:flush()
		lines("a wide cell   x", "b             x")
	end)

	it("end before a line that has no cell in them", function()
		writer:add { "a", "b", "c" }
		writer:add { "a", "no second column" }
		writer:add { "a", "bbbbbbbbb", "c" }
		writer:flush()
		-- The widths of an earlier block are kept, so only a later block can be wider.
		lines("a     b     c", "a     no second column", "a     bbbbbbbbb   c")
	end)

	it("are flushed by a line of one cell, and by a form feed", function()
		writer:add { "a", "one\ntwo" }
		writer:add { "a much wider cell", "x" }
		writer:flush()
		lines("a     one", "two", "a much wider cell   x")
		written = {}
		writer = columns.new(function(text) written[#written + 1] = text end)
		writer:add { "a", "b\fc", "d" }
		writer:add { "a much wider cell", "x" }
		writer:flush()
		lines("a     b", "c                   d", "a much wider cell   x")
	end)

	it("begin at tabs and vertical tabs inside of cells, too", function()
		writer:add { "a", "b\tc\vd" }
		writer:add { "a", "b", "c", "d" }
		writer:flush()
		lines("a     b     c     d", "a     b     c     d")
	end)

	it("keep their width if cells are painted", function()
		writer = columns.new(function(text) written[#written + 1] = text end, function(text, column)
			return column == 1 and "<" .. text .. ">" or text
		end)
		writer:add { "a", "b" }
		writer:flush()
		lines("<a>     b")
	end)

	it("write nothing for no rows", function()
		writer:flush()
		assert.same({}, written)
	end)
end)
