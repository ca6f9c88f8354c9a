-- Finalizers that close a broadcaster, and those that run when the Lua state closes: cases of finalizer_cases.lua.
local evrec = require "evrec"
local finalizer_cases = require "finalizer_cases"
local fixtures = require "fixtures"
local garbage = require "garbage"

local describe, it, equal = finalizer_cases.describe, finalizer_cases.it, finalizer_cases.equal
local with_finalizers, at_each = finalizer_cases.with_finalizers, finalizer_cases.at_each
local end_of = finalizer_cases.end_of
local pod = fixtures.pod()

describe("a finalizer that closes a broadcaster", function()
	-- Closes the broadcaster at each allocation of the method. The method must return a result, or nil and "closed".
	local function closing(method, ...)
		local results = 0
		local arguments = { ... }
		at_each(function(n)
			local s = fixtures.setup { correlator = { burst_size = 1 } }
			s.recorder:event(pod, "Normal", "R", "m")
			s.recorder:event(pod, "Normal", "R", "m")
			local ran, result, _, name = with_finalizers(function() end_of(s.broadcaster) end, n,
				s.broadcaster[method], s.broadcaster, (unpack or table.unpack)(arguments))
			if result == nil then
				equal("closed", name)
			else
				results = results + 1
			end
			return ran
		end, method == "metrics" and 29 or 1) -- it makes thousands of strings of what stats() returned
		assert(results > 0)
	end

	it("makes new_recorder, watch and start_* return closed", function()
		closing("new_recorder", { component = "c" })
		closing("watch", { queue_length = 5 })
		closing("start_event_watcher", function() end)
		closing("start_recording_to_sink", fixtures.server().sink, { correlator = { burst_size = 5 } })
	end)

	it("does not keep stats() and explain() from returning a copy", function()
		for method, argument in pairs { stats = 0, metrics = { labels = { a = "b" } }, flush = 0, shutdown = 0, poll = 0 } do
			closing(method, argument)
		end
		closing "explain"
	end)

	it("may run while the broadcaster is being closed", function()
		at_each(function(n)
			local s = fixtures.setup()
			s.recorder:event(pod, "Normal", "R", "m")
			local ran = with_finalizers(function() end_of(s.broadcaster) end, n, end_of, s.broadcaster)
			equal(1, s.broadcaster:stats().recorded)
			equal("closed", select(3, s.recorder:event(pod, "Normal", "R", "m")))
			return ran
		end)
	end)

	it("makes the stats of a watch return closed", function()
		at_each(function(n)
			local s = fixtures.setup()
			local ran, stats, _, name = with_finalizers(function() end_of(s.broadcaster) end, n, s.watch.stats, s.watch)
			assert(stats and stats.name == "lua" or name == "closed")
			return ran
		end)
	end)
end)

describe("the last finalizer", function()
	local function collect()
		collectgarbage()
		collectgarbage()
	end

	it("may call methods of objects that were collected before", function()
		local calls, kept = 0, evrec.broadcaster { on_error = false }
		collectgarbage "stop" -- until the finalizer has what it calls
		do
			local last
			-- Lua calls finalizers in the reverse order of their marking, so this one comes last.
			garbage.make(function() last() end)
			local s = fixtures.setup()
			local b, file = s.broadcaster, evrec.sink.file { path = "/dev/null" }
			local queue, c, event, reference = b:watch(), evrec.correlator(), evrec.event {},
				evrec.reference { kind = "Pod", name = ("x"):rep(1024) } -- too long to be cached
			local to_json = event.to_json -- a collected event has no methods
			local fields = { regarding = pod, type = "Normal", reason = "R", note = "m" }
			local prepared = s.recorder:prepare(fields)
			local function try(f, ...)
				calls = calls + 1
				return pcall(f, ...)
			end
			last = function()
				for _, method in ipairs { "stats", "metrics", "explain", "poll", "flush", "shutdown", "watch",
					"new_recorder" } do
					try(b[method], b)
				end
				try(b.explain, kept, reference)
				assert(not try(kept.start_recording_to_sink, kept, file))
				try(kept.start_recording_to_sink, kept, s.server.sink)
				for _, method in ipairs { "next", "stop", "close", "stats" } do
					try(queue[method], queue)
				end
				try(c.correlate, c, event)
				try(c.stats, c)
				try(to_json, event)
				try(s.recorder.event, s.recorder, reference, "Normal", "R", "m")
				try(s.recorder.prepare, s.recorder, fields)
				local _, recorded, _, name = try(prepared.record, prepared)
				assert(recorded == nil and name == "closed")
				_, recorded, _, name = try(prepared.record, prepared, "another message")
				assert(recorded == nil and name == "closed")
				try(s.clock.now, s.clock)
			end
		end
		collectgarbage "restart"
		collect()
		equal(23, calls)
		assert(kept:shutdown(0))
	end)

	it("may make a reference again that the cache had", function()
		-- The closing Lua state collects this object after the reference, as it is the older one.
		_G.older = garbage.make(function()
			equal("web-9", evrec.reference { kind = "Pod", name = "web-9" }.name)
		end)
		equal("web-9", evrec.reference { kind = "Pod", name = "web-9" }.name)
	end)
end)

finalizer_cases.run(...)
