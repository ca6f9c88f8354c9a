-- The examples for nginx and HAProxy, in real ones, as their files say they are started.
local cluster = require "cluster"

-- One Lua runs these: the hosts bring their own.
if _VERSION ~= "Lua 5.4" then
	describe("the hosts", function()
		pending("skipped: nginx and HAProxy bring their own Lua; the specs on Lua 5.4 start them")
	end)
	return
end

local here = cluster.run { "pwd" }:match "[^\n]+"

--- A port that nothing listens on.
local function free_port()
	for _ = 1, 100 do
		local port = math.random(20000, 60000)
		local _, taken = cluster.run { "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/" .. port }
		if not taken then
			return port
		end
	end
	error "no free port"
end

--- Starts a host in the background, for a minute at most; returns a function that signals it and waits for its end.
local function start(words, lua)
	local log, pid_file = cluster.scratch .. "/host.log", cluster.scratch .. "/host.pid"
	local environment = ("env LUA_PATH='%s/?.lua;%s/?.lua;%s/?/init.lua;;' LUA_CPATH='%s/build/%s/?.so;;'"):format(
		here .. "/examples", here .. "/lua", here .. "/lua", here, lua)
	local command = table.concat(words, " ")
	local _, ok = cluster.run({ "bash", "-c", ("timeout 60 %s >%s 2>&1 & echo $! >%s"):format(command, log, pid_file) },
		environment)
	assert(ok)
	local timeout_pid = cluster.read(pid_file):match "%d+"
	return function(signal)
		local pid, found = cluster.run { "pgrep", "-P", timeout_pid }
		assert.is_true(found, pid)
		cluster.run { "kill", "-" .. signal, pid:match "^%d+" }
		cluster.run { "tail", "--pid=" .. timeout_pid, "-f", "/dev/null" }
		return cluster.read(log)
	end
end

--- Asks `count` times, once something listens there.
local function ask(port, count)
	local output, up = cluster.run { "bash", "-c", [[
		for _ in {1..200}; do
			(exec 3<>"/dev/tcp/127.0.0.1/$0") 2>/dev/null && exit 0
			sleep 0.05
		done
		exit 1]], tostring(port) }
	assert.is_true(up, output)
	for _ = 1, count do
		assert.equal("503", (cluster.run { "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
			("http://127.0.0.1:%d/cart"):format(port) }))
	end
end

--- How many occurrences the events of a reason tell.
local function occurrences(component)
	local sum = 0
	for _, event in ipairs(cluster.events "default") do
		if event.source.component == component then
			assert.equal("UpstreamFailed", event.reason)
			assert.equal("shop", event.involvedObject.name)
			sum = sum + event.count
		end
	end
	return sum
end

--- The text of an example with its port, and perhaps more, replaced; the path of the copy.
local function configured(name, replacements)
	local text, path = cluster.read("examples/" .. name), cluster.scratch .. "/" .. name
	for _, pair in ipairs(replacements) do
		local from, to = pair[1]:gsub("%p", "%%%0"), pair[2]:gsub("%%", "%%%%")
		local replaced, n = text:gsub(from, to)
		assert.is_true(n > 0, pair[1])
		text = replaced
	end
	cluster.write(path, text)
	return path
end

describe("the example", function()
	before_each(function() cluster.clear "default" end)

	for _, signal in ipairs { "QUIT", "TERM" } do
		it("for nginx delivers what two workers record, ended by SIG" .. signal, function()
			local port = free_port()
			local path = configured("nginx.conf", { { "127.0.0.1:8080", "127.0.0.1:" .. port } })
			local stop = start({ "nginx", "-p", cluster.scratch, "-c", path, "-g", "'daemon off;'" }, "luajit")
			ask(port, 20)
			local log = stop(signal)
			assert.equal(20, occurrences "nginx", log)
		end)
	end

	it("for HAProxy delivers without a thread, from a chroot", function()
		local port = free_port()
		local path = configured("haproxy.cfg", {
			{ "127.0.0.1:8081", "127.0.0.1:" .. port }, { "127.0.0.1:8082", "127.0.0.1:" .. free_port() },
		})
		local stop = start({ "haproxy", "-db", "-f", path }, "5.3")
		ask(port, 20)
		local log = stop "USR1"
		assert.equal(20, occurrences "haproxy", log)
	end)
end)
