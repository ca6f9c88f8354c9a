-- Tries one change of a host, or lists all.
--
-- usage: luajit perform.lua list
--        luajit perform.lua NAME SCALE RESULTS   appends the result to the file RESULTS, a line of JSON
local books = require "books"
local cjson = require "cjson"
local cluster = require "cluster"
local matrix = require "matrix"
local socket = require "socket"
local stage = require "stage"
local tree = require "tree"

local rate, seconds = matrix.rate, 10

local function perform(row, host, scale)
	host:start()
	stage.await_port(host.port)
	-- While processes of both configurations live, one hands over to the other.
	local held = row.change == "reload" and 0.75 * seconds * scale or 0
	local finish = stage.load(host, rate * seconds * scale, rate, held)
	socket.sleep(seconds * scale / 2)
	host.changes[row.change](host)
	print(finish())
	-- Only the change may lose anything, not the end.
	socket.sleep(0.5)
	host:finish()
	stage.take_up(host)
	return books.compare(host.notes, host.namespace)
end

if arg[1] == "list" then
	matrix.each(function(name) print(name) end)
	return
end

local function settle(row, column, result, results)
	result.row, result.column = row.number, column
	local file = assert(io.open(results, "a"))
	file:write(cjson.encode(result), "\n")
	file:close()
	assert(#result.refused == 0, result.refused[1])
	assert(#result.faults == 0, result.faults[1])
	assert(result.unnoted <= matrix.unnoted_bound_of(row, column), result.unnoted .. " counted and not noted")
	assert(result.lost <= matrix.loss_bound_of(row, column), result.lost .. " lost")
	assert(not matrix.has_one_event_each(column) or result.events == result.objects,
		("%d events about %d objects"):format(result.events, result.objects))
end

local row, column = matrix.find(arg[1])
local host = stage.host(row.host, row.settings, {
	notes = true, spool = matrix.spools(column), share = matrix.shares(column), state = matrix.keeps_state(column),
})
tree.adopt()
local ok, result = xpcall(perform, debug.traceback, row, host, tonumber(arg[2]))
print(cluster.read(host.log))
tree.kill_all()
assert(ok, result)
print(cjson.encode(result))
settle(row, column, result, arg[3])
