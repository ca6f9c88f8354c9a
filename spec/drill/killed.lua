-- Takes up a spool, and kills its own process (SIGKILL) in the middle of that.
--
-- usage: luajit killed.lua OPTIONS MOMENT
--
-- OPTIONS: a file with the sink's options as JSON. MOMENT: a name from `moments`.
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local process = require "process"

local options = cjson.decode(cluster.read(arg[1]))

local moments = {
	--- SQLite has the file open, and is about to write into it.
	marking = function()
		local found = io.popen("ls '" .. options.spool .. "'")
		local names = found:read "*a"
		found:close()
		return names:find("-wal", 1, true)
	end,
	--- The first events are in memory, and none was answered.
	restored = function(stats) return stats.restored > 0 end,
	--- About half of the events were answered.
	answered = function(stats) return stats.created + stats.patched >= 300 end,
}

local has_come = moments[arg[2]]
local b = evrec.broadcaster { on_error = false }
b:start_recording_to_sink(evrec.sink.kubernetes(options))
local deadline = process.time() + 60
repeat
	b:poll()
	assert(process.time() < deadline, "the moment does not come")
until has_come(b:stats())
io.write "killed\n"
io.flush()
process.die()
