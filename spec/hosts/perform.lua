-- Tries one change of a host, or lists all.
--
-- usage: luajit perform.lua list
--        luajit perform.lua NAME SCALE BUILD RESULTS   appends the result to the file RESULTS, a line of JSON
local books = require "books"
local cjson = require "cjson"
local cluster = require "cluster"
local matrix = require "matrix"
local socket = require "socket"
local stage = require "stage"
local tree = require "tree"

local rate, seconds = 1000, 10

local function load(port, requests)
	return assert(io.popen(("luajit spec/hosts/load.lua %d %d %d 2>&1"):format(port, requests, rate)))
end

local function perform(row, column, scale, build)
	local host = stage.host(row.host, build, row.settings, column == "spool")
	host:start()
	stage.await_port(host.port)
	local pipe = load(host.port, rate * seconds * scale)
	socket.sleep(seconds * scale / 2)
	host.changes[row.change](host)
	print(pipe:read "*a")
	pipe:close()
	-- Only the change may lose anything, not the end.
	socket.sleep(0.5)
	host:finish()
	stage.take_up(host)
	return books.compare(host.notes, host.namespace), host
end

if arg[1] == "list" then
	matrix.each(print)
	return
end

local name, scale, build, results = arg[1], tonumber(arg[2]), arg[3], arg[4]
matrix.each(function(this, row, column)
	if this ~= name then
		return
	end
	tree.adopt()
	local ok, result, host = xpcall(perform, debug.traceback, row, column, scale, build)
	tree.kill_all()
	assert(ok, result)
	result.name = name
	local file = assert(io.open(results, "a"))
	file:write(cjson.encode(result), "\n")
	file:close()
	print(cjson.encode(result))
	print(cluster.read(host.log))
end)
