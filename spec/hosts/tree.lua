-- The processes that descend from this one, also those that became daemons.
local ffi = require "ffi"
local process = require "process"
local read = require("tmpfiles").read
local socket = require "socket"

ffi.cdef [[
	int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
	int waitpid(int pid, int *status, int options);
	int kill(int pid, int signal);
]]

local PR_SET_CHILD_SUBREAPER, WNOHANG = 36, 1
local signals = { HUP = 1, QUIT = 3, KILL = 9, USR1 = 10, USR2 = 12, TERM = 15, CONT = 18, STOP = 19 }

local tree = {}

--- From now on daemons become children of this process.
function tree.adopt()
	assert(ffi.C.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
end

--- The children of a process.
---@param pid integer|"self"
function tree.children(pid)
	local list = {}
	local main = pid == "self" and read("/proc/self/stat"):match "%d+" or pid
	for child in read(("/proc/%s/task/%s/children"):format(pid, main)):gmatch "%d+" do
		list[#list + 1] = tonumber(child)
	end
	return list
end

--- Whether the process has ended.
function tree.has_ended(pid)
	ffi.C.waitpid(pid, nil, WNOHANG)
	local state = read(("/proc/%d/stat"):format(pid)):match "^.*%) (%a)"
	return not state or state == "Z"
end

function tree.signal(pid, name)
	ffi.C.kill(pid, assert(signals[name]))
end

--- Waits until the condition holds; raises an error after so many seconds (20).
function tree.await(what, condition, seconds)
	local deadline = process.time() + (seconds or 20)
	while not condition() do
		assert(process.time() < deadline, "waited in vain: " .. what)
		socket.sleep(0.01)
	end
end

function tree.await_end(pid)
	tree.await("the end of " .. pid, function() return tree.has_ended(pid) end)
end

--- Ends all descendants at once.
function tree.kill_all()
	for _ = 1, 100 do
		local children = tree.children "self"
		if #children == 0 then
			return
		end
		for _, pid in ipairs(children) do
			tree.signal(pid, "KILL")
			tree.has_ended(pid)
		end
		socket.sleep(0.01)
	end
end

--- A change of a host: the signal ends it.
---@param signal string
function tree.end_by(signal)
	return function(self)
		tree.signal(self.pid, signal)
		tree.await_end(self.pid)
	end
end

--- A change of a host: the signal ends it, and it is started anew.
---@param signal string
function tree.restart_by(signal)
	local finish = tree.end_by(signal)
	return function(self)
		finish(self)
		self:start()
	end
end

return tree
