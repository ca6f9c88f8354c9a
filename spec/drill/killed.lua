-- A process that takes up a spool and is killed (SIGKILL) meanwhile.
--
-- usage: luajit killed.lua OPTIONS MOMENT    OPTIONS: the file of the sink's, as JSON; MOMENT: one of those below
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local process = require "process"

local options = cjson.decode(cluster.read(arg[1]))

local moments = {
	--- SQLite has begun to write into the file.
	marking = function()
		local journal = io.open(options.spool .. "-journal")
		return journal and journal:close()
	end,
	--- The first ones are in memory, none was answered.
	restored = function(stats) return stats.restored > 0 end,
	--- About half of them were answered.
	answered = function(stats) return stats.created + stats.patched >= 300 end,
}

local has_come = moments[arg[2]]
local b = evrec.broadcaster {}
b:start_recording_to_sink(evrec.sink.kubernetes(options))
local deadline = process.time() + 60
repeat
	b:poll()
	assert(process.time() < deadline, "the moment does not come")
until has_come(b:stats())
io.write "killed\n"
io.flush()
process.die()
