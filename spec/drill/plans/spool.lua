-- A process ends while its server is away; the next takes up what is in the spool.
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local process = require "process"

local spool = cluster.scratch .. "/spool"
local options_file = cluster.scratch .. "/options"
local several = 600 -- more rows than are taken up at once

local function remove()
	os.remove(spool)
	os.remove(spool .. "-journal")
end

local function options(d)
	local with_spool = d:options()
	with_spool.spool = spool
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
	d:expect(stats.spooled > several, "not all of the rest was spooled")
	d:expect(not d.errors.spool, d.errors.spool)
end

local function take_up(d)
	d:expect(d:calm().restored > 0, "nothing was in the spool")
	d:end_life(1)
	d:begin_life()
	d:expect(d:calm().restored == 0, "something was left in the spool")
end

--- Another process, which takes up the spool and is killed: see killed.lua for the moment.
local function be_killed(d, moment)
	cluster.write(options_file, cjson.encode(options(d)))
	local output = cluster.run { "luajit", "spec/drill/killed.lua", options_file, moment }
	-- The shell has a word to say about it too.
	assert(output == "killed\n" or output == "killed\nKilled\n", output)
end

local function expect_error(d, text)
	d:expect((d.errors.spool or ""):find(text, 1, true), "not told: " .. text)
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
	d:expect(stats.dropped.closed == several and stats.spooled == 0, "what was left was not dropped")
	expect_error(d, "what is left is not spooled")
	d:cluster "restart"
	d:begin_life()
	d:expect(d:calm().restored == 0, "something is in the spool all the same")
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
			be_killed(d, moment)
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
		expect_error(d, "nothing is taken up from the spool")
		d:begin_life()
		take_up(d)
	end },
	{
		name = "the disk of the spool full from the beginning",
		losses = { closed = true },
		before = remove,
		sink = function(d)
			if d.life == 1 then
				fill_disk()
			end
			return sink(d)
		end,
		perform = function(d)
			free_disk()
			expect_error(d, "going on without the spool")
			d:record(2)
			d:cluster "freeze"
			d:record(10)
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
}
