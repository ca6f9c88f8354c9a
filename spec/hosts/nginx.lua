-- A real nginx, as Debian starts it: by root, as a daemon whose workers belong to www-data.
local cluster = require "cluster"
local host_configuration = require "host_configuration"
local share_owner = require "share_owner"
local tree = require "tree"

local configuration = host_configuration.nginx("{port}", [[
user www-data;
worker_processes {workers};
pid {folder}/pid;
env HOSTS_SETTINGS;
error_log {folder}/log;]], [[
	lua_package_path "{lua_path};;";
	lua_package_cpath "{lua_cpath};;";
	lua_code_cache {code_cache};
	init_by_lua_block { require "recording" }
	exit_worker_by_lua_block { require("recording").broadcaster:shutdown(2) }]], [[
		location / {
			return 200 "{}";
			log_by_lua_block { require("recording").record(ngx.var.uri) }
		}]])

local nginx = { user = "www-data", lua = "luajit" }
nginx.__index = nginx

--- Makes the configuration. `settings` replaces words in braces.
function nginx.new(settings)
	local text = settings.configuration or configuration
	settings.code_cache = settings.code_cache or "on"
	local host = setmetatable({ folder = settings.folder, port = settings.port, log = settings.folder .. "/log" }, nginx)
	host.configuration = host.folder .. "/nginx.conf"
	cluster.write(host.configuration, (text:gsub("{(%a[%w_]*)}", settings)))
	return host
end

--- The words of the command that checks the configuration.
function nginx:check()
	return "nginx", "-t", "-p", self.folder, "-c", self.configuration
end

function nginx:start()
	local output, ok = cluster.run { "nginx", "-p", self.folder, "-c", self.configuration }
	assert(ok, output)
	self.pid = tonumber(cluster.read(self.folder .. "/pid"))
	tree.await("nginx's workers", function() return #self:workers() > 0 end)
end

function nginx:workers()
	return tree.children(self.pid)
end

--- The path of a file of the host.
function nginx:path(name)
	return self.folder .. "/" .. name
end

nginx.finish = tree.end_by "QUIT"

nginx.changes = {
	reload = function(self)
		local old = self:workers()
		tree.signal(self.pid, "HUP")
		for _, pid in ipairs(old) do
			tree.await_end(pid)
		end
	end,
	quit = tree.restart_by "QUIT",
	stop = tree.restart_by "TERM",
	-- Of processes that share a recorder, the one that writes for all.
	["kill -9"] = function(self)
		local workers = self:workers()
		tree.signal(self.share and share_owner.find(self.share, workers) or workers[1], "KILL")
	end,
}

return nginx
