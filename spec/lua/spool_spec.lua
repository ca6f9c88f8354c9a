-- The spool of sinks that are no API server: a sink leaves in it what it could not write, and the next one writes that.
-- The spool of a Kubernetes sink is in ending_spec.lua.
local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"

describe("the spool", function()
	local spool, path
	before_each(function()
		spool, path = os.tmpname(), os.tmpname()
		os.remove(spool)
	end)
	after_each(function()
		os.execute(("rm -rf '%s' '%s'"):format(spool, path))
	end)

	--- Records two occurrences of one event and one of another, and shuts down while the sink cannot write them.
	local function fail_to_write(sink)
		local failed = false
		local broadcaster = evrec.broadcaster { on_error = function() failed = true end }
		broadcaster:start_recording_to_sink(sink)
		local recorder = broadcaster:new_recorder { component = "spec" }
		for _, name in ipairs { "web-0", "web-0", "web-1" } do
			assert.is_true(recorder:event(fixtures.pod(name), "Warning", "Failed", "no room"))
		end
		fixtures.flush_until(broadcaster, function() return failed end)
		local ok, stats = broadcaster:shutdown(0.05)
		assert.is_false(ok)
		assert.equal(3, stats.spooled)
		assert.equal(0, stats.dropped.closed)
		assert.is_nil(fixtures.fault(stats))
	end

	--- Shuts down a broadcaster that records nothing and whose sink has the same spool. Returns the final stats.
	local function write_spooled(sink)
		local broadcaster = evrec.broadcaster { on_error = false }
		broadcaster:start_recording_to_sink(sink)
		fixtures.flush_until(broadcaster, function() return broadcaster:stats().restored == 3 end)
		local ok, stats = broadcaster:shutdown(10)
		assert.is_true(ok)
		assert.equal(3, stats.restored)
		assert.equal(2, stats.created)
		assert.equal(1, stats.coalesced)
		assert.is_nil(fixtures.fault(stats))
		return stats
	end

	--- Checks that the events are those that fail_to_write recorded.
	local function check_events(events)
		table.sort(events, function(a, b) return a.involvedObject.name < b.involvedObject.name end)
		assert.equal(2, #events)
		assert.equal("web-0", events[1].involvedObject.name)
		assert.equal(2, events[1].count)
		assert.equal("web-1", events[2].involvedObject.name)
		assert.equal(1, events[2].count)
		assert.equal("no room", events[2].message)
		assert.equal("spec", events[2].source.component)
	end

	it("gives the next sink in Lua what the first one could not write", function()
		local tried, written = {}, {}
		fail_to_write(evrec.sink.lua {
			spool = spool,
			create = function(event)
				tried[event.involvedObject.name] = event.metadata.name
				return nil, 503
			end,
		})
		write_spooled(evrec.sink.lua {
			spool = spool,
			create = function(event) written[#written + 1] = event:to_table() end,
		})
		check_events(written)
		assert.equal(tried["web-0"], written[1].metadata.name)
		local third = evrec.broadcaster { on_error = false }
		third:start_recording_to_sink(evrec.sink.lua { spool = spool, create = error })
		assert.equal(0, select(2, third:shutdown(0.05)).restored)
	end)

	it("gives the next file sink what the first one could not write", function()
		fail_to_write(evrec.sink.file { path = path .. "/none", spool = spool })
		write_spooled(evrec.sink.file { path = path, spool = spool })
		local written = {}
		for line in io.lines(path) do
			written[#written + 1] = cjson.decode(line)
		end
		check_events(written)
	end)

	it("is refused by the constructor of a sink unless it is the name of a folder", function()
		local messages = { [1] = "expected a string or a table, got number", ["a\0b"] = "must be the name of a folder" }
		for name, required in pairs { file = { path = "-" }, lua = { create = print } } do
			for value, message in pairs(messages) do
				required.spool = value
				assert.has_error(function() evrec.sink[name](required) end,
					("evrec.sink.%s: option 'spool': %s"):format(name, message))
			end
		end
	end)

	it("is also a table with the folder and the seconds", function()
		fail_to_write(evrec.sink.file { path = path .. "/none", spool = { path = spool, after = 0.5 } })
		write_spooled(evrec.sink.file { path = path, spool = { path = spool } })
		for message, value in pairs {
			["option 'spool.path' is missing"] = {},
			["option 'spool.path': expected a string, got number"] = { path = 1 },
			["option 'spool.path': expected a string that is not empty, got \"\""] = { path = "" },
			["option 'spool': expected a string that is not empty, got \"\""] = "",
			["option 'spool.after': expected a number of seconds >= 0, got -1"] = { path = spool, after = -1 },
			["unknown option 'spool.before'"] = { path = spool, before = 1 },
		} do
			assert.has_error(function() evrec.sink.file { path = "-", spool = value } end, "evrec.sink.file: " .. message)
		end
	end)

	--- Runs a process that records two occurrences of one event into a sink in Lua that never writes, polls for so many
	--- seconds, and ends by the statement `last`. Returns what it has written on standard error.
	local function live(options, seconds, last)
		local script, lua = path .. ".lua", require("command").interpreter
		local file = assert(io.open(script, "w"))
		file:write(([[
			local evrec, fixtures = require "evrec", require "fixtures"
			local broadcaster = evrec.broadcaster {}
			broadcaster:start_recording_to_sink(evrec.sink.lua { spool = %s, create = function() return nil, 503 end })
			local recorder = broadcaster:new_recorder { component = "spec" }
			for _ = 1, 2 do
				recorder:event(fixtures.pod "web-0", "Warning", "Failed", "no room")
			end
			local deadline = os.time() + %d
			repeat
				broadcaster:poll()
			until os.time() >= deadline
			%s
		]]):format(options, seconds, last))
		file:close()
		local pipe = assert(io.popen(("%s '%s' 2>&1 >/dev/null"):format(lua, script)))
		local output = pipe:read "*a"
		pipe:close()
		os.remove(script)
		return output
	end

	local function be_killed(options, seconds)
		live(options, seconds, [[os.execute("kill -9 " .. io.open "/proc/self/stat":read "*n")]])
	end

	--- Counts of the events that the next sink finds, and how many occurrences these are.
	local function take_up()
		local written = {}
		local broadcaster = evrec.broadcaster {}
		broadcaster:start_recording_to_sink(evrec.sink.lua {
			spool = spool,
			create = function(event) written[#written + 1] = event.count end,
		})
		assert.is_true(broadcaster:flush(10))
		return written, select(2, broadcaster:shutdown(1)).restored
	end

	it("keeps the events of a process that is killed", function()
		be_killed(("{ path = %q, after = 0.1 }"):format(spool), 2)
		local written, restored = take_up()
		assert.same({ 2 }, written)
		assert.equal(2, restored)
	end)

	it("keeps the events of a process that is killed before the time, with their count", function()
		be_killed(("{ path = %q, after = 30 }"):format(spool), 1)
		local written, restored = take_up()
		assert.same({ 2 }, written)
		assert.equal(2, restored)
	end)

	it("does not, without the journal", function()
		be_killed(("{ path = %q, after = 30, journal = false }"):format(spool), 1)
		local written, restored = take_up()
		assert.same({}, written)
		assert.equal(0, restored)
	end)

	it("keeps the events of a process that exits, and calls none of them lost", function()
		for _, journal in ipairs { "true", "false" } do
			local output = live(("{ path = %q, after = 30, journal = %s }"):format(spool, journal), 1, "os.exit(0)")
			assert.is_nil(output:find("not written", 1, true))
			local written, restored = take_up()
			assert.same({ 2 }, written)
			assert.equal(2, restored)
		end
	end)

	it("keeps the events of a broadcaster that is collected in the journal alone", function()
		for journal, kept in pairs { ["true"] = { 2 }, ["false"] = {} } do
			local output = live(("{ path = %q, after = 30, journal = %s }"):format(spool, journal), 1, "")
			assert.truthy(output:find("2 events were not written", 1, true))
			assert.same(kept, (take_up()))
		end
	end)
end)
