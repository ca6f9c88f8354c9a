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

local function size(path)
	local file = assert(io.open(path))
	local bytes = file:seek "end"
	file:close()
	return bytes
end

--- How each event stands in a file: the last whole line of its name.
local function read_events(path)
	local by_name, events = {}, {}
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
	return events
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
			d.file, d.path = cluster.scratch .. "/events", cluster.scratch .. "/events.link"
			os.remove(d.file)
			cluster.write(d.file, "")
			link(d.file, d.path)
			return evrec.sink.file { path = d.path }
		end,
		events = function(d) return read_events(d.file) end,
		-- First no more than a part of a line fits, and then nothing.
		perform = function(d)
			d:record(2)
			process.limit_files(size(d.file) + 1000)
			d:record(5)
			link("/dev/full", d.path)
			process.limit_files(nil)
			d:record(5)
			link(d.file, d.path)
			d:record(2)
		end,
	},
}
