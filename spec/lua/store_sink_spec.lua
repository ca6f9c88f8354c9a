-- The store sink: its options, and that its events are in the file. spec/unit/store tests their fields, and queries.
local evrec = require "evrec"
local fixtures = require "fixtures"
local tmpfiles = require "tmpfiles"

describe("evrec.sink.store", function()
	local path
	before_each(function()
		path = os.tmpname()
		os.remove(path)
	end)
	after_each(function()
		for _, suffix in ipairs { "", "-wal", "-shm" } do
			os.remove(path .. suffix)
		end
	end)

	--- The bytes of the store. A checkpoint may move them from the second file to the first one meanwhile.
	local function contents()
		local log = tmpfiles.read(path .. "-wal")
		return tmpfiles.read(path) .. log
	end

	--- Records `n` events into a sink, and shuts down. Returns the results of shutdown and the errors' messages.
	local function record(sink, n)
		local messages = {}
		local broadcaster = evrec.broadcaster {
			on_error = function(message, name) messages[#messages + 1] = name .. ": " .. message end,
		}
		broadcaster:start_recording_to_sink(sink)
		local recorder = broadcaster:new_recorder { component = "spec" }
		for i = 1, n do
			assert.is_true(recorder:event(fixtures.pod("web-" .. i), "Warning", "Failed", "out of cheese"))
		end
		local ok, stats = broadcaster:shutdown(10)
		return ok, stats, messages
	end

	it("makes the file with the first write, and writes all events", function()
		local sink = evrec.sink.store { path = path }
		assert.equal("", tmpfiles.read(path))
		local ok, stats = record(sink, 3)
		assert.is_true(ok)
		assert.equal(3, stats.created)
		local text = contents()
		assert.equal("SQLite format 3", text:sub(1, 15))
		for i = 1, 3 do
			assert.truthy(text:find('"name":"web-' .. i, 1, true))
		end
	end)

	it("adds to the file of an earlier sink", function()
		assert.is_true(record(evrec.sink.store { path = path }, 1))
		assert.is_true(record(evrec.sink.store { path = path, keep = 60, keep_bytes = 2 ^ 20, name = "events" }, 30))
		local text = contents()
		assert.truthy(text:find('"name":"web-1', 1, true))
		assert.truthy(text:find('"name":"web-30', 1, true))
	end)

	it("leaves a file alone that is no store, and says so", function()
		local file = assert(io.open(path, "w"))
		file:write(("a diary, "):rep(20))
		file:close()
		local broadcaster = evrec.broadcaster { on_error = false }
		local watch = broadcaster:start_recording_to_sink(evrec.sink.store { path = path })
		local failures = {}
		local other = evrec.broadcaster {
			on_error = function(message, name) failures[#failures + 1] = name .. ": " .. message end,
		}
		other:start_recording_to_sink(evrec.sink.store { path = path })
		other:new_recorder { component = "spec" }:event(fixtures.pod("web-0"), "Normal", "Started", "")
		fixtures.flush_until(other, function() return #failures > 0 end)
		assert.truthy(failures[1]:find("^store: store: .* is not an event store of evrec"))
		assert.equal(("a diary, "):rep(20), tmpfiles.read(path))
		watch:stop()
		other:shutdown(0)
		broadcaster:shutdown(0)
	end)

	it("raises on misuse, and names the option", function()
		for text, options in pairs {
			["option 'path' is missing"] = {},
			["option 'path': expected a string that is not empty"] = { path = "" },
			["option 'keep': expected a number of seconds >= 1, got 0"] = { path = path, keep = 0 },
			["option 'keep_bytes': expected an integer >= 1048576, got 1000"] = { path = path, keep_bytes = 1000 },
			["unknown option 'keeps': did you mean 'keep'?"] = { path = path, keeps = 1 },
			["option 'path': must be the name of a file"] = { path = "a\0b" },
		} do
			local ok, message = pcall(evrec.sink.store, options)
			assert.is_false(ok)
			assert.truthy(message:find("evrec.sink.store: " .. text, 1, true), message)
		end
	end)
end)
