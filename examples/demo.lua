-- `make demo` runs this: two stories of people who read events, under a fake clock, and what the command `evrec` shows
-- of them.
--
-- The events are in files of the folder EVREC_DEMO, which stay, so that a reader may look at them by other commands.
-- Without it the files are temporary.
local command = require "evrec.cli.command"

local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/?.lua;" .. package.path

local folder = os.getenv "EVREC_DEMO"
local prefix = folder and folder .. "/" or os.tmpname() .. "."
local files = {
	pods = prefix .. "pods.db", cronjob = prefix .. "cronjob.db", trace = prefix .. "cronjob.trace",
}

local function remove_files()
	for _, path in pairs(files) do
		for _, suffix in ipairs { "", "-wal", "-shm" } do
			os.remove(path .. suffix)
		end
	end
end

-- Prints a command as one types it, and runs it.
local function show(...)
	local typed = {}
	for i, word in ipairs { ... } do
		typed[i] = word:find "[^%w./,=_-]" and "'" .. word .. "'" or word
	end
	print("$ evrec " .. table.concat(typed, " "))
	io.stdout:flush()
	assert(command.run { ... } == 0)
end

remove_files()
if folder then
	print "After `make install` the commands that begin with $ work in this folder.\n"
end
local failure = require("twenty_to_five").main(files.pods, show)
print()
require("silent_cronjob").main(files.cronjob, files.trace, show)
print [[

What to try next:
  KUBECONFIG=FILE make demo    records the first story into your cluster, too: kubectl get events
  make install                 installs evrec for every Lua; then: lua5.4 examples/first.lua
  examples/README.md           nginx, HAProxy, a sink in Lua, a C program
  lua/README.md                every function and option]]
if folder then
	print("  evrec replay " .. files.trace .. " -o html >cronjob.html    the second story as a page")
else
	remove_files()
	os.remove(prefix:sub(1, -2))
end
if failure then
	io.stderr:write("\nThe demonstration failed: ", failure, "\n")
	os.exit(1)
end
