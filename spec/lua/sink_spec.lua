local evrec = require "evrec"
local cjson = require "cjson"
local fixtures = require "fixtures"

local pod = fixtures.pod()

describe("evrec.sink.lua", function()
	local s
	before_each(function() s = fixtures.setup() end)

	-- Checks that the equations of the counters hold, after every step.
	local function check()
		assert.is_nil(fixtures.fault(s.broadcaster:stats()))
		assert.is_nil(fixtures.sink_fault(s.watch:stats()))
	end

	local function record(message, name)
		assert.is_true(s.recorder:event(fixtures.pod(name), "Normal", "R", message or "m"))
		check()
	end

	local function poll()
		s.broadcaster:poll()
		check()
	end

	it("creates an event, then patches it", function()
		record()
		poll()
		s.clock:advance(60)
		record()
		poll()
		local writes = s.server.writes
		assert.equal(2, #writes)
		assert.equal("create", writes[1].verb)
		assert.is_nil(writes[1].patch)
		assert.equal("patch", writes[2].verb)
		assert.equal(writes[1].name, writes[2].name)
		assert.equal(2, writes[2].event.count)
		assert.same({ count = 2, lastTimestamp = "2023-11-14T22:14:20Z", message = "m" }, cjson.decode(writes[2].patch))
		local stats = s.watch:stats()
		assert.equal("lua", stats.name)
		assert.equal(1, stats.created)
		assert.equal(1, stats.patched)
		assert.equal(0, stats.pending)
	end)

	it("folds occurrences into a waiting write", function()
		for _ = 1, 5 do
			record()
		end
		poll()
		assert.equal(1, #s.server.writes)
		assert.equal(5, s.server.writes[1].event.count)
		local stats = s.watch:stats()
		assert.equal(1, stats.created)
		assert.equal(4, stats.coalesced)
		assert.equal(4, s.broadcaster:stats().coalesced)
	end)

	it("uses the name and resource version of the stored event", function()
		s.server.answers[1] = function() return { metadata = { name = "renamed", resourceVersion = "9" } } end
		record()
		poll()
		record()
		poll()
		assert.equal("renamed", s.server.writes[2].name)
		assert.equal("9", s.server.writes[2].event.metadata.resourceVersion)
	end)

	it("ignores a name that no C string holds", function()
		s.server.answers[1] = function() return { metadata = { name = "web-0\0x" } } end
		record()
		poll()
		record()
		poll()
		assert.equal(s.server.writes[1].name, s.server.writes[2].name)
	end)

	it("counts any true result, and no result, as success", function()
		for i, answer in ipairs { function() return true end, function() return 5 end, function() return "x" end,
			function() end, function() return { metadata = 5 } end, function() return { metadata = { name = {} } } end } do
			s.server.answers[1] = answer
			record("m", "pod-" .. i)
			poll()
			assert.equal(i, s.watch:stats().created)
		end
	end)

	it("retries after a 429, when its Retry-After has passed", function()
		s.server.answers[1] = function() return nil, 429, 7 end
		record()
		poll()
		local stats = s.watch:stats()
		assert.equal(1, #s.server.writes)
		assert.equal(1, stats.pending)
		s.clock:advance(6.9)
		poll()
		assert.equal(1, #s.server.writes)
		record()
		s.clock:advance(60)
		poll()
		assert.equal(2, #s.server.writes)
		assert.equal(2, s.server.writes[2].event.count)
		stats = s.watch:stats()
		assert.equal(0, stats.pending)
		assert.equal(1, stats.created)
		assert.equal(1, stats.coalesced)
		assert.equal(1, stats.retries)
	end)

	it("waits for 5 minutes at most, also if it is told to wait for ever", function()
		for _, seconds in ipairs { 301, 9e9, 1e10, math.huge } do
			s = fixtures.setup()
			s.server.answers[1] = function() return nil, 429, seconds end
			record()
			poll()
			assert.equal(300, s.broadcaster:stats().sinks[1].throttle.paused_for)
		end
	end)

	it("pauses as a whole after a 429, until the Retry-After has passed", function()
		local unthrottled = { window = 1, rate = 0, paused_for = 0, refused = 0 }
		assert.same(unthrottled, s.broadcaster:stats().sinks[1].throttle)
		s.server.answers[1] = function() return nil, 429, 7 end
		for i = 1, 3 do
			record("m", "pod-" .. i)
		end
		poll()
		assert.equal(1, #s.server.writes)
		assert.equal(3, s.watch:stats().pending)
		assert.same({ window = 0, rate = 0, paused_for = 7, refused = 1 }, s.broadcaster:stats().sinks[1].throttle)
		s.clock:advance(6.9)
		poll()
		assert.equal(1, #s.server.writes)
		assert.near(0.1, s.broadcaster:stats().sinks[1].throttle.paused_for, 1e-9)
		s.clock:advance(0.1)
		poll()
		assert.equal(4, #s.server.writes)
		assert.equal(3, s.watch:stats().created)
		assert.same({ window = 1, rate = 0, paused_for = 0, refused = 1 }, s.watch:stats().throttle)
	end)

	it("retries after other temporary failures", function()
		for _, answer in ipairs { { nil, 503 }, { nil, 500 }, { nil }, { nil, "connection refused" }, { false },
			{ nil, 0 / 0 }, { nil, 1 / 0 }, { nil, -5 }, { nil, 200 }, { nil, {} }, { nil, 429, -1 }, { nil, 429, "x" } } do
			s = fixtures.setup()
			s.server.answers[1] = function() return (table.unpack or unpack)(answer, 1, 3) end
			record()
			poll()
			assert.equal(1, s.watch:stats().pending)
			s.clock:advance(3600)
			poll()
			assert.equal(2, #s.server.writes)
			assert.equal(1, s.watch:stats().created)
		end
	end)

	it("drops an event that is refused for good, with the cause", function()
		local causes = {
			[400] = "rejected", [422] = "rejected", [410] = "rejected", [403] = "forbidden", [404] = "not_found",
		}
		for status, cause in pairs(causes) do
			local errors, drops = {}, {}
			s = fixtures.setup {
				on_error = function(message, name) errors[#errors + 1] = { message, name } end,
				on_drop = function(event, why) drops[#drops + 1] = event.message .. " " .. why end,
			}
			s.server.answers[1] = function() return nil, status end
			record()
			record()
			poll()
			assert.equal(2, s.watch:stats().dropped[cause])
			assert.same({ "m " .. cause }, drops)
			assert.equal(1, #errors)
			assert.truthy(errors[1][1]:find(tostring(status), 1, true))
		end
	end)

	it("creates an event anew if a patch finds it deleted", function()
		record()
		poll()
		s.server.answers[1] = function() return nil, 404 end
		record()
		poll()
		poll()
		assert.equal(3, #s.server.writes)
		assert.equal("create", s.server.writes[3].verb)
		assert.equal(2, s.server.writes[3].event.count)
	end)

	it("counts a function that raises as a failure of the server, and reports it", function()
		local errors = {}
		s = fixtures.setup { on_error = function(message, name) errors[#errors + 1] = name .. " " .. message end }
		s.server.answers[1] = function() error("boo") end
		record()
		poll()
		assert.equal(1, s.broadcaster:stats().callback_errors)
		assert.equal(1, s.watch:stats().pending)
		assert.truthy(errors[1]:find("callback create: ", 1, true), errors[1])
		s.clock:advance(3600)
		poll()
		assert.equal(1, s.watch:stats().created)
	end)

	it("counts a function that yields as a failure of the server, too", function()
		s.server.answers[1] = function() coroutine.yield() end
		record()
		coroutine.wrap(poll)()
		assert.equal(1, s.broadcaster:stats().callback_errors)
		assert.equal(1, s.watch:stats().pending)
	end)

	it("calls update without a function patch, and create without both", function()
		for _, functions in ipairs { { "create", "update" }, { "create" } } do
			local calls = {}
			local options = {}
			for _, name in ipairs(functions) do
				options[name] = function(event, patch) calls[#calls + 1] = { name, event.count, patch } end
			end
			s = fixtures.setup()
			s.watch:stop()
			s.broadcaster:start_recording_to_sink(evrec.sink.lua(options))
			record()
			poll()
			record()
			poll()
			assert.same({ { "create", 1 }, { functions[#functions], 2 } }, calls)
		end
	end)

	it("lets max_pending writes wait", function()
		local drops = 0
		local clock = evrec.fake_clock(fixtures.now)
		local b = evrec.broadcaster { clock = clock, on_error = false, on_drop = function() drops = drops + 1 end }
		local watch = b:start_recording_to_sink(evrec.sink.lua { create = function() end, max_pending = 3 })
		local r = b:new_recorder()
		for i = 1, 5 do
			assert.is_true(r:event(fixtures.pod("pod-" .. i), "Normal", "R", "m"))
		end
		assert.is_true(r:event(fixtures.pod("pod-1"), "Normal", "R", "m"))
		local stats = watch:stats()
		assert.equal(2, stats.dropped.queue_full)
		assert.equal(2, drops)
		assert.equal(4, stats.pending)
		assert.equal(3, stats.pending_writes)
		b:poll()
		assert.equal(3, watch:stats().created)
		assert.is_nil(fixtures.fault(b:stats()))
	end)

	it("may record events, which are written later", function()
		local inner
		s.server.answers[1] = function()
			inner = { s.recorder:event(fixtures.pod("inner"), "Normal", "R", "from the sink") }
		end
		record()
		poll()
		assert.is_true(inner[1])
		poll()
		assert.equal(2, #s.server.writes)
		assert.equal("from the sink", s.server.writes[2].event.message)
	end)

	it("can be used by several broadcasters", function()
		local server = fixtures.server()
		for i = 1, 2 do
			local b = evrec.broadcaster { clock = s.clock, on_error = false }
			b:start_recording_to_sink(server.sink)
			b:new_recorder():event(fixtures.pod("pod-" .. i), "Normal", "R", "m")
			b:poll()
		end
		assert.equal(2, #server.writes)
	end)

	it("keeps its counters consistent under random answers", function()
		local random = fixtures.random()
		local statuses = { 400, 401, 403, 404, 408, 409, 410, 413, 422, 429, 500, 503, 0 }
		for _ = 1, 30 do
			s = fixtures.setup { correlator = { burst_size = 5, max_events = 3 } }
			for _ = 1, 60 do
				if random(3) == 1 then
					local status, after = statuses[random(#statuses)], random(20)
					table.insert(s.server.answers, function() return nil, status, after end)
				end
				if random(2) == 1 then
					record("m" .. random(5), "pod-" .. random(4))
				end
				if random(3) == 1 then
					poll()
				end
				if random(4) == 1 then
					s.clock:advance(random(200))
				end
			end
			s.broadcaster:shutdown(0)
			check()
			assert.equal(0, s.watch:stats().pending)
		end
	end)
end)

describe("evrec.sink.file", function()
	local path
	before_each(function() path = os.tmpname() end)
	after_each(function() os.remove(path) end)

	local function lines()
		local list = {}
		for line in io.lines(path) do
			list[#list + 1] = cjson.decode(line)
		end
		return list
	end

	it("appends a line of JSON for each write", function()
		local clock = evrec.fake_clock(fixtures.now)
		local b = evrec.broadcaster { clock = clock, on_error = false }
		local watch = b:start_recording_to_sink(evrec.sink.file { path = path })
		local r = b:new_recorder { component = "spec" }
		assert.is_true(r:event(pod, "Normal", "R", "a\n\27\255"))
		assert.is_true((b:flush()))
		assert.is_true(r:event(pod, "Normal", "R", "a\n\27\255"))
		assert.is_true((b:shutdown()))
		local written = lines()
		assert.equal(2, #written)
		assert.equal("a\n\27\239\191\189", written[1].message)
		assert.equal(1, written[1].count)
		assert.equal(2, written[2].count)
		assert.equal(written[1].metadata.name, written[2].metadata.name)
		assert.equal("file", watch:stats().name)
		assert.is_nil(fixtures.fault(b:stats()))
	end)

	it("keeps the former contents of the file", function()
		local file = io.open(path, "w")
		file:write("{}\n")
		file:close()
		local b = evrec.broadcaster { on_error = false }
		b:start_recording_to_sink(evrec.sink.file { path = path })
		b:new_recorder():event(pod, "Normal", "R", "m")
		assert.is_true((b:shutdown()))
		assert.equal(2, #lines())
	end)

	it("opens nothing before the first write", function()
		os.remove(path)
		local b = evrec.broadcaster { on_error = false }
		b:start_recording_to_sink(evrec.sink.file { path = path })
		assert.is_true((b:shutdown()))
		assert.is_nil(io.open(path))
	end)

	it("reports a file that it cannot write", function()
		local errors = {}
		local b = evrec.broadcaster { on_error = function(message) errors[#errors + 1] = message end }
		b:start_recording_to_sink(evrec.sink.file { path = path .. "/none" })
		b:new_recorder():event(pod, "Normal", "R", "m")
		fixtures.flush_until(b, function() return #errors ~= 0 end)
		b:shutdown(0.05)
		assert.truthy(#errors >= 1)
		assert.equal(0, b:stats().pending)
		assert.is_nil(fixtures.fault(b:stats()))
	end)
end)

describe("a sink's name", function()
	local path = os.tmpname()

	after_each(function() os.remove(path) end)

	local function started(sink)
		local errors = {}
		local b = evrec.broadcaster { on_error = function(message) errors[#errors + 1] = message end }
		return b, b:start_recording_to_sink(sink), errors
	end

	it("is its kind by default", function()
		for kind, sink in pairs {
			lua = fixtures.server().sink, file = evrec.sink.file { path = path },
			kubernetes = evrec.sink.kubernetes { server = "http://127.0.0.1:9" },
		} do
			local b, watch = started(sink)
			assert.equal(kind, watch:stats().name)
			assert.equal(kind, b:stats().sinks[1].name)
		end
	end)

	it("is shown by stats, explain, metrics and messages", function()
		local name = ("x"):rep(62) .. "y"
		for _, sink in ipairs {
			evrec.sink.lua { create = function() return nil, 422 end, name = name },
			evrec.sink.file { path = path .. "/none", name = name },
			evrec.sink.kubernetes { server = "http://127.0.0.1:9", name = name },
		} do
			collectgarbage()
			local b, watch, errors = started(sink)
			b:new_recorder():event(pod, "Normal", "R", "m")
			fixtures.flush_until(b, function() return #errors ~= 0 end)
			assert.equal(name .. ": ", errors[1]:sub(1, 65))
			assert.equal(name, b:stats().sinks[1].name)
			assert.equal(name, b:explain()[1].name)
			assert.truthy(fixtures.has(b:metrics(), ('{sink="1",name="%s"}'):format(name)))
			assert.equal(name, watch:stats().name)
		end
	end)

	it("stays when the sink was stopped and forgotten", function()
		local b, watch = started(evrec.sink.lua { create = print, name = "audit" })
		watch:stop()
		b:poll()
		collectgarbage()
		assert.equal(0, #b:stats().sinks)
		assert.equal("audit", watch:stats().name)
	end)

	it("has at most 63 bytes of UTF-8", function()
		for _, name in ipairs { ("x"):rep(64), "\255", "a\0b", 5, {} } do
			for what, make in pairs {
				["evrec.sink.lua"] = function() evrec.sink.lua { create = print, name = name } end,
				["evrec.sink.file"] = function() evrec.sink.file { path = path, name = name } end,
				["evrec.sink.kubernetes"] = function() evrec.sink.kubernetes { server = "http://127.0.0.1:9", name = name } end,
			} do
				local ok, message = pcall(make)
				assert.is_false(ok)
				assert.truthy(fixtures.has(message, what .. ": option 'name': "), message)
			end
		end
		assert.truthy(evrec.sink.file { path = path, name = "" })
	end)
end)
