-- A reload of a real nginx and HAProxy with another configuration of the recorder: while the processes of the former
-- one live on, those of the next one have other options under the same `name` or `share`. No event of either is lost.
local cluster = require "cluster"
local quickstart = require "quickstart"

if _VERSION ~= "Lua 5.4" then
	describe("a reload", function()
		pending("skipped: hosts bring their own Lua; the specs on Lua 5.4 start them")
	end)
	return
end

-- The options of the broadcaster, the path of its sink, and more of the script.
local SCRIPT = [[
	local evrec = require "evrec"
	broadcaster = evrec.broadcaster { %s }
	broadcaster:start_recording_to_sink(evrec.sink.file { path = "%s" })
	local recorder = broadcaster:new_recorder { component = "host" }
	function tell(name)
		recorder:event({ kind = "Service", apiVersion = "v1", namespace = "shop", name = name }, "Warning", "Failed", "m")
	end
	%s
]]

local NGINX = [[
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
error_log stderr;
pid %s/pid;
worker_processes 2;
events { worker_connections 64; }
http {
	access_log off;
	init_by_lua_file %s/script.lua;
	%s
	server {
		listen 127.0.0.1:%d;
		location /now { content_by_lua_block { tell(generation) ngx.print(generation) } }
		location /quiet { content_by_lua_block { ngx.print(generation) } }
		location /slow { content_by_lua_block { ngx.flush(true) ngx.sleep(2) tell(generation) ngx.print(generation) } }
	}
}]]

local HAPROXY = [[
global
	log stdout format short local0
	lua-load %s/script.lua
defaults
	mode http
	timeout connect 5s
	timeout client 30s
	timeout server 30s
frontend web
	bind 127.0.0.1:%d
	http-request lua.slow if { path /slow }
	http-request lua.tell unless { path /quiet }
	http-request return status 200 content-type text/plain lf-string %%[lua.generation]
]]

local HAPROXY_SCRIPT = [[
	core.register_action("tell", { "http-req" }, function() tell(generation) end)
	core.register_action("slow", { "http-req" }, function() core.msleep(2000) end)
	core.register_fetches("generation", function() return generation end)
]]

local folder

-- The occurrences of each object that a file tells of: the sum of the last counts of its events.
local function counts(path)
	local last, sums = {}, {}
	local file = io.open(path)
	for line in file and file:lines() or function() end do
		last[line:match '"name":"(%w+%.%x+)"'] = tonumber(line:match '"count":(%d+)')
	end
	if file then
		file:close()
	end
	for name, count in pairs(last) do
		local object = name:match "%w+"
		sums[object] = (sums[object] or 0) + count
	end
	return sums
end

local function await_counts(path, wanted)
	local ok = pcall(quickstart.await, function() return pcall(assert.same, wanted, counts(path)) end)
	if not ok then
		assert.same(wanted, counts(path))
	end
end

local function curl(port, path)
	return (cluster.run { "curl", "-s", "--max-time", "20", ("http://127.0.0.1:%d/%s"):format(port, path) })
end

-- A request that goes on after the reload. Returns a function that waits for its end, and returns its answer.
local function slow(port)
	local request = io.popen(("exec curl -s --max-time 20 http://127.0.0.1:%d/slow"):format(port))
	quickstart.await(function()
		return cluster.run { "bash", "-c", "ss -Htn state established sport = :$0 | wc -l", tostring(port) }:match "[1-9]"
	end)
	return function()
		local answer = request:read "a"
		request:close()
		return answer
	end
end

local function script(generation, options, path, more)
	cluster.write(folder .. "/script.lua",
		("generation = %q\n"):format(generation) .. SCRIPT:format(options, path, more or ""))
end

local hosts = {
	nginx = function(settings)
		local port = quickstart.free_port()
		cluster.write(folder .. "/conf", NGINX:format(folder, folder, settings or "", port))
		local stop, pid, log = quickstart.start(folder, ("nginx -p . -c %s/conf -g 'daemon off;'"):format(folder),
			quickstart.with_evrec "luajit")
		return { port = port, stop = function() return stop "QUIT" end, reload = "HUP", pid = pid, log = log }
	end,
	HAProxy = function()
		local port = quickstart.free_port()
		cluster.write(folder .. "/conf", HAPROXY:format(folder, port))
		local stop, pid, log = quickstart.start(folder, ("haproxy -W -f %s/conf"):format(folder), quickstart.with_evrec "5.3")
		return { port = port, stop = function() return stop "USR1" end, reload = "USR2", pid = pid, log = log }
	end,
}

local function reload(host)
	cluster.run { "kill", "-" .. host.reload, host.pid }
	-- nginx's former workers may still accept a connection.
	local ok = pcall(quickstart.await, function()
		local next_alone = true
		for _ = 1, 5 do
			next_alone = next_alone and curl(host.port, "quiet") == "second"
		end
		return next_alone
	end)
	assert(ok, not ok and cluster.read(host.log))
end

describe("a reload", function()
	before_each(function()
		folder = cluster.run({ "mktemp", "-d", cluster.scratch .. "/reload-XXXXXX" }):match "%S+"
		cluster.run { "chmod", "777", folder }
		for _, name in ipairs { "events", "first", "second" } do -- a master and its workers may be different users
			cluster.write(folder .. "/" .. name, "")
			cluster.run { "chmod", "666", folder .. "/" .. name }
		end
	end)
	after_each(function() cluster.run { "rm", "-rf", folder } end)

	for title, more in pairs { ["of nginx"] = "", ["of nginx whose master records"] = "tell 'master'" } do
		it(title .. ": a broadcaster with a name may have other options", function()
			script("first", "name = 'main', max_message_bytes = 100", folder .. "/first", more)
			local host = hosts.nginx()
			quickstart.await_port(host.port)
			for _ = 1, 4 do
				assert.equal("first", curl(host.port, "now"))
			end
			local answer = slow(host.port)
			script("second", "name = 'main', max_message_bytes = 200", folder .. "/second", more)
			reload(host)
			for _ = 1, 3 do
				assert.equal("second", curl(host.port, "now"))
			end
			assert.equal("first", answer())
			local log = host.stop()
			assert.is_nil(log:find("emerg", 1, true), log)
			local master = more ~= "" and 1 or nil
			assert.same({ first = 5, master = master }, counts(folder .. "/first"))
			assert.same({ second = 3, master = master }, counts(folder .. "/second"))
		end)
	end

	local ending = "exit_worker_by_lua_block { broadcaster:shutdown(2) }"
	for _, case in ipairs {
		{ "nginx", "nginx" }, { "nginx, whose workers end by shutdown", "nginx", ending }, { "HAProxy", "HAProxy" },
	} do
		local title, name, settings = case[1], case[2], case[3]
		local more = name == "HAProxy" and HAPROXY_SCRIPT or ""

		local function start(max)
			local share = "@" .. folder:match "[^/]+$"
			local function configure(generation, bytes)
				script(generation, ("share = %q, max_message_bytes = %d"):format(share, bytes), folder .. "/events", more)
			end
			configure("first", max)
			local host = hosts[name](settings)
			quickstart.await_port(host.port)
			return host, configure
		end

		it("of " .. title .. ": a share's next processes wait until the former ones have ended", function()
			local host, configure = start(100)
			for _ = 1, 4 do
				assert.equal("first", curl(host.port, "now"))
			end
			await_counts(folder .. "/events", { first = 4 })
			local answer = slow(host.port)
			configure("second", 200)
			reload(host)
			for _ = 1, 3 do
				assert.equal("second", curl(host.port, "now"))
			end
			assert.equal("first", answer())
			await_counts(folder .. "/events", { first = 5, second = 3 })
			local log = host.stop()
			assert.is_nil(log:find("not written", 1, true), log)
			assert.is_nil(log:find("not acknowledged", 1, true), log)
			assert.truthy(log:find("option 'max_message_bytes' differs", 1, true), log)
			assert.same({ first = 5, second = 3 }, counts(folder .. "/events"))
		end)

		it("of " .. title .. ": a former process writes by itself if the next ones share already", function()
			local host, configure = start(100)
			local answer = slow(host.port)
			configure("second", 200)
			reload(host)
			for _ = 1, 3 do
				assert.equal("second", curl(host.port, "now"))
			end
			await_counts(folder .. "/events", { second = 3 })
			assert.equal("first", answer())
			await_counts(folder .. "/events", { first = 1, second = 3 })
			local log = host.stop()
			assert.is_nil(log:find("not acknowledged", 1, true), log)
		end)
	end
end)
