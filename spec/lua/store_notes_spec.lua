-- The tables of occurrences and suppressions of a store, and what is read of them.
package.path = "./examples/?.lua;" .. package.path

local evrec = require "evrec"
local fixtures = require "fixtures"
local silent_cronjob = require "silent_cronjob"

local T0 = 1700000000

describe("a store's notes", function()
	local path, clock, broadcaster, recorder
	before_each(function()
		path = os.tmpname()
		os.remove(path)
		clock = evrec.fake_clock(T0)
	end)
	after_each(function()
		if broadcaster then
			broadcaster:shutdown(0)
			broadcaster = nil
		end
		for _, suffix in ipairs { "", "-wal", "-shm" } do
			os.remove(path .. suffix)
		end
	end)

	local function begin(options)
		options.path = path
		broadcaster = evrec.broadcaster { clock = clock, on_drop = function() end, on_error = false }
		broadcaster:start_recording_to_sink(evrec.sink.store(options))
		recorder = broadcaster:new_recorder { component = "spec" }
	end

	local function all(iterator, second, third, closing)
		local found = {}
		for note in assert(iterator, second), third, closing do
			found[#found + 1] = note
		end
		return found
	end

	it("are off by default", function()
		begin {}
		for _ = 1, 40 do
			recorder:event(fixtures.pod "web-0", "Normal", "Pulled", "Pulled the image")
		end
		broadcaster:shutdown(5)
		local source = evrec.store { path = path }
		local _, json = assert(source:query())()
		assert.same({}, all(source:suppressions()))
		local name = json:match '"name":"(web%-0%.[^"]*)"'
		assert.same({}, all(source:occurrences { namespace = "shop", name = name }))
	end)

	it("have each time that a count stands for", function()
		begin { occurrences = true }
		local expected = {}
		for i = 1, 300 do
			clock:set(T0 + i)
			expected[i] = T0 + i
			recorder:event(fixtures.pod "web-0", "Normal", "Pulled", "Pulled the image")
			if i % 7 == 0 then
				broadcaster:poll()
			end
		end
		broadcaster:shutdown(5)
		local source = evrec.store { path = path }
		local events = 0
		for event in assert(source:query()) do
			events = events + 1
			local times = {}
			local id = { namespace = event.metadata.namespace, name = event.metadata.name }
			for _, note in ipairs(all(source:occurrences(id))) do
				assert.equal(1, note.count)
				assert.equal(event.metadata.name, note.name)
				times[#times + 1] = note.time
			end
			assert.same(expected, times)
		end
		assert.equal(1, events)
		assert.same({}, all(source:suppressions()))
	end)

	it("count occurrences of the same moment", function()
		begin { occurrences = true }
		for _ = 1, 5 do
			recorder:event(fixtures.pod "web-0", "Normal", "Pulled", "Pulled the image")
		end
		broadcaster:shutdown(5)
		local source = evrec.store { path = path }
		local event = assert(source:query())()
		local found = all(source:occurrences { namespace = event.metadata.namespace, name = event.metadata.name })
		assert.equal(1, #found)
		assert.equal(5, found[1].count)
		assert.equal("5", tostring(found[1].count)) -- an integer in Lua 5.3 and 5.4
		assert.equal(T0, found[1].time)
	end)

	it("tell of the CronJob what the sink's stats and explain tell", function()
		local _, _, stats, explained = silent_cronjob.play(nil, nil, path, { suppressions = true })
		local source = evrec.store { path = path }
		local limited, by_reason, known = 0, {}, {}
		for _, note in ipairs(all(source:suppressions { for_object = "cronjob/hello" })) do
			assert.equal("hello", note.object.name)
			assert.matches("^%d+$", tostring(note.count))
			if note.stage == "rate_limited" then
				limited = limited + note.count
				assert.same({ "cronjob-controller", "" }, { note.component, note.host })
			end
			local key = note.stage .. " " .. note.reason
			by_reason[key] = (by_reason[key] or 0) + note.count
			assert.is_true(note.last - note.first < 60)
		end
		assert.is_true(limited > 0)
		assert.equal(stats.rate_limited, limited)
		for _, s in ipairs(explained.suppressed) do
			known[s.stage .. " " .. s.reason] = s.count
		end
		assert.same(known, by_reason)
	end)

	it("are selected by object, time and number", function()
		silent_cronjob.play(nil, nil, path, { suppressions = true })
		local source = evrec.store { path = path }
		local everything = all(source:suppressions())
		assert.is_true(#everything > 20)
		assert.same({}, all(source:suppressions { for_object = "pod/hello" }))
		assert.same({}, all(source:suppressions { for_object = "cronjob/other" }))
		assert.equal(3, #all(source:suppressions { limit = 3 }))
		assert.same(everything[1], all(source:suppressions { limit = 1 })[1])
		local middle = silent_cronjob.started + 20 * 60
		local late, early = all(source:suppressions { since = middle }), all(source:suppressions { before = middle })
		assert.equal(#everything, #late + #early)
		assert.is_true(late[#late].last >= middle and early[1].first < middle)
	end)

	it("tell of drops, and the message of the last one", function()
		begin { suppressions = true, max_pending = 1 }
		for i = 1, 4 do
			recorder:event(fixtures.pod("web-" .. i), "Normal", "Started", "Started number " .. i)
		end
		local _, stats = broadcaster:shutdown(5)
		local dropped = 0
		for _, note in ipairs(all(evrec.store({ path = path }):suppressions())) do
			assert.equal("dropped", note.stage)
			assert.equal("queue_full", note.cause)
			assert.equal("Started number " .. note.object.name:match "%d", note.message)
			dropped = dropped + note.count
		end
		assert.is_true(dropped > 0)
		assert.equal(stats.dropped.queue_full, dropped)
	end)

	-- Records more events than the writer can note meanwhile, as nothing is polled. Returns the sink's final stats, the
	-- messages by their names, and the numbers of notes that the store has: of occurrences, and of lost notes.
	local function loop(options)
		local messages, path_option = {}, { path = path, occurrences = true, suppressions = options.suppressions }
		path_option.max_pending_bytes = options.max_pending_bytes
		broadcaster = evrec.broadcaster {
			clock = clock, drive = "poll", on_drop = function() end,
			on_error = function(message, name)
				messages[name] = messages[name] or {}
				table.insert(messages[name], message)
			end,
		}
		broadcaster:start_recording_to_sink(evrec.sink.store(path_option))
		recorder = broadcaster:new_recorder { component = "spec" }
		for _ = 1, 30000 do
			recorder:event(fixtures.pod "web-0", "Normal", "Pulled", "Pulled the image")
		end
		local done, stats, reason = broadcaster:shutdown(20)
		assert.is_true(done, reason)
		local source, noted, lost = evrec.store { path = path }, 0, 0
		local event = assert(source:query())()
		for _, note in ipairs(all(source:occurrences { namespace = "shop", name = event.metadata.name })) do
			noted = noted + note.count
		end
		for _, note in ipairs(all(source:suppressions())) do
			lost = lost + (note.stage == "lost" and note.count or 0)
		end
		return stats, messages, noted, lost
	end

	it("are told, and counted, if there is no room for them", function()
		local stats, messages, noted, lost = loop { max_pending_bytes = 4 * 1048576 }
		local told = broadcaster:metrics():match "\nevrec_sink_notes_lost_total{[^}]*} (%d+)"
		assert.is_true(noted < 30000)
		assert.equal(30000, noted + lost)
		assert.equal(lost, stats.sinks[1].notes_lost)
		assert.equal(lost, tonumber(told))
		assert.equal(1, #messages.notes)
		assert.equal("store: there was no room for some notes of occurrences or suppressions; notes_lost counts them",
			messages.notes[1])
	end)

	it("have as much room as a quarter of the bytes of the sink's writes", function()
		local stats, messages, noted, lost = loop {}
		assert.same({ 30000, 0, 0, {} }, { noted, lost, stats.sinks[1].notes_lost, messages })
	end)

	it("raise on misuse", function()
		assert.error_matches(function() evrec.sink.store { path = path, occurrences = 1 } end, "occurrences")
		assert.error_matches(function() evrec.sink.store { path = path, suppressions = "yes" } end, "suppressions")
		local source = evrec.store { path = path }
		assert.error_matches(function() source:occurrences { name = "e" } end, "namespace")
		assert.error_matches(function() source:suppressions { reason = "Failed" } end, "reason")
		assert.error_matches(function() evrec.lines({ path = path }):suppressions() end, "no store")
	end)
end)
