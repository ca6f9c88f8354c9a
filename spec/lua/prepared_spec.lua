-- recorder:prepare and prepared:record: the same event as emit makes, and mistakes in the beginning.
local evrec = require "evrec"
local fixtures = require "fixtures"

local pod = fixtures.pod()

local function fields(more)
	local all = { regarding = pod, type = "Normal", reason = "Started", note = "Started container" }
	for name, value in pairs(more or {}) do
		all[name] = value
	end
	return all
end

describe("a prepared event", function()
	it("is recorded as emit records it", function()
		local s = fixtures.recording()
		local what = fields {
			related = fixtures.pod "web-1", action = "Start", annotations = { a = "b" }, labels = { c = "d" },
		}
		local r = s.broadcaster:new_recorder { component = "c", labels = { c = "of the recorder", e = "f" } }
		local prepared = r:prepare(what)
		local function nameless()
			local event = s.last():to_table()
			event.metadata.name = nil
			return event
		end
		assert.is_true(r:emit(what))
		local expected = nameless()
		assert.same({ c = "d", e = "f" }, expected.metadata.labels)
		assert.is_true(prepared:record())
		assert.same(expected, nameless())
		what.note, what.labels.c = "changed later", "changed later"
		assert.is_true(prepared:record())
		assert.same(expected, nameless())
		s.broadcaster:poll()
		assert.equal(1, #s.server.writes)
		assert.equal(3, s.server.writes[1].event.count)
	end)

	it("happens when it is recorded", function()
		local s = fixtures.recording()
		local prepared = s.recorder:prepare(fields())
		assert.equal(0, s.broadcaster:stats().recorded)
		s.clock:advance(60)
		assert.is_true(prepared:record())
		assert.equal("2023-11-14T22:14:20Z", s.last().lastTimestamp)
	end)

	it("may have another message for once", function()
		local s = fixtures.recording()
		local prepared = s.recorder:prepare(fields())
		for _, message in ipairs { "another", "", "bytes: \255" } do
			assert.is_true(prepared:record(message))
			assert.equal((message:gsub("\255", "\239\191\189")), s.last().message or "")
		end
		assert.is_true(prepared:record(nil))
		assert.equal("Started container", s.last().message)
		local ok, message, name = prepared:record({})
		assert.is_nil(ok)
		assert.equal("message: expected a string, got table", message)
		assert.equal("invalid", name)
		assert.equal(1, s.broadcaster:stats().invalid)
	end)

	it("that is recorded in turns with others is counted", function()
		local s = fixtures.setup()
		local one, other = s.recorder:prepare(fields()), s.recorder:prepare(fields { reason = "Pulled" })
		for _ = 1, 5 do
			assert.is_true(one:record())
			assert.is_true(other:record())
		end
		s.broadcaster:poll()
		assert.equal(2, #s.server.writes)
		assert.equal(5, s.server.writes[1].event.count)
		assert.equal(5, s.server.writes[2].event.count)
	end)

	it("may be recorded in a coroutine, and in a callback of its own", function()
		local s = fixtures.recording()
		local prepared = s.recorder:prepare(fields())
		local inside = 0
		s.broadcaster:start_event_watcher(function()
			inside = inside + 1
			if inside < 3 then
				assert(prepared:record())
			end
		end)
		assert.is_true(coroutine.wrap(function() return prepared:record() end)())
		s.broadcaster:poll()
		assert.equal(3, inside)
		assert.equal(3, s.broadcaster:stats().recorded)
		assert.equal("closed", select(3, (function()
			s.broadcaster:shutdown(0)
			return coroutine.wrap(function() return prepared:record() end)()
		end)()))
	end)

	it("is refused after shutdown", function()
		local s = fixtures.setup()
		local prepared = s.recorder:prepare(fields())
		s.broadcaster:shutdown(0)
		for _, message in ipairs { false, "another" } do
			local ok, why, name = prepared:record(message or nil)
			assert.is_nil(ok)
			assert.equal("the broadcaster is shut down", why)
			assert.equal("closed", name)
		end
		assert.equal("closed", select(3, s.recorder:prepare(fields()):record()))
	end)

	it("keeps its recorder", function()
		fixtures.interpret()
		local server, seen = fixtures.server(), setmetatable({}, { __mode = "v" })
		local prepared
		do
			local b = evrec.broadcaster { clock = evrec.fake_clock(fixtures.now), on_error = false }
			b:start_recording_to_sink(server.sink)
			seen[1] = b:new_recorder()
			prepared = seen[1]:prepare(fields())
			seen[2] = b
		end
		for _ = 1, 4 do
			collectgarbage()
		end
		assert.truthy(seen[1])
		assert.is_true(prepared:record())
		assert.is_true(prepared:record("another"))
		seen[2]:poll()
		assert.equal(2, #server.writes)
		prepared = nil
		for _ = 1, 4 do
			collectgarbage()
		end
		assert.is_nil(seen[1])
		assert.is_nil(prepared)
	end)
end)

describe("prepare", function()
	local s

	before_each(function() s = fixtures.setup() end)

	local function raises(part, what)
		local ok, message = pcall(s.recorder.prepare, s.recorder, what)
		assert.is_false(ok)
		assert.truthy(fixtures.has(message, part), message)
	end

	it("raises for a wrong field, and names it", function()
		raises("recorder:prepare: unknown field 'reasn': did you mean 'reason'?", fields { reasn = "x" })
		raises("recorder:prepare: object: expected an object or a reference, got number", fields { regarding = 5 })
		raises("recorder:prepare: regarding.kind: must not be empty", fields { regarding = { name = "x" } })
		raises("recorder:prepare: related.kind: must not be empty", fields { related = { name = "x" } })
		raises('recorder:prepare: type: expected "Normal" or "Warning", got "normal"', fields { type = "normal" })
		raises("recorder:prepare: reason: must not be empty", fields { reason = "" })
		raises("recorder:prepare: action: not valid UTF-8", fields { action = "\255" })
		raises("recorder:prepare: note: expected a string, got table", fields { note = {} })
		raises("recorder:prepare: labels", fields { labels = 5 })
		raises("recorder:prepare: annotations", fields { annotations = { 5 } })
		raises("recorder:prepare: timestamp: ", fields { timestamp = fixtures.now })
		raises("table expected", nil)
		assert.equal(0, s.broadcaster:stats().recorded)
	end)

	it("of a dot for a colon is told as such", function()
		local ok, message = pcall(s.recorder.prepare, fields())
		assert.is_false(ok)
		assert.truthy(fixtures.has(message, "called with '.', use ':'"), message)
		local prepared = s.recorder:prepare(fields())
		for _, self in ipairs { pod, 5, "x", io.stdout, s.recorder, s.broadcaster, s.watch, s.clock, s.server.sink,
			evrec.correlator(), evrec.reference(pod), evrec.event {} } do
			local done, why, name = prepared.record(self)
			assert.is_nil(done)
			assert.equal("called with '.', use ':', as in prepared:record()", why)
			assert.equal("invalid", name)
		end
		assert.is_nil(prepared.record())
	end)
end)
