-- Follows the quick starts in examples/: runs the very commands that their READMEs tell, in a copy of the checkout.
local cluster = require "cluster"

local quickstart = { here = cluster.run { "pwd" }:match "[^\n]+" }

local function shell(script, ...)
	local output, ok = cluster.run { "bash", "-euc", script, ... }
	assert(ok, output)
	return output
end

--- A port that nothing listens on, below the kernel's range of client ports.
function quickstart.free_port()
	for _ = 1, 100 do
		local port = math.random(20000, 32000)
		local _, taken = cluster.run { "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/" .. port }
		if not taken then
			return port
		end
	end
	error "no free port"
end

--- Copies what a reader has after `make`: examples, Lua files, and the modules of these Luas. The copy has other ports:
--- each of `ports` is replaced wherever one of the example's files names it.
---@param folder string is made; only its owner may enter it
---@param example string
---@param luas string[]
---@param ports integer[]
---@return table<integer, integer> replaced the new port by the documented one
function quickstart.copy(folder, example, luas, ports)
	shell([[mkdir -m 700 -p "$0"; cp -r examples lua "$0"; for lua in "$@"; do
		mkdir -p "$0/build/$lua/evrec"; cp "build/$lua/evrec/core.so" "$0/build/$lua/evrec"; done]], folder,
		(table.unpack or _G.unpack)(luas))
	local replaced = {}
	for _, port in ipairs(ports) do
		replaced[port] = quickstart.free_port()
		shell([[grep -rlw "$1" "$0" >/dev/null; grep -rlw "$1" "$0" | xargs sed -i "s/\b$1\b/$2/g"]],
			folder .. "/examples/" .. example, port, replaced[port])
	end
	return replaced
end

--- The command that begins so in an indented block of a README; there must be one only.
---@param readme string its path
---@param beginning string
function quickstart.command(readme, beginning)
	local found
	for line in cluster.read(readme):gmatch "[^\n]+" do
		if line:sub(1, 4 + #beginning) == "    " .. beginning then
			assert(not found, readme .. " has two commands that begin with " .. beginning)
			found = line:sub(5)
		end
	end
	assert(found, readme .. " has no command that begins with " .. beginning)
	return found
end

--- Runs a command to its end in a folder; returns what it printed, and whether it succeeded.
function quickstart.run(folder, command)
	local script = "unset MAKEFLAGS MAKELEVEL; cd " .. folder .. " && " .. command
	return cluster.run { "bash", "-c", script }
end

--- Words in front of a command that let its Lua find evrec in this checkout.
---@param lua string 5.4, 5.3 or luajit
function quickstart.with_evrec(lua)
	return ("env LUA_PATH=%s/lua/?.lua;%s/lua/?/init.lua;; LUA_CPATH=%s/build/%s/?.so;;"):format(quickstart.here,
		quickstart.here, quickstart.here, lua)
end

--- Starts a command in the background, in a folder, for a minute at most. The command takes the place of the shell,
--- behind the words in front of it, if any.
---@param folder string
---@param command string
---@param front? string such as "setpriv --reuid=1000"
---@return fun(signal: string, pid?: string): string, string stop sends a signal to the command, or to the process
---`pid`, waits for the command's end; returns its output and its exit code
---@return string pid of the process that became the command
---@return string log the path of the output, until the end
function quickstart.start(folder, command, front)
	local log, pids = os.tmpname(), os.tmpname()
	-- The shell of a background command ignores SIGINT, which a terminal's does not.
	shell([[cd "$0"; (code=0
		timeout -k 5 60 env --default-signal=INT -u LUA_PATH -u LUA_CPATH $3 bash -c "exec $1" || code=$?
		echo "exit=$code") >"$2" 2>&1 & echo $! >"$4"]], folder, command, log, front or "", pids)
	local outer = cluster.read(pids):match "%d+"
	local pid = shell([[for _ in {1..100}; do timeout=$(pgrep -P "$0") && pgrep -P "$timeout" && exit; sleep 0.02; done
		cat "$1"; exit 1]], outer, log):match "%d+"
	return function(signal, other)
		local said, sent = cluster.run { "kill", "-" .. signal, other or pid }
		cluster.run { "timeout", "60", "tail", "--pid=" .. outer, "-f", "/dev/null" }
		local output, code = cluster.read(log):match "^(.*)exit=(%d+)\n"
		os.remove(log)
		os.remove(pids)
		assert(sent, said .. tostring(output))
		return assert(output, "the command did not end"), code
	end, pid, log
end

--- Waits until something listens at the port.
function quickstart.await_port(port)
	local _, up = cluster.run { "bash", "-c", [[for _ in {1..200}; do
		(exec 3<>"/dev/tcp/127.0.0.1/$0") 2>/dev/null && exit 0; sleep 0.05; done; exit 1]], tostring(port) }
	assert(up, "nothing listens at port " .. port)
end

--- Waits up to 20 s until a function returns something that is true, and returns that.
function quickstart.await(tell)
	for _ = 1, 200 do
		local value = tell()
		if value then
			return value
		end
		cluster.run { "sleep", "0.1" }
	end
	error("waited for 20 s in vain", 2)
end

--- The sum of the counts of a component's events; `filter` may leave events out.
function quickstart.occurrences(component, filter)
	local sum = 0
	for _, event in ipairs(cluster.events "default") do
		if event.source.component == component and (not filter or filter(event)) then
			sum = sum + event.count
		end
	end
	return sum
end

--- The packages that a README's apt-get line names and packages.sh does not.
function quickstart.unknown_packages(readme)
	local known, unknown = cluster.read "spec/support/packages.sh", {}
	for package in quickstart.command(readme, "apt-get install "):gsub("^apt%-get install ", ""):gmatch "%S+" do
		if not known:find("[ |\"]" .. package:gsub("%p", "%%%0") .. "[ |\"]") then
			unknown[#unknown + 1] = package
		end
	end
	return unknown
end

return quickstart
