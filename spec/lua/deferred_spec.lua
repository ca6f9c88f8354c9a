-- Events that a callback records wait until the call is done in which it runs. None of them is lost in silence.
local command = require "command"
local fixtures = require "fixtures"

--- Runs a script in a process of its own. `broadcaster` and `recorder` are there, and `record(name)`. Returns what it
--- wrote on standard output and standard error.
local function run(script)
	local _, output, complaints = command.script([[
		local evrec = require "evrec"
		local broadcaster = evrec.broadcaster {}
		local recorder = broadcaster:new_recorder { component = "deferred" }
		local function record(name)
			assert(recorder:event({ kind = "Pod", namespace = "shop", name = name }, "Normal", "Seen", "m"))
		end
	]] .. script)
	return output .. complaints
end

describe("an event that a callback records", function()
	it("in poll() is broadcast by that poll()", function()
		local s
		s = fixtures.setup { on_drop = function(event, cause)
			if cause == "rejected" then
				s.recorder:event(fixtures.pod "alarm", "Warning", "EventLost", event.message)
			end
		end }
		local watch = s.broadcaster:watch()
		s.broadcaster:start_recording_to_sink(require("evrec").sink.lua { create = function()
			return nil, 400
		end })
		s.recorder:event(fixtures.pod(), "Normal", "Bad", "m")
		assert.equal("Bad", watch:next().reason)
		s.broadcaster:poll()
		assert.equal("EventLost", watch:next().reason)
		assert.equal(0, s.broadcaster:stats().queued)
		assert.is_nil(fixtures.fault(s.broadcaster:stats()))
	end)

	-- Each event of the watcher makes one more wait: only a call that never comes would broadcast the last one.
	local chain = [[
		local depth = 0
		broadcaster:start_event_watcher(function()
			depth = depth + 1
			if depth < 4 then
				record("inner-" .. depth)
			end
		end)
		record "outer"
		assert(broadcaster:stats().queued == 1)
	]]

	it("and that still waits when the process ends, is told as lost", function()
		local told = "evrec: refused calls, lost events and errors that were not printed: 1\n"
		assert.equal(told, run(chain .. "os.exit(0)"))
	end)

	it("and that was broadcast meanwhile, is not told", function()
		assert.equal("", run(chain .. "broadcaster:poll() assert(broadcaster:stats().queued == 0) os.exit(0)"))
	end)
end)
