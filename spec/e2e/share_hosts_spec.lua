-- The option `share` in a real nginx and HAProxy: which of their processes binds the socket.
local cluster = require "cluster"
local host_configuration = require "host_configuration"
local quickstart = require "quickstart"

if _VERSION ~= "Lua 5.4" then
	describe("a share in a host", function()
		pending("skipped: hosts bring their own Lua; the specs on Lua 5.4 start them")
	end)
	return
end

local folder, share

-- The processes that have the bound socket, as a set.
local function owners()
	local found = {}
	for line in io.lines "/proc/net/unix" do
		-- 00010000: it listens.
		local inode, name = line:match "^%S+ %S+ %S+ 00010000 %S+ %S+%s+(%d+) (%S+)"
		if name == share then
			for pid in (cluster.run { "bash", "-c",
				[[for fd in /proc/[0-9]*/fd/*; do [ "$(readlink "$fd")" = "socket:[$0]" ] && echo "$fd"; done]], inode })
				:gmatch "/proc/(%d+)/" do
				found[pid] = true
			end
		end
	end
	return found
end

-- Waits for the owner, which must be one of a process's children, and no other process.
local function await_owner_below(parent)
	local found = quickstart.await(function()
		local now = owners()
		return next(now) and now
	end)
	local owner = next(found)
	assert.is_nil(next(found, owner))
	assert.truthy((" " .. cluster.run { "pgrep", "-P", parent }:gsub("\n", " ")):find(" " .. owner .. " ", 1, true))
	return owner
end

local SCRIPT = [[
	local evrec = require "evrec"
	local broadcaster = evrec.broadcaster { share = %q }
	broadcaster:start_recording_to_sink(evrec.sink.file { path = "%s/events", state_file = "%s/state" })
	local recorder = broadcaster:new_recorder { component = "host" }
	function tell()
		recorder:event({ kind = "Service", apiVersion = "v1", namespace = "shop", name = "web" }, "Warning", "Failed", "m")
	end
]]

-- The latest count of the one event that was written; nil: none yet, or several.
local function count()
	local names, last = {}, nil
	local file = io.open(folder .. "/events")
	for line in file and file:lines() or function() end do
		names[line:match '"name":"(web%.%x+)"'] = true
		last = tonumber(line:match '"count":(%d+)')
	end
	if file then
		file:close()
	end
	local name = next(names)
	return name and next(names, name) == nil and last or nil
end

describe("a share in a host", function()
	before_each(function()
		folder = cluster.run({ "mktemp", "-d", cluster.scratch .. "/share-XXXXXX" }):match "%S+"
		cluster.run { "chmod", "777", folder }
		share = "@" .. folder:match "[^/]+$"
	end)
	after_each(function() cluster.run { "rm", "-rf", folder } end)

	local function script(more) cluster.write(folder .. "/script.lua", SCRIPT:format(share, folder, folder) .. more) end

	local function nginx(settings)
		local port = quickstart.free_port()
		cluster.write(folder .. "/conf", host_configuration.nginx(port,
			("error_log stderr; pid %s/pid; %s"):format(folder, settings),
			("init_by_lua_file %s/script.lua; init_worker_by_lua_block { tell() }"):format(folder),
			[[location / { return 200; }
			location /tell { content_by_lua_block { for _ = 1, 40 do tell() end } }
			location /explain { content_by_lua_block { explain() } }]]))
		return port
	end

	local function haproxy()
		local port = quickstart.free_port()
		local text = host_configuration.haproxy(port, ("lua-load %s/script.lua"):format(folder), "tell", 200)
		cluster.write(folder .. "/conf", text)
		return port
	end

	local function start_nginx(settings)
		local port = nginx(settings)
		local stop, pid = quickstart.start(folder, ("nginx -p . -c %s/conf -g 'daemon off;'"):format(folder),
			quickstart.with_evrec "luajit")
		quickstart.await_port(port)
		return stop, pid, port
	end

	for title, more in pairs { ["nginx"] = "", ["nginx whose master records"] = "tell()" } do
		it(title .. ": a worker is the owner", function()
			script(more)
			-- Of the same user, as a process of root's hands nothing to another user.
			local stop, master = start_nginx((more == "" and "" or "user root; ") .. "worker_processes 2;")
			local owner = await_owner_below(master)
			local wanted = more == "" and 2 or 3
			quickstart.await(function() return count() == wanted end)
			-- nginx starts another worker, which records one more.
			cluster.run { "kill", "-9", owner }
			quickstart.await(function() return not owners()[owner] end)
			await_owner_below(master)
			quickstart.await(function() return (count() or 0) > wanted end)
			stop "QUIT"
			assert.same({}, owners())
		end)
	end

	-- Of 42 events the first 25 take a token.
	it("nginx: each worker explains what the owner has limited", function()
		script [[
			function explain()
				local sinks, message = broadcaster:explain { kind = "Service", namespace = "shop", name = "web" }
				local limited = sinks and sinks[1].suppressed[1]
				ngx.say(broadcaster:stats().share, " ", limited and limited.count or message or "none")
			end
		]]
		local stop, master, port = start_nginx "worker_processes 2;"
		await_owner_below(master)
		local function get(path) return (cluster.run { "curl", "-s", ("http://127.0.0.1:%d/%s"):format(port, path) }) end
		get "tell"
		local said = {}
		quickstart.await(function()
			local role, answer = get "explain":match "(%w+) ([^\n]*)"
			said[role] = answer
			return said.owner == "17" and said.worker == "17"
		end)
		stop "QUIT"
	end)

	it("nginx without a master: its process is the owner", function()
		script "tell()"
		local stop, pid = start_nginx "master_process off;"
		quickstart.await(function() return owners()[pid] end)
		quickstart.await(function() return count() == 2 end)
		stop "QUIT"
	end)

	it("HAProxy with a master: the worker is the owner", function()
		script [[tell() core.register_action("tell", { "http-req" }, tell)]]
		local port = haproxy()
		local stop, master = quickstart.start(folder, ("haproxy -W -f %s/conf"):format(folder),
			quickstart.with_evrec "5.3")
		quickstart.await_port(port)
		cluster.run { "curl", "-s", ("http://127.0.0.1:%d/"):format(port) }
		await_owner_below(master)
		quickstart.await(count)
		stop "USR1"
		assert.same({}, owners())
	end)

	it("nobody binds it if a configuration is only checked", function()
		script "tell() os.execute 'sleep 0.5'"
		local calls = { "strace", "-f", "-qq", "-e", "trace=bind" }
		local function check(...)
			local words = {}
			for word in quickstart.with_evrec(select(1, ...)):gmatch "%S+" do
				words[#words + 1] = word
			end
			for _, word in ipairs(calls) do
				words[#words + 1] = word
			end
			for i = 2, select("#", ...) do
				words[#words + 1] = (select(i, ...))
			end
			local said, ok = cluster.run(words)
			assert.is_true(ok, said)
			assert.is_nil(said:find("AF_UNIX", 1, true), said)
		end
		nginx ""
		check("luajit", "nginx", "-t", "-p", folder, "-c", folder .. "/conf")
		script [[tell() os.execute 'sleep 0.5' core.register_action("tell", { "http-req" }, tell)]]
		haproxy()
		check("5.3", "haproxy", "-c", "-f", folder .. "/conf")
	end)
end)
