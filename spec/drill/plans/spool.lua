-- A process ends, or is killed, while its server is away; the next takes up what is in the spool.
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local Ledger = require "ledger"
local process = require "process"
local socket = require "socket"

local spools = { record = cluster.scratch .. "/spool", series = cluster.scratch .. "/spool-of-series" }
local options_file = cluster.scratch .. "/options"
local several = 600 -- more rows than are taken up at once

local function remove()
	assert(cluster.run { "rm", "-rf", spools.record, spools.series })
end

local function options(d)
	local with_spool = d:options()
	with_spool.spool = spools[d.style]
	return with_spool
end

local function sink(d)
	return evrec.sink.kubernetes(options(d))
end

local function end_while_frozen(d)
	d:record(2)
	d:cluster "freeze"
	d:record(5)
	d:burst(several)
	local stats = d:end_life(1)
	d:expect(stats.spooled > several * #d.styles, "not all of the rest was spooled")
	d:expect(not d.errors.spool, d.errors.spool)
end

local function take_up(d)
	d:expect(d:calm().restored > 0, "nothing was in the spool")
	d:end_life(1)
	d:begin_life()
	d:expect(d:calm().restored == 0, "something was left in the spool")
end

--- Another process, which takes up the spool and is killed: see killed.lua for the moment.
local function be_killed(d, style, moment)
	d.style = style
	cluster.write(options_file, cjson.encode(options(d)))
	local output = cluster.run { "luajit", "spec/drill/killed.lua", options_file, moment }
	-- The shell has a word to say about it too.
	assert(output == "killed\n" or output == "killed\nKilled\n", output)
end

local function told(d, text)
	return (d.errors.spool or ""):find(text, 1, true)
end

local function expect_error(d, text)
	d:expect(told(d, text), "not told: " .. text)
end

--- No byte can be added to any file of this process.
local function fill_disk() process.limit_files(0) end
local function free_disk() process.limit_files(nil) end

-- At the end the server is not frozen: of what that has in its sockets nobody knows whether it counts as dropped.
local function end_with_full_disk(d)
	d.doomed = d:add_namespace()
	d:cluster "kill"
	for i = 1, several do
		d:emit("doomed-" .. i, nil, d.doomed)
	end
	fill_disk()
	local stats = d:end_life(1)
	free_disk()
	d:expect(stats.dropped.closed == several * #d.styles and stats.spooled == 0, "what was left was not dropped")
	expect_error(d, "the spool could not keep all events")
	d:cluster "restart"
	d:begin_life()
	d:expect(d:calm().restored == 0, "something is in the spool all the same")
end

-- ---- kills ----

-- Events of a style: 100 a second, for the second that they may be in memory alone, and half of one to write them.
local most_lost = 150

--- The events that a file of recording.lua notes: how often each object was recorded, and the sum.
local function noted(path)
	local counts, sum = {}, 0
	for line in io.lines(path) do
		local name = line:match "^%S+ (%S+)$"
		if name then
			counts[name], sum = (counts[name] or 0) + 1, sum + 1
		end
	end
	return counts, sum
end

--- The count of each object's event of a style in the server. Each has one event.
local function stored(d, namespace, style)
	local counts, sum = {}, 0
	for _, event in ipairs(cluster.events(namespace)) do
		if Ledger.style_of(event) == style then
			local name = event.involvedObject.name
			d:expect(not counts[name], "two events of " .. name)
			counts[name] = Ledger.count_of(event)
			sum = sum + counts[name]
		end
	end
	return counts, sum
end

--- Another broadcaster takes up the spool of a style, and writes all.
local function write_spooled(d, style)
	d.style = style
	local broadcaster = evrec.broadcaster { on_error = function(message, name) d.errors[name] = message end }
	broadcaster:start_recording_to_sink(sink(d))
	d:expect(broadcaster:flush(60), "not all of the spool was written")
	return select(2, broadcaster:shutdown(5)).restored
end

--- Compares what a process recorded, by its notes, with what came to the server in a style. Returns how many events it
--- recorded, and how many were lost.
local function check_kill(d, namespace, style, notes)
	local restored = write_spooled(d, style)
	local recorded, n = noted(notes)
	local counts, sum = stored(d, namespace, style)
	for name, count in pairs(counts) do
		-- The last one may be recorded but not noted.
		d:expect(count <= (recorded[name] or 0) + 1, name .. " was counted too often")
	end
	print(("%s: %d recorded, %d restored, %d lost"):format(style, n, restored, n - sum))
	d:expect(restored > 0 or n <= most_lost, "nothing was in the spool")
	d:expect(n - sum <= most_lost, ("%d lost by a kill"):format(n - sum))
	return n, n - sum
end

--- A process records into a frozen server in both styles, and is killed after so many seconds. Returns how many events
--- were recorded, how many were lost, and of how many at most in one style.
local function kill_one(d, namespace, seconds)
	local notes = cluster.scratch .. "/notes"
	cluster.control "freeze"
	cluster.run { "timeout", "-s", "KILL", ("%.3f"):format(seconds), "luajit", "spec/drill/recording.lua",
		options_file, namespace, notes }
	cluster.control "thaw"
	local recorded, lost, most = 0, 0, 0
	print(("killed after %.3f s"):format(seconds))
	for _, style in ipairs(d.styles) do
		local n, missing = check_kill(d, namespace, style, notes)
		recorded, lost, most = recorded + n, lost + missing, math.max(most, missing)
	end
	os.remove(notes)
	cluster.clear(namespace)
	return recorded, lost, most
end

--- The options of the sinks of both styles.
local function all_options(d)
	local all = {}
	for i, style in ipairs(d.styles) do
		d.style = style
		all[i] = options(d)
	end
	return all
end

local function be_killed_again_and_again(d)
	local seed = tonumber(os.getenv "DRILL_SEED") or os.time()
	local rounds = math.max(3, math.floor(d:scaled(50)))
	local recorded, lost, most = 0, 0, 0
	local namespace = cluster.namespace()
	print("seed " .. seed)
	math.randomseed(seed)
	cluster.write(options_file, cjson.encode(all_options(d)))
	for _ = 1, rounds do
		local n, missing, worst = kill_one(d, namespace, 0.3 + 5 * math.random())
		recorded, lost, most = recorded + n, lost + missing, math.max(most, worst)
	end
	print(("%d kills, %d recorded, %d lost, %d at most"):format(rounds, recorded, lost, most))
	cluster.delete_namespace(namespace)
end

-- ---- nginx ----

local workers, events = 8, 100

local nginx_conf = [[
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off;
user root;
worker_processes %d;
pid %s/nginx.pid;
error_log %s/nginx.log;
events { worker_connections 64; }
http {
	access_log off;
	lua_package_path "%s/lua/?.lua;%s/lua/?/init.lua;%s/spec/drill/?.lua;;";
	lua_package_cpath "%s";
	init_worker_by_lua_block { require("workers").start("%s", "%s", %d) }
}
]]

--- Starts nginx, whose workers record so many events each. Returns a function that kills all its processes by SIGKILL.
local function start_nginx(namespace, n)
	local scratch, here = cluster.scratch, cluster.run { "pwd" }:match "[^\n]+"
	local cpath = package.cpath:gsub("([^;]+)", function(path)
		return path:sub(1, 1) == "/" and path or here .. "/" .. path
	end)
	cluster.write(scratch .. "/nginx.conf", nginx_conf:format(workers, scratch, scratch, here, here, here, cpath,
		options_file, namespace, n))
	cluster.run { "bash", "-c", "timeout 120 nginx -p $0 -c $0/nginx.conf >$0/nginx.out 2>&1 & echo $! >$0/timeout.pid",
		scratch }
	return function()
		local master = cluster.read(scratch .. "/nginx.pid"):match "%d+"
		local children = cluster.run { "pgrep", "-P", master }
		local pids = { "kill", "-9", master }
		for pid in children:gmatch "%d+" do
			pids[#pids + 1] = pid
		end
		assert(#pids == 3 + workers, children)
		cluster.run(pids)
		cluster.run { "tail", "--pid=" .. cluster.read(scratch .. "/timeout.pid"):match "%d+", "-f", "/dev/null" }
	end
end

--- How many files the spools have.
local function files()
	local command = "ls $0 $1 | grep -c 'spool$'"
	return tonumber((cluster.run { "bash", "-c", command, spools.record, spools.series }):match "%d+")
end

local function wait_for(seconds, condition)
	local deadline = process.time() + seconds
	while not condition() and process.time() < deadline do
		socket.sleep(0.2)
	end
end

-- Each sink of each worker has a file of its own. After the kill, and a second one in the middle of taking up, nothing
-- is missing.
local function kill_workers(d)
	local namespace = cluster.namespace()
	local sinks = #d.styles * workers
	cluster.write(options_file, cjson.encode(all_options(d)))
	cluster.control "freeze"
	local kill_all = start_nginx(namespace, events)
	wait_for(30, function() return files() >= sinks end)
	socket.sleep(5)
	d:expect(files() == sinks, files() .. " files of " .. sinks .. " sinks")
	kill_all()
	kill_all = start_nginx(namespace, 0)
	socket.sleep(2)
	kill_all()
	cluster.control "thaw"
	kill_all = start_nginx(namespace, 0)
	wait_for(60, function() return files() == 0 end)
	for _, style in ipairs(d.styles) do
		local counts, sum = stored(d, namespace, style)
		local objects = 0
		for name, count in pairs(counts) do
			objects = objects + 1
			d:expect(count == 2, name .. " was counted " .. count .. " times")
		end
		print(("%d workers killed: %d events about %d objects, of %d and %d"):format(workers, sum, objects,
			2 * workers * events, workers * events))
		d:expect(objects == workers * events, ("%d objects have events, of %d"):format(objects, workers * events))
	end
	kill_all()
	cluster.delete_namespace(namespace)
end

return {
	{ name = "ended while frozen, its spool taken up by the next", before = remove, sink = sink, perform = function(d)
		end_while_frozen(d)
		-- The server has PATCHes of both lives in its sockets, and carries them out in any order.
		d:begin_life()
		d:record(2)
		d:cluster "thaw"
		d:record(2)
		take_up(d)
	end },
	{ name = "killed again and again while it takes up the spool", before = remove, sink = sink, perform = function(d)
		end_while_frozen(d)
		d:cluster "thaw"
		for _, moment in ipairs { "marking", "restored", "answered" } do
			for _, style in ipairs(d.styles) do
				be_killed(d, style, moment)
			end
		end
		d:begin_life()
		take_up(d)
	end },
	{ name = "the disk full where the spool is to be taken up", before = remove, sink = sink, perform = function(d)
		end_while_frozen(d)
		d:cluster "thaw"
		fill_disk()
		d:begin_life()
		d:burst(10)
		d:expect(d:calm().restored == 0, "taken up without a mark")
		d:end_life(1)
		free_disk()
		expect_error(d, "a file stays in the spool")
		d:begin_life()
		take_up(d)
	end },
	{
		name = "the disk of the spool full while frozen",
		losses = { closed = true },
		before = remove,
		sink = sink,
		perform = function(d)
			d:record(2)
			d:cluster "freeze"
			fill_disk()
			d:record(10)
			-- The first row is due after a second, and the disk is asked every 3 s.
			d:record_until(function()
				d.pair:poll()
				return told(d, "events are in memory alone")
			end)
			free_disk()
			d:cluster "thaw"
			d:record(2)
			d:calm()
			end_with_full_disk(d)
		end,
	},
	{
		name = "the disk of the spool full at the end", losses = { closed = true }, before = remove, sink = sink,
		perform = function(d)
			d:record(2)
			d:calm()
			end_with_full_disk(d)
		end,
	},
	{ name = "killed at random moments while frozen", before = remove, perform = be_killed_again_and_again },
	{ name = "eight nginx workers killed while frozen", before = remove, perform = kill_workers },
}
