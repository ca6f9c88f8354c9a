-- Namespaces, clocks and disks change, around evrec and the server.
local cjson = require "cjson"
local cluster = require "cluster"
local evrec = require "evrec"
local process = require "process"

--- Takes the part of the controller that the cluster does not have: once it is empty, a namespace may go.
local function finalize(namespace)
	local object = cjson.decode(cluster.kubectl("get", "namespace", namespace, "-o", "json"))
	object.spec = nil
	local path = cluster.scratch .. "/namespace.json"
	cluster.write(path, cjson.encode(object))
	cluster.kubectl("replace", "--raw", "/api/v1/namespaces/" .. namespace .. "/finalize", "-f", path)
end

--- Libfaketime reads what to add to the time from here.
local shift = cluster.scratch .. "/shift"

local function link(target, path)
	assert(os.execute(("ln -sfn '%s' '%s'"):format(target, path)))
end

--- The size of the longer one.
local function size(paths)
	local most = 0
	for _, path in pairs(paths) do
		local file = assert(io.open(path))
		most = math.max(most, file:seek "end")
		file:close()
	end
	return most
end

local function link_all(d, target)
	for style, path in pairs(d.paths) do
		link(target or d.files[style], path)
	end
end

--- Adds how each event stands in a file: the last whole line of its name.
local function add_events(path, events)
	local by_name = {}
	for line in io.lines(path) do
		local whole, event = pcall(cjson.decode, line)
		if whole then
			if not by_name[event.metadata.name] then
				table.insert(events, event)
				by_name[event.metadata.name] = #events
			end
			events[by_name[event.metadata.name]] = event
		end
	end
end

return {
	{
		name = "a namespace deleted, another not",
		losses = { namespace_terminating = true, not_found = true },
		perform = function(d)
			d.doomed = d:add_namespace()
			d:record(2)
			cluster.delete_namespace(d.doomed)
			d:record(3)
			finalize(d.doomed)
			d:record(3)
		end,
	},
	{
		name = "the clock stepped back an hour",
		skip = process.sanitizer and "a sanitizer does not start together with libfaketime",
		environment = {
			LD_PRELOAD = "/usr/$LIB/faketime/libfaketimeMT.so.1", FAKETIME_TIMESTAMP_FILE = shift,
			FAKETIME_NO_CACHE = "1", FAKETIME_DONT_FAKE_MONOTONIC = "1",
		},
		before = function() cluster.write(shift, "+1h\n") end,
		perform = function(d)
			local ahead = os.time()
			d:record(5)
			cluster.write(shift, "+0\n")
			assert(os.time() < ahead - 3000, "the time did not change")
			d:record(5)
		end,
	},
	{
		name = "the disk of a file sink full for 10 s",
		sink = function(d)
			local file = cluster.scratch .. "/events-" .. d.style
			os.remove(file)
			cluster.write(file, "")
			d.files, d.paths = d.files or {}, d.paths or {}
			d.files[d.style], d.paths[d.style] = file, file .. ".link"
			link_all(d)
			return evrec.sink.file { path = d.paths[d.style], correlate = d.style, name = d.style }
		end,
		events = function(d)
			local events = {}
			for _, file in pairs(d.files) do
				add_events(file, events)
			end
			return events
		end,
		-- First no more than a part of a line fits, and then nothing.
		perform = function(d)
			d:record(2)
			process.limit_files(size(d.files) + 1000)
			d:record(5)
			link_all(d, "/dev/full")
			process.limit_files(nil)
			d:record(5)
			link_all(d)
			d:record(2)
		end,
	},
}
