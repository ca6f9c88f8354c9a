-- The terminal: escapes control characters of untrusted text, colours, and the command's own messages.
local core = require "evrec.core"

local columns = require "evrec.cli.columns"
local controls = require "evrec.cli.controls"
local progress = require "evrec.cli.progress"

local terminal = {}

local STDOUT = 1 -- file descriptor

-- ---- untrusted text ----

local CONTROL = "[%z\1-\8\11-\31\127]" -- all of ASCII but tab and line feed

local function caret(control)
	return control == "\127" and "^?" or "^" .. string.char(control:byte() + 64)
end

--- Replaces ESC and carriage return, as kubectl does in a table. A table in a file or a pipe is the same as
--- kubectl's.
---@param text string
---@return string
function terminal.escape(text)
	return (text:gsub("[\27\r]", { ["\27"] = "^[", ["\r"] = "\\r" }))
end

--- Replaces all characters that `controls` knows, and control characters but tabs and line feeds.
---@param text string
---@return string
function terminal.neutral(text)
	return controls.replace((terminal.escape(text):gsub(CONTROL, caret)), "<U+%04X>", "<0x%02X>")
end

--- Replaces the same, and tabs and line feeds: the text stays in its row and its column.
---@param text string
---@return string
function terminal.cell(text)
	return (terminal.neutral(text):gsub("[\t\n]", { ["\t"] = "\\t", ["\n"] = "\\n" }))
end

--- Cuts a name behind its 64th character.
---@param text string
---@return string
function terminal.cut(text)
	local count = 0
	for place in text:gmatch "()[^\128-\191]" do
		count = count + 1
		if count > 64 then
			return text:sub(1, place - 1) .. "\226\128\166"
		end
	end
	return text
end

--- Returns the function for untrusted text on standard output: `cell` on a terminal, else `escape`.
---@return fun(text: string): string
function terminal.escaper()
	return core.is_terminal(STDOUT) and terminal.cell or terminal.escape
end

-- ---- colours ----

--- Tells whether colours are wanted: on a terminal that has them, without NO_COLOR (no-color.org).
---@return boolean
function terminal.has_colours()
	return core.is_terminal(STDOUT) and os.getenv "TERM" ~= "dumb" and os.getenv "NO_COLOR" == nil
end

local YELLOW, RESET = "\27[33m", "\27[0m"

--- Colours the cells that say "Warning".
function terminal.paint(text)
	return text == "Warning" and YELLOW .. text .. RESET or text
end

-- ---- output and messages ----

local BROKEN_PIPE = 32 -- EPIPE

--- Ends the command: command.lua prints the message, and returns the status.
---@param status integer 1: it failed; 2: misuse
---@param message? string
function terminal.fail(status, message)
	error({ status = status, message = message }, 0)
end

-- Ends the command with the status that a shell shows for a program killed by SIGPIPE: 128 + the signal's number.
local function check(ok, why, code)
	if not ok then
		terminal.fail(code == BROKEN_PIPE and 141 or 1, code ~= BROKEN_PIPE and "standard output: " .. why or nil)
	end
end

--- Writes to standard output, or ends the command.
---@param text string
function terminal.write(text)
	progress.before_output()
	check(io.stdout:write(text))
end

--- Flushes standard output, or ends the command.
function terminal.flush()
	check(io.stdout:flush())
end

local WIDTH = 100

--- Writes a paragraph to standard output, in lines of at most 100 bytes if its words allow it.
---@param text string
---@param indent? string that of each line
function terminal.write_prose(text, indent)
	indent = indent or ""
	local line
	for word in terminal.cell(text):gmatch "[^ ]+" do
		if line and #indent + #line + 1 + #word > WIDTH then
			terminal.write(indent .. line .. "\n")
			line = word
		else
			line = line and line .. " " .. word or word
		end
	end
	terminal.write(indent .. (line or "") .. "\n")
end

--- Writes rows of cells to standard output, in columns.
---@param rows any[][] cells of any type; the terminal's from now on
function terminal.write_rows(rows)
	local writer = columns.new(terminal.write)
	for _, row in ipairs(rows) do
		for i, value in ipairs(row) do
			row[i] = terminal.cell(tostring(value))
		end
		writer:add(row)
	end
	writer:flush()
end

--- Prints a message for people: one line without control characters.
---@param message string
function terminal.tell(message)
	progress.clear()
	io.stderr:write("evrec: ", (terminal.neutral(message):gsub("%s*\n%s*", ". ")), "\n")
end

return terminal
