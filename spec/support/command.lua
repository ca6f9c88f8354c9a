-- Runs the command `evrec` in a process of its own.
local tmpfiles = require "tmpfiles"

local command = {}

command.interpreter = jit and "luajit" or _VERSION:gsub("Lua ", "lua")

--- Quotes a word for the shell.
function command.quoted(word)
	return "'" .. tostring(word):gsub("'", [['\'']]) .. "'"
end

--- Quotes words for the shell, and joins them.
---@param words any[] strings and numbers
function command.line(words)
	local list = {}
	for i, word in ipairs(words) do
		list[i] = command.quoted(word)
	end
	return table.concat(list, " ")
end

--- Runs a script of bash, in which "$@" are the words; SIGINT is not ignored as it is in background jobs. A sanitizer
--- is loaded into the interpreter of evrec alone: bash itself leaks.
---@return integer status
---@return string output of standard output
---@return string complaints of standard error
function command.shell(script, ...)
	local line = command.line {
		"env", "-u", "LD_PRELOAD", "--default-signal=INT,PIPE", "bash", "-c", script, "bash", ...,
	}
	local out, err = os.tmpname(), os.tmpname()
	local pipe = assert(io.popen(("%s >%s 2>%s </dev/null; echo $?"):format(line, out, err)))
	local status = tonumber(pipe:read "*a")
	pipe:close()
	local output, complaints = tmpfiles.read(out), tmpfiles.read(err)
	os.remove(out)
	os.remove(err)
	return status, output, complaints
end

--- Runs evrec with arguments. Results as of `shell`.
function command.evrec(...)
	return command.shell('exec "$@"', command.interpreter, "lua/bin/evrec", ...)
end

--- Runs a script of Lua in an interpreter of its own. Results as of `shell`.
function command.script(text)
	local path = os.tmpname()
	local file = assert(io.open(path, "w"))
	file:write(text)
	file:close()
	local status, output, complaints = command.shell('exec "$@"', command.interpreter, path)
	os.remove(path)
	return status, output, complaints
end

--- Ends the test as skipped if commands can have no terminal of their own, by script (util-linux).
---@param pending fun(reason: string) busted's, which ends the test
function command.need_terminal(pending)
	if command.shell "script -qec true /dev/null" ~= 0 then
		pending "no terminal is to be had (is /dev/pts mounted?)"
	end
end

return command
