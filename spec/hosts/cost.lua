-- Measures what an event costs a request in a real nginx: the worker's processor time, all its threads, and the 99th
-- percentile of the latency. The event is recorded as examples/nginx does, and is a known one. It is compared with a
-- log_by_lua_block that does nothing, in turns; the medians are printed.
--
-- usage: luajit cost.lua PAIRS SECONDS
local books = require "books"
local cluster = require "cluster"
local host_configuration = require "host_configuration"
local stage = require "stage"
local tree = require "tree"

local pairs_of_runs, seconds = tonumber(arg[1]), tonumber(arg[2])
local server_pid = tonumber(os.getenv "HOSTS_SERVER_PID")
local goal = 6 -- percent of processor time

local configuration = host_configuration.nginx("{port}", [[
user www-data;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/log crit;]], [[
	keepalive_requests 1000000;
	lua_package_path "{top}/examples/nginx/?.lua;{lua_path};;";
	lua_package_cpath "{lua_cpath};;";
	init_by_lua_block { require "failures" }]], [[
		location /empty {
			return 503;
			log_by_lua_block { return }
		}
		location /event {
			return 503;
			log_by_lua_block { require("failures").log("default", "shop") }
		}]])

local kubeconfig = [[
apiVersion: v1
kind: Config
current-context: here
contexts: [{ name: here, context: { cluster: here, user: here } }]
clusters: [{ name: here, cluster: { server: "%s", certificate-authority: "%s" } }]
users: [{ name: here, user: { token: any } }]
]]

-- The seconds of processor time that a process has used.
local function used(pid)
	local stat = cluster.read(("/proc/%d/stat"):format(pid)):match "^.*%) (.*)"
	local user, system = stat:match(("%S+ "):rep(11) .. "(%d+) (%d+)")
	return (tonumber(user) + tonumber(system)) / 100
end

local units = { us = 1, ms = 1000, s = 1000000 }

-- One run of wrk: the microseconds of processor time for a request, and the 99th percentile of the latency.
local function run(host, worker, path)
	local before = used(worker)
	local output = cluster.run { "wrk", "-t", 1, "-c", 10, "-d", seconds .. "s", "--latency",
		("http://127.0.0.1:%d/%s"):format(host.port, path) }
	local requests = assert(tonumber(output:match "(%d+) requests in"), output)
	local number, unit = output:match "99%%%s+([%d.]+)(%a+)"
	return (used(worker) - before) / requests * 1e6, number * units[unit]
end

local function median(list)
	table.sort(list)
	return list[math.ceil(#list / 2)]
end

local function compare(host, worker, state)
	local cpu, p99 = { empty = {}, event = {}, more = {} }, { empty = {}, event = {} }
	for i = 1, pairs_of_runs do
		for _, path in ipairs { "empty", "event" } do
			cpu[path][i], p99[path][i] = run(host, worker, path)
		end
		cpu.more[i] = (cpu.event[i] / cpu.empty[i] - 1) * 100
	end
	local more = median(cpu.more)
	print(("the server %s: %.2f us of processor time without an event, %.2f with one: %+.1f %%, the goal is %d: %s")
		:format(state, median(cpu.empty), median(cpu.event), more, goal, more <= goal and "met" or "NOT met"))
	print(("    99th percentile of the latency: %.0f us without, %.0f with"):format(median(p99.empty), median(p99.event)))
end

tree.adopt()
local connection = books.server()
local host = stage.host("nginx", { configuration = configuration }, {})
cluster.write(host.folder .. "/kubeconfig", kubeconfig:format(connection.server, connection.ca_file))
require("process").set("KUBECONFIG", host.folder .. "/kubeconfig")
local ok, failure = xpcall(function()
	host:start()
	stage.await_port(host.port)
	local worker = host:workers()[1]
	compare(host, worker, "there")
	tree.signal(server_pid, "STOP")
	compare(host, worker, "frozen")
	tree.signal(server_pid, "KILL")
	compare(host, worker, "away")
	host:finish()
end, debug.traceback)
tree.kill_all()
assert(ok, failure)
