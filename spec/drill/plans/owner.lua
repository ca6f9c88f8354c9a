-- Eight processes share one recorder. The one that writes for all is killed at random moments, and replaced.
local cjson = require "cjson"
local cluster = require "cluster"
local process = require "process"
local share_owner = require "share_owner"
local socket = require "socket"

local folder = cluster.scratch .. "/sharing"
local options_file = folder .. "/options"
local share = ("@evrec-drill-%s-%d"):format(tostring({}):match "0x(%x+)", os.time())
local processes = 8

local function remove()
	assert(cluster.run { "rm", "-rf", folder })
	assert(cluster.run { "mkdir", folder })
end

local function wait_for(what, seconds, condition)
	local deadline = process.time() + seconds
	local found = condition()
	while not found do
		if process.time() >= deadline then
			error(what .. "\n" .. cluster.run { "bash", "-c", "tail -n 5 $0/*.log", folder })
		end
		socket.sleep(0.02)
		found = condition()
	end
	return found
end

local function exists(path)
	local file = io.open(path)
	return file and file:close()
end

--- Starts the next process; returns its name and its id.
local function start(all)
	local name = "process" .. #all + 1
	local command = 'timeout 900 luajit spec/drill/sharing.lua "$0" "$1" "$2" >"$2/$1.log" 2>&1 & echo $!'
	local output = cluster.run { "bash", "-c", command, options_file, name, folder }
	all[#all + 1] = { name = name, wrapper = output:match "%d+" }
	return all[#all]
end

--- The process that owns the share; nil if there is none.
local function find_owner(all)
	local pids, by_pid = {}, {}
	for _, p in ipairs(all) do
		if not p.killed then
			pids[#pids + 1], by_pid[p.pid] = p.pid, p
		end
	end
	return by_pid[share_owner.find(share, pids)]
end

local function set_round(round)
	cluster.write(folder .. "/round.new", tostring(round))
	assert(os.rename(folder .. "/round.new", folder .. "/round"))
end

-- ---- the books ----

--- Reads what a process has recorded, and for a killed one how much of that may not be written: what was pending when
--- it was asked last, and what came since.
local function read_notes(p, objects)
	local n = 0
	p.unwritten = 0
	for line in io.lines(("%s/%s.notes"):format(folder, p.name)) do
		local pending = line:match "^= (%d+)$"
		if pending then
			p.unwritten = tonumber(pending)
		else
			local o = objects[line] or { all = 0, due = 0, there = 0, events = 0, round = tonumber(line:match "%d+") }
			objects[line] = o
			n, p.unwritten, o.all = n + 1, p.unwritten + 1, o.all + 1
			-- Nobody else records an object that is named after a process.
			o.killed = p.killed and line:find(p.name .. "%f[%D]") and p
			o.due = o.due + (p.killed and 0 or 1)
		end
	end
	return n
end

--- Adds the events of the server.
local function read_events(namespace, objects)
	for _, event in ipairs(cluster.events(namespace)) do
		local o = objects[event.involvedObject.name]
		-- The last one of a killed process may be recorded but not noted.
		if o then
			o.events, o.there = o.events + 1, o.there + event.count
		end
	end
end

local function add_up(objects, rounds)
	local books = { lost = 0, excess = 0, twice = 0, events = 0, of_kill = {} }
	for round = 0, rounds do
		books.of_kill[round] = 0
	end
	for name, o in pairs(objects) do
		local lost, more = math.max(0, o.due - o.there), math.max(0, o.there - o.all)
		books.lost, books.excess, books.events = books.lost + lost, books.excess + more, books.events + o.events
		books.of_kill[o.round] = books.of_kill[o.round] + more
		books.twice = books.twice + math.max(0, o.events - 1)
		if o.killed then
			o.killed.missing = (o.killed.missing or 0) + math.max(0, o.all - o.there)
		end
		if lost > 0 or o.events > 1 then
			print(("%s: %d recorded, %d due, %d there in %d events"):format(name, o.all, o.due, o.there, o.events))
		end
	end
	return books
end

-- With a spool nothing may be missing of what killed processes had recorded.
local function check_books(d, all, namespace, rounds, spool)
	local objects, recorded, unwritten = {}, 0, 0
	for _, p in ipairs(all) do
		recorded = recorded + read_notes(p, objects)
	end
	read_events(namespace, objects)
	local books = add_up(objects, rounds)
	for _, p in ipairs(all) do
		if p.missing and p.missing > 0 then
			print(("%s was killed: %d missing, %d unwritten"):format(p.name, p.missing, p.unwritten))
			unwritten = unwritten + p.missing
			books.lost = books.lost + math.max(0, p.missing - (spool and 0 or p.unwritten))
		end
	end
	print("summary: counted too often, by kills: " .. table.concat(books.of_kill, " ", 0, rounds - 1))
	print(("summary: %d kills of the owner: %d recorded, %d events, %d lost, %d twice, %d counted too often; and %d that "
		.. "the killed ones had recorded, and not written yet"):format(rounds, recorded, books.events, books.lost,
		books.twice, books.excess, unwritten))
	d.recorded = d.recorded + recorded
	d:expect(books.events > 0, "no events")
	d:expect(books.lost == 0, books.lost .. " lost")
	d:expect(books.twice == 0, books.twice .. " events twice")
end

-- ---- the drill ----

local function wait_until_recording(p)
	local path = ("%s/%s.notes"):format(folder, p.name)
	wait_for(p.name .. " does not record", 20, function() return exists(path) and cluster.read(path) ~= "" end)
	p.pid = cluster.run { "pgrep", "-P", p.wrapper }:match "%d+"
end

local function end_all(d, all)
	cluster.write(folder .. "/end", "")
	for _, p in ipairs(all) do
		if not p.killed then
			local path = ("%s/%s.stats"):format(folder, p.name)
			wait_for(p.name .. " does not end", 100, function() return exists(path) end)
			local told = cjson.decode(cluster.read(path))
			d:expect(told.flushed, p.name .. " did not flush")
			for cause, n in pairs(told.after.dropped) do
				d:expect(n == 0, ("%s dropped %d, %s"):format(p.name, n, cause))
			end
			for what, message in pairs(told.errors) do
				print(p.name, what, message)
			end
		end
	end
end

-- `frozen`: the server is frozen from before the first kill until after the last one. So each owner leaves to the next
-- one all that it has taken over from those before.
local function kill_owners(d, spool, frozen)
	local seed = tonumber(os.getenv "DRILL_SEED") or os.time()
	-- While the server is frozen, the events of all rounds have to fit into the caches.
	local rounds = frozen and 12 or math.max(4, math.floor(d:scaled(30)))
	local namespace = cluster.namespace()
	d.style = "record"
	local sink, all = d:options(), {}
	if spool then
		sink.spool = folder .. "/spool"
		assert(cluster.run { "mkdir", "-m", "700", sink.spool })
	else
		sink.state_file = folder .. "/state"
	end
	print("seed " .. seed)
	math.randomseed(seed)
	cluster.write(options_file, cjson.encode { share = share, sink = sink, namespace = namespace })
	set_round(0) -- the number of kills, which is in the names of all objects
	for _ = 1, processes do
		start(all)
	end
	for _, p in ipairs(all) do
		wait_until_recording(p)
	end
	if frozen then
		d:cluster "freeze"
	end
	for round = 1, rounds do
		socket.sleep((frozen and 1.5 or 4) * math.random())
		local owner = wait_for("nobody owns " .. share, 10, function() return find_owner(all) end)
		cluster.run { "kill", "-9", owner.pid }
		owner.killed = true
		set_round(round)
		wait_until_recording(start(all))
	end
	socket.sleep(1)
	if frozen then
		d:cluster "thaw"
	end
	end_all(d, all)
	check_books(d, all, namespace, rounds, spool)
	cluster.clear(namespace)
	cluster.delete_namespace(namespace)
end

return {
	{ name = "the owner of a shared recorder killed", before = remove, perform = kill_owners },
	{
		name = "the owner of a shared recorder with a spool killed", before = remove,
		perform = function(d) kill_owners(d, true) end,
	},
	{
		name = "the owner of a shared recorder killed while frozen", before = remove,
		perform = function(d) kill_owners(d, true, true) end,
	},
}
