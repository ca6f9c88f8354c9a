-- Measures what an event costs a request in a real nginx: the worker's processor time, all its threads, and the 99th
-- percentile of the latency. The event is recorded as examples/nginx does, and is a known one; then in the ways of
-- cost_ways.lua. It is compared with a log_by_lua_block that does nothing, in pairs of runs, of which either comes
-- first in turns. For each state of the server, and for each way, a line tells the median of the pairs' differences.
-- Fails if one is above its goal.
--
-- usage: luajit cost.lua PAIRS SECONDS
local books = require "books"
local cluster = require "cluster"
local host_configuration = require "host_configuration"
local stage = require "stage"
local tree = require "tree"

local pairs_of_runs, seconds = tonumber(arg[1]), tonumber(arg[2])
local server_pid = tonumber(os.getenv "HOSTS_SERVER_PID")

-- Percent of processor time.
local goal = 6
local ways = { { "reference", 5 }, { "table", 9 } }
-- While the server is frozen, as else what waits would be sent while the other run of a pair is measured. No server
-- takes an event for each of 100,000 requests a second: nearly all are dropped, since the queue is full.
local new = 24

local configuration = host_configuration.nginx("{port}", [[
user www-data;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/log crit;]], [[
	keepalive_requests 1000000;
	lua_package_path "{top}/examples/nginx/?.lua;{lua_path};;";
	lua_package_cpath "{lua_cpath};;";
	init_by_lua_block {
		log_shop = require("failures").logger("default", "shop")
		ways = require "cost_ways"
	}]], [[
		location /empty {
			return 503;
			log_by_lua_block { return }
		}
		location /event {
			return 503;
			log_by_lua_block { log_shop() }
		}
		location /reference {
			return 503;
			log_by_lua_block { ways.reference() }
		}
		location /table {
			return 503;
			log_by_lua_block { ways.table() }
		}
		location /new {
			return 503;
			log_by_lua_block { ways.new() }
		}]])

local kubeconfig = [[
apiVersion: v1
kind: Config
current-context: here
contexts: [{ name: here, context: { cluster: here, user: here } }]
clusters: [{ name: here, cluster: { server: "%s", certificate-authority: "%s" } }]
users: [{ name: here, user: { token: any } }]
]]

-- The seconds of processor time that the threads of a process have used, and the threads. The kernel tells the times in
-- nanoseconds (schedstat), so that runs can be short: the machine's speed changes less between the two runs of a pair.
local function used(pid)
	local ns, threads = 0, cluster.run { "ls", ("/proc/%d/task"):format(pid) }
	for thread in threads:gmatch "%d+" do
		ns = ns + tonumber(cluster.read(("/proc/%d/task/%s/schedstat"):format(pid, thread)):match "^%d+")
	end
	return ns / 1e9, threads
end

local units = { us = 1, ms = 1000, s = 1000000 }

local function wrk(host, path, duration)
	return cluster.run { "wrk", "-t", 1, "-c", 10, "-d", duration .. "s", "--latency",
		("http://127.0.0.1:%d/%s"):format(host.port, path) }
end

-- One run of wrk: the microseconds of processor time for a request, and the 99th percentile of the latency.
local function run(host, worker, path)
	local before, threads = used(worker)
	local output = wrk(host, path, seconds)
	local after, threads_after = used(worker)
	assert(threads == threads_after, "a thread of the worker began or ended during a run, whose time would be lost")
	local requests = assert(tonumber(output:match "(%d+) requests in"), output)
	local number, unit = output:match "99%%%s+([%d.]+)(%a+)"
	return { cpu = (after - before) / requests * 1e6, p99 = number * units[unit] }
end

-- The median of what a function says of each pair.
local function median(runs, tell)
	local list = {}
	for i, pair in ipairs(runs) do
		list[i] = tell(pair.empty, pair.event)
	end
	table.sort(list)
	return (list[math.floor((#list + 1) / 2)] + list[math.ceil((#list + 1) / 2)]) / 2
end

-- Compares requests of two paths, the second of which records an event. Returns whether the goal is met.
local function compare(host, worker, name, event_path, most)
	local runs = {}
	for i = 1, pairs_of_runs do
		runs[i] = {}
		for _, which in ipairs(i % 2 == 1 and { "empty", "event" } or { "event", "empty" }) do
			runs[i][which] = run(host, worker, which == "event" and event_path or "empty")
		end
	end
	local more = median(runs, function(empty, event) return (event.cpu / empty.cpu - 1) * 100 end)
	print(("%-13s  processor time %+5.1f %% (%.2f us %+.2f us; goal %d %%: %s), p99 %+.1f %% (%.0f us %+.0f us)")
		:format(name, more, median(runs, function(empty) return empty.cpu end),
			median(runs, function(empty, event) return event.cpu - empty.cpu end), most, more <= most and "met" or "NOT MET",
			median(runs, function(empty, event) return (event.p99 / empty.p99 - 1) * 100 end),
			median(runs, function(empty) return empty.p99 end),
			median(runs, function(empty, event) return event.p99 - empty.p99 end)))
	io.stdout:flush()
	return more <= most
end

tree.adopt()
local connection = books.server()
local host = stage.host("nginx", { configuration = configuration }, {})
cluster.write(host.folder .. "/kubeconfig", kubeconfig:format(connection.server, connection.ca_file))
require("process").set("KUBECONFIG", host.folder .. "/kubeconfig")
local met = true
local ok, failure = xpcall(function()
	host:start()
	stage.await_port(host.port)
	local worker = host:workers()[1]
	for _, path in ipairs { "empty", "event", "reference", "table" } do
		wrk(host, path, 1) -- from now on the events are known ones, and LuaJIT has compiled the handlers
	end
	met = compare(host, worker, "server there", "event", goal) and met
	for _, way in ipairs(ways) do
		met = compare(host, worker, way[1], way[1], way[2]) and met
	end
	tree.signal(server_pid, "STOP")
	met = compare(host, worker, "server frozen", "event", goal) and met
	met = compare(host, worker, "new", "new", new) and met
	tree.signal(server_pid, "KILL")
	met = compare(host, worker, "server away", "event", goal) and met
	host:finish()
end, debug.traceback)
tree.kill_all()
assert(ok, failure)
os.exit(met and 0 or 1)
