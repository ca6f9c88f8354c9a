-- evrec.haproxy in a real HAProxy, whose server goes down and comes up. The events go to standard output.
local cluster = require "cluster"
local quickstart = require "quickstart"

if _VERSION ~= "Lua 5.4" then
	describe("HAProxy's servers", function()
		pending("skipped: HAProxy brings its own Lua; the specs on Lua 5.4 start it")
	end)
	return
end

local SCRIPT = [[
local evrec = require "evrec"
local haproxy = require "evrec.haproxy"
local broadcaster = evrec.broadcaster {}
broadcaster:start_recording_to_sink(evrec.sink.file { path = "-" })
haproxy.record_servers(broadcaster:new_recorder { component = "haproxy" }, { interval = 0.1, namespace = "web" })
core.register_task(function()
	while true do
		broadcaster:poll()
		core.msleep(20)
	end
end)
]]

-- A request to /break or /mend decides what the health check of the server is told.
local CONFIGURATION = [[
global
	%s
	stats timeout 5s

defaults
	mode http
	timeout connect 5s
	timeout client 5s
	timeout server 5s

backend shop
	option httpchk
	server s1 127.0.0.1:%d check inter 50ms rise 1 fall 1

frontend target
	bind 127.0.0.1:%d
	http-request set-var(proc.broken) bool(true) if { path /break }
	http-request set-var(proc.broken) bool(false) if { path /mend }
	http-request return status 503 if { var(proc.broken) -m bool }
	http-request return status 200
]]

describe("HAProxy's servers", function()
	local function follow(load)
		local port = quickstart.free_port()
		local script, path = cluster.scratch .. "/servers.lua", cluster.scratch .. "/servers.cfg"
		cluster.write(script, SCRIPT)
		cluster.write(path, CONFIGURATION:format(load:format(script), port, port))
		local stop, _, log = quickstart.start(cluster.scratch, "haproxy -db -f " .. path, quickstart.with_evrec "5.3")
		finally(function() os.remove(script) os.remove(path) end)
		quickstart.await_port(port)
		-- Waits for a line about the change with this count.
		local function change(what, reason, message, count)
			cluster.run { "curl", "-s", ("http://127.0.0.1:%d/%s"):format(port, what) }
			quickstart.await(function()
				for line in cluster.read(log):gmatch "[^\n]+" do
					if line:find('"reason":"' .. reason .. '"', 1, true) and line:find(message, 1, true)
						and line:find(('"count":%d,'):format(count), 1, true) then
						return true
					end
				end
			end)
		end
		for count = 1, 3 do
			change("break", "ServerDown", "Server shop/s1 is DOWN: Layer7 wrong status (L7STS)", count)
			change("mend", "ServerUp", "Server shop/s1 is UP: Layer7 check passed (L7OK)", count)
		end
		local said = stop "USR1"
		assert.matches('"involvedObject":{"kind":"Service","namespace":"web","name":"shop"', said)
		assert.is_nil(said:find('"count":4', 1, true), said)
		assert.is_nil(said:find("evrec: ", 1, true), said)
	end

	it("make one event a change, which is counted if it happens again", function()
		follow("lua-load %s")
	end)

	it("make one event a change, though each of two threads runs the script", function()
		follow("nbthread 2\n\tlua-load-per-thread %s")
	end)
end)
