-- A real nginx that forks its workers while the master's thread is at work; real hosts whose scripts poll nothing; and
-- what evrec tells in the hosts' logs.
-- quickstart_spec.lua starts the examples as they are.
local cluster = require "cluster"
local host_configuration = require "host_configuration"
local quickstart = require "quickstart"

-- nginx brings its own Lua, so one Lua is enough to start it.
if _VERSION ~= "Lua 5.4" then
	describe("nginx", function()
		pending("skipped: it brings its own Lua; the specs on Lua 5.4 start it")
	end)
	return
end

-- For the example's configuration: what records in the master, and in each worker.
local MASTER = [[init_by_lua_block {
	local evrec = require "evrec"
	local broadcaster = evrec.broadcaster {}
	broadcaster:start_recording_to_sink(evrec.sink.kubernetes {})
	local recorder = broadcaster:new_recorder { component = "nginx" }
	function tell(who)
		recorder:event({ kind = "Service", apiVersion = "v1", namespace = "default", name = "shop" }, "Warning",
			"UpstreamFailed", who .. " has begun")
	end
	tell "the master"
	local time = os.clock() + %f
	while os.clock() < time do end
}]]
-- The block of the example that MASTER replaces.
local EXAMPLE = [[init_by_lua_block {
		failures = require "failures"
		log_shop = failures.logger("default", "shop")
	}]]
local WORKER = [[init_worker_by_lua_block { tell("worker " .. ngx.worker.id()) }]]

--- Puts other directives into the copy of the example's configuration.
local function replace(path, pairs_of_text)
	local text = cluster.read(path)
	for _, pair in ipairs(pairs_of_text) do
		local from, to = pair[1]:gsub("%p", "%%%0"), pair[2]:gsub("%%", "%%%%")
		local replaced, n = text:gsub(from, to)
		assert.equal(1, n, pair[1])
		text = replaced
	end
	cluster.write(path, text)
end

describe("nginx", function()
	before_each(function() cluster.clear "default" end)

	-- Its workers are forked while the master's thread is at its first request, each time a little later.
	it("delivers what the master and two workers record, if the master records first", function()
		local folder = cluster.scratch .. "/hosts"
		for n = 1, 25 do
			cluster.run { "rm", "-rf", folder }
			local port = quickstart.copy(folder, "nginx", { "luajit" }, { 8080, 8082 })[8080]
			replace(folder .. "/examples/nginx/nginx.conf", {
				{ EXAMPLE, MASTER:format(n * 0.0005) },
				{ 'exit_worker_by_lua_block { failures.exit_worker() }', WORKER },
				{ "log_by_lua_block { log_shop() }", "" },
			})
			local stop = quickstart.start(folder, quickstart.command(folder .. "/examples/nginx/README.md", "nginx "))
			quickstart.await_port(port)
			local log = stop "QUIT"
			assert.equal(3 * n, quickstart.occurrences "nginx", log)
		end
	end)
end)

-- ---- scripts without a poll of their own ----

-- %s: the options of the broadcaster.
local SCRIPT = [[
	local evrec = require "evrec"
	local broadcaster = evrec.broadcaster { %s }
	broadcaster:start_recording_to_sink(evrec.sink.kubernetes {})
	local recorder = broadcaster:new_recorder { component = "host" }
	local state, n = tostring(broadcaster):match "0x(%%x+)", 0
	function tell()
		n = n + 1
		recorder:event({ kind = "Pod", namespace = "default", name = ("pod-%%s-%%d"):format(state, n) }, "Normal", "R", "m")
	end
]]

local function start_nginx(drive)
	local port, script, path = quickstart.free_port(), cluster.scratch .. "/hosts.lua", cluster.scratch .. "/hosts.conf"
	cluster.write(script, SCRIPT:format(("drive = %q"):format(drive)))
	cluster.write(path, host_configuration.nginx(port, ("error_log stderr; pid %s/hosts.pid;"):format(cluster.scratch),
		("init_by_lua_file %s;"):format(script),
		[[location / { return 503 "no upstream\n"; log_by_lua_block { tell() } }]]))
	local stop, pid, log = quickstart.start(cluster.scratch, ("nginx -p . -c %s -g 'daemon off;'"):format(path),
		quickstart.with_evrec "luajit")
	quickstart.await_port(port)
	local worker = (cluster.run { "pgrep", "-P", pid }):match "%d+"
	return { stop = stop, port = port, log = log, signal = "QUIT", worker = worker }
end

local function start_haproxy(drive, settings, load)
	local port, script, path = quickstart.free_port(), cluster.scratch .. "/hosts.lua", cluster.scratch .. "/hosts.cfg"
	cluster.write(script, SCRIPT:format(("drive = %q"):format(drive)) .. [[
		core.register_action("tell", { "http-req" }, tell)
	]])
	cluster.write(path, host_configuration.haproxy(port, ("%s\n\t%s %s"):format(settings, load, script), "tell", 503))
	local stop, pid, log = quickstart.start(cluster.scratch, "haproxy -db -f " .. path, quickstart.with_evrec "5.3")
	quickstart.await_port(port)
	return { stop = stop, port = port, log = log, signal = "USR1", worker = pid }
end

local CONFINED = "user haproxy\n\tgroup haproxy\n\tchroot /var/lib/haproxy"

local hosts = {
	{ "nginx", threads = 1, start = function() return start_nginx "auto" end },
	{ "nginx, drive = poll", threads = 0, start = function() return start_nginx "poll" end },
	{ "HAProxy", threads = 1, as_root = true, start = function() return start_haproxy("auto", "", "lua-load") end },
	{ "HAProxy that may start no thread", threads = 0, as_root = true,
		start = function() return start_haproxy("auto", CONFINED, "lua-load") end },
	{ "HAProxy with a Lua state for each thread", threads = 0, as_root = true,
		start = function() return start_haproxy("auto", CONFINED .. "\n\tnbthread 2", "lua-load-per-thread") end },
}

local function curl(host)
	assert.equal("503", (cluster.run { "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
		("http://127.0.0.1:%d/"):format(host.port) }))
end

--- How many threads of evrec's a process has.
local function threads(pid)
	return tonumber((cluster.run { "bash", "-c", "cat /proc/$0/task/*/comm | grep -cx evrec", pid }))
end

local function written() return quickstart.occurrences "host" end

for _, case in ipairs(hosts) do
	describe("a script that polls nothing, in " .. case[1], function()
		local root = cluster.run { "id", "-u" } == "0\n"
		before_each(function() cluster.clear "default" end)

		it("delivers while the host is idle, and tells nothing", function()
			if case.as_root and not root then
				return pending "skipped: not root, who alone may start HAProxy as another user"
			end
			local host = case.start()
			assert.equal(0, threads(host.worker)) -- a constructor has no effects
			for n = 1, 4 do
				curl(host)
				quickstart.await(function() return written() == n end)
			end
			assert.equal(case.threads, threads(host.worker))
			local log = host.stop(host.signal)
			assert.equal(4, written(), log)
			assert.is_nil(log:find("evrec", 1, true), log)
		end)

		it("delivers what it records at its end", function()
			if case.as_root and not root then
				return pending "skipped: not root, who alone may start HAProxy as another user"
			end
			local host = case.start()
			for _ = 1, 20 do
				curl(host)
			end
			local log = host.stop(host.signal)
			assert.equal(20, written(), log)
			assert.is_nil(log:find("evrec", 1, true), log)
		end)

		it("tells of an outage while the host is idle, and delivers after it", function()
			if not cluster.dir then
				return pending "skipped: $KUBECONFIG is a cluster that these specs may not restart"
			elseif case.as_root and not root then
				return pending "skipped: not root, who alone may start HAProxy as another user"
			end
			local host, killed = case.start(), true
			finally(function()
				if killed then
					cluster.control "restart"
				end
			end)
			cluster.control "kill"
			curl(host)
			quickstart.await(function()
				return cluster.read(host.log):find("evrec: the sink kubernetes: transport: ", 1, true)
			end)
			cluster.control "restart"
			killed = false
			quickstart.await(function() return written() == 1 end)
			host.stop(host.signal)
		end)
	end)
end

-- ---- logs ----

-- A broadcaster without on_error, which tells of a refused call, and of a server that is away.
local RECORDER = [[
	local evrec = require "evrec"
	broadcaster = evrec.broadcaster {}
	broadcaster:start_recording_to_sink(evrec.sink.kubernetes { server = "http://127.0.0.1:1", token = "a-token" })
	recorder = broadcaster:new_recorder { component = "host" }
	pod = { kind = "Pod", namespace = "shop", name = "web-0" }
]]

describe("the log of", function()
	local function ask(port)
		quickstart.await_port(port)
		assert.equal("503", (cluster.run { "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
			("http://127.0.0.1:%d/cart"):format(port) }))
	end

	local refused = 'evrec: 1 recording call was refused: invalid: type: expected "Normal" or "Warning", got "normal" '
		.. "%%(%s%%)"

	it("nginx has what evrec tells, from every phase", function()
		local port, path = quickstart.free_port(), cluster.scratch .. "/log.conf"
		cluster.write(path, host_configuration.nginx(port, ("error_log stderr; pid %s/log.pid;"):format(cluster.scratch), [[
			init_by_lua_block { ]] .. RECORDER .. [[
				recorder:event(pod, "normal", "R", "m")
			}
			init_worker_by_lua_block {
				local another = evrec or require "evrec"
				another = another.broadcaster {}:new_recorder {}
				another:event(pod, "normal", "R", "m")
			}]], [[
			location / {
				return 503 "no upstream\n";
				log_by_lua_block {
					recorder:event(pod, "Normal", "R", "m")
					while broadcaster:stats().retries == 0 do
						broadcaster:poll()
					end
					broadcaster:poll()
				}
			}]]))
		local stop = quickstart.start(cluster.scratch, ("nginx -p . -c %s -g 'daemon off;'"):format(path),
			quickstart.with_evrec "luajit")
		ask(port)
		local log = stop "QUIT"
		assert.matches("%[error%] [^\n]*%[lua%] host%.lua:%d+: [^\n]*" .. refused:format "init_by_lua%S*:%d+", log)
		assert.matches("%[error%] [^\n]*%[lua%] host%.lua:%d+: [^\n]*" .. refused:format "init_worker_by_lua%S*:%d+", log)
		assert.matches("%[error%] [^\n]*%[lua%] host%.lua:%d+: [^\n]*evrec: the sink kubernetes: transport: POST: [^\n]+ "
			.. "while logging request", log)
		-- The event that was left at the end; no Lua runs then.
		assert.matches("\nevrec: the sink kubernetes: 1 event was not written: 1 closed; the last error was transport", log)
	end)

	it("HAProxy has what evrec tells, from an action and from a task", function()
		local port = quickstart.free_port()
		local path, script = cluster.scratch .. "/log.cfg", cluster.scratch .. "/log.lua"
		cluster.write(script, RECORDER .. [[
			core.register_action("refused", { "http-req" }, function()
				recorder:event(pod, "normal", "R", "m")
				recorder:event(pod, "Normal", "R", "m")
			end)
		]])
		cluster.write(path, host_configuration.haproxy(port, "lua-load " .. script, "refused", 503))
		local stop, _, log_path = quickstart.start(cluster.scratch, "haproxy -db -f " .. path, quickstart.with_evrec "5.3")
		ask(port)
		cluster.run { "bash", "-c", 'timeout 20 tail -F -n +1 "$0" | grep -q -m 1 transport', log_path }
		local log = stop "USR1"
		-- <4> is the level that HAProxy's format puts before a message.
		assert.matches("<4>" .. refused:format "%S+log%.lua:%d+", log)
		assert.matches("<4>evrec: the sink kubernetes: transport: POST: ", log)
	end)
end)
