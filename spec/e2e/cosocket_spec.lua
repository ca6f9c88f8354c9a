-- examples/nginx/cosocket.lua in a real nginx: its sockets carry the events to a listener, also if that comes late.
local cjson = require "cjson"
local cluster = require "cluster"
local host_configuration = require "host_configuration"
local quickstart = require "quickstart"

-- nginx brings its own Lua, so one Lua is enough to start it.
if _VERSION ~= "Lua 5.4" then
	describe("a sink by cosockets", function()
		pending("skipped: nginx brings its own Lua; the specs on Lua 5.4 start it")
	end)
	return
end

-- Prints what it receives, one connection after the other.
local LISTENER = [[
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = server.accept()
    for line in connection.makefile():
        print(line, end="", flush=True)
]]

describe("a sink by cosockets", function()
	local listener, port, log, nginx

	local function start_listener()
		local _
		listener, _, log = quickstart.start(cluster.scratch, ("python3 -u cosocket.py %d"):format(port))
	end

	-- A listener that prints more than the test wants is one too many.
	local function received()
		local names = {}
		for line in cluster.read(log):gmatch "({[^\n]*})\n" do
			names[#names + 1] = cjson.decode(line).involvedObject.name
		end
		table.sort(names)
		return names
	end

	local function start_nginx()
		local web, path = quickstart.free_port(), cluster.scratch .. "/cosocket.conf"
		cluster.write(path, host_configuration.nginx(web, ("error_log stderr; pid %s/cosocket.pid;"):format(cluster.scratch),
			([[
			lua_package_path "%s/examples/nginx/?.lua;%s/lua/?.lua;%s/lua/?/init.lua;;";
			init_by_lua_block {
				local evrec = require "evrec"
				broadcaster = evrec.broadcaster {}
				recorder = broadcaster:new_recorder { component = "host" }
			}
			init_worker_by_lua_block { require("cosocket").start(broadcaster, "127.0.0.1", %d) }]])
			:format(quickstart.here, quickstart.here, quickstart.here, port), [[
			location / {
				return 503 "no upstream\n";
				log_by_lua_block { recorder:event({ kind = "Pod", name = ngx.var.uri:sub(2) }, "Normal", "R", "m") }
			}]]))
		nginx = quickstart.start(cluster.scratch, ("nginx -p . -c %s -g 'daemon off;'"):format(path),
			quickstart.with_evrec "luajit")
		quickstart.await_port(web)
		return function(name)
			cluster.run { "curl", "-s", "-o", "/dev/null", ("http://127.0.0.1:%d/%s"):format(web, name) }
		end
	end

	before_each(function()
		port = quickstart.free_port()
		cluster.write(cluster.scratch .. "/cosocket.py", LISTENER)
	end)

	it("delivers in order, and what waits as the worker exits", function()
		start_listener()
		local get = start_nginx()
		get "a"
		get "b"
		quickstart.await(function() return #received() == 2 end)
		get "c"
		local said = nginx "QUIT"
		assert.same({ "a", "b", "c" }, received())
		assert.is_nil(said:find("events were not sent", 1, true), said)
		listener "TERM"
	end)

	it("keeps events until its receiver is there, and tells if it never is", function()
		local get = start_nginx()
		get "a"
		get "b"
		start_listener()
		quickstart.await(function() return #received() == 2 end)
		listener "TERM"
		get "c"
		get "d"
		local said = nginx "QUIT"
		assert.matches("events were not sent to 127.0.0.1:" .. port, said)
	end)
end)
