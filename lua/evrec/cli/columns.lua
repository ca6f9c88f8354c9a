-- Aligns text in columns like kubectl's tables, by the rules of Go's text/tabwriter, with a minimal width of
-- 6, 3 spaces between columns, and widths that are kept from one flush to the next. A cell ends at a tab or vertical
-- tab, a line at a line feed or form feed. A width is a number of code points, also for wide characters.
local columns = {}
columns.__index = columns

local MIN_WIDTH, PADDING = 6, 3

--- Makes a writer.
---@param write fun(text: string) gets whole lines
---@param paint? fun(text: string, column: integer): string adds colours to a cell, after its width was taken
function columns.new(write, paint)
	return setmetatable({
		write = write,
		paint = paint,
		lines = {}, -- of cells; the last cell of a line belongs to no column, because no tab ends it
		widest = {}, -- of each column, in the lines that were flushed before
	}, columns)
end

local function width_of(text)
	if not text:find "[\128-\255]" then
		return #text
	end
	local _, continuations = text:gsub("[\128-\191]", "")
	return #text - continuations
end

-- Writes the lines from `first` to `last`, of which the first #widths columns have a width.
local function write_lines(self, first, last, widths)
	for i = first, last do
		local line, parts = self.lines[i], {}
		for column, text in ipairs(line) do
			local padding = widths[column] and widths[column] - width_of(text) or 0
			parts[#parts + 1] = self.paint and self.paint(text, column) or text
			parts[#parts + 1] = (" "):rep(padding)
		end
		parts[#parts + 1] = "\n"
		self.write(table.concat(parts))
	end
end

-- The width of the column in the block of lines that begins at `first`, and the line behind the block: a block is the
-- lines, one below the other, that have the column.
local function measure(self, first, last, column)
	local width, i = MIN_WIDTH, first
	while i <= last and column < #self.lines[i] do
		width = math.max(width, width_of(self.lines[i][column]) + PADDING)
		i = i + 1
	end
	return width, i
end

local function remember(self, widths, column, width)
	for known = #self.widest + 1, column - 1 do
		self.widest[known] = widths[known]
	end
	self.widest[column] = math.max(width, self.widest[column] or 0)
	return self.widest[column]
end

-- Writes the lines from `first` to `last`; `widths` are those of the columns to the left of the next one.
local function write_blocks(self, first, last, widths)
	local column, i = #widths + 1, first
	while i <= last do
		if column < #self.lines[i] then
			write_lines(self, first, i - 1, widths)
			local width, behind = measure(self, i, last, column)
			widths[column] = remember(self, widths, column, width)
			write_blocks(self, i, behind - 1, widths)
			widths[column] = nil
			first, i = behind, behind
		else
			i = i + 1
		end
	end
	write_lines(self, first, last, widths)
end

--- Writes all lines that were added. Lines that are added later get columns at least as wide.
function columns:flush()
	local count = #self.lines
	if count > 0 then
		write_blocks(self, 1, count, {})
		self.lines = {}
	end
end

-- Adds one line of cells. A line of one cell flushes, as it has no part in the columns.
local function add_line(self, cells)
	self.lines[#self.lines + 1] = cells
	if #cells == 1 then
		self:flush()
	end
end

--- Adds a row. Its cells may hold separators of cells and lines, and so become several.
---@param cells string[] the writer's from now on
function columns:add(cells)
	if not table.concat(cells):find "[\t\n\v\f]" then
		return add_line(self, cells)
	end
	local text = table.concat(cells, "\t")
	local line, start = {}, 1
	while true do
		local place = text:find("[\t\n\v\f]", start)
		line[#line + 1] = text:sub(start, place and place - 1)
		local separator = place and text:sub(place, place) or "\n"
		if separator == "\n" or separator == "\f" then
			add_line(self, line)
			line = {}
			if separator == "\f" then
				self:flush()
			end
		end
		if not place then
			return
		end
		start = place + 1
	end
end

return columns
