-- A real HAProxy, as Debian configures it: started by root, it goes into a chroot as the user haproxy. Either a master
-- has a worker (-Ws, as Debian's unit starts it), or it is one process, a daemon (-D).
local cluster = require "cluster"
local host_configuration = require "host_configuration"
local tree = require "tree"

local configuration = host_configuration.haproxy("{port}", [[
	chroot {folder}/chroot
	stats socket {folder}/admin.sock mode 660 level admin expose-fd listeners
	stats timeout 30s
	user haproxy
	group haproxy
	daemon
	hard-stop-after 10s
	{threads}
	lua-prepend-path {lua_path}
	lua-prepend-path {lua_cpath} cpath
	{load} {top}/spec/hosts/action.lua]], "record", 200)

local haproxy = { user = "haproxy", lua = "5.3" }
haproxy.__index = haproxy

--- Makes the configuration. `settings` replaces words in braces.
function haproxy.new(settings)
	local host = setmetatable({ folder = settings.folder, port = settings.port, mode = settings.mode }, haproxy)
	host.log, host.configuration = host.folder .. "/log", host.folder .. "/haproxy.cfg"
	-- HAProxy takes one path a line.
	local text = configuration:gsub("\t(lua%-prepend%-path) {(%a[%w_]*)}([^\n]*)\n", function(word, name, rest)
		local lines = {}
		for path in settings[name]:gmatch "[^;]+" do
			lines[#lines + 1] = ("\t%s %s%s\n"):format(word, path, rest)
		end
		return table.concat(lines)
	end)
	cluster.write(host.configuration, (text:gsub("{(%a[%w_]*)}", settings)))
	return host
end

--- The words of the command that checks the configuration.
function haproxy:check()
	return "haproxy", "-c", "-f", self.configuration
end

function haproxy:launch(arguments)
	os.remove(self.folder .. "/pid")
	local command = "cd '%s' && haproxy %s -f haproxy.cfg -p pid %s </dev/null >>log 2>&1 &"
	os.execute(command:format(self.folder, self.mode, arguments or ""))
	local pid
	tree.await("HAProxy's pid", function()
		local file = io.open(self.folder .. "/pid")
		pid = file and file:read "*n"
		if file then
			file:close()
		end
		return pid
	end)
	return pid
end

function haproxy:start()
	self.pid = self:launch()
end

--- The processes that serve.
function haproxy:workers()
	return self.mode == "-D" and { self.pid } or tree.children(self.pid)
end

--- The path of a file of the host, for other processes and for the host in its chroot.
function haproxy:path(name)
	return self.folder .. "/chroot/" .. name, "/" .. name
end

haproxy.finish = tree.end_by "USR1"

haproxy.changes = {
	SIGUSR1 = tree.restart_by "USR1",
	SIGTERM = tree.restart_by "TERM",
	reload = function(self)
		if self.mode == "-D" then
			local old = self.pid
			self.pid = self:launch(("-x admin.sock -sf %d"):format(old))
			tree.await_end(old)
		else
			local old = self:workers()[1]
			tree.signal(self.pid, "USR2")
			tree.await_end(old)
		end
	end,
	-- The master ends with its worker.
	["kill -9"] = function(self)
		tree.signal(self:workers()[1], "KILL")
		tree.await_end(self.pid)
		self:start()
	end,
}

return haproxy
