-- The option state_file: a sink's correlator counts on after a restart.
local evrec = require "evrec"
local fixtures = require "fixtures"

describe("a state file", function()
	local path
	before_each(function()
		path = os.tmpname()
	end)
	after_each(function()
		os.remove(path)
		os.remove(path .. ".lock")
	end)

	--- A process that records with a sink of these options and is shut down. `now` is a clock, or the time of a fake one.
	--- Returns the writes that the sink got, and what on_error was told.
	local function live(now, names, options)
		local writes, errors = {}, {}
		options = options or {}
		local sink = evrec.sink.lua {
			state_file = path, correlate = options.correlate, rate_limit = options.rate_limit,
			create = function(event)
				writes[#writes + 1] = { verb = "create", name = event.metadata.name, count = event.count }
			end,
			patch = function(event, patch)
				writes[#writes + 1] = { verb = "patch", name = event.metadata.name, count = event.count, patch = patch }
			end,
		}
		local broadcaster = evrec.broadcaster {
			clock = type(now) == "number" and evrec.fake_clock(now) or now,
			on_error = function(message, name) errors[#errors + 1] = { message = message, name = name } end,
		}
		broadcaster:start_recording_to_sink(sink, options.correlator and { correlator = options.correlator })
		local recorder = broadcaster:new_recorder { component = "spec" }
		for _, name in ipairs(names) do
			assert.is_true(recorder:event(fixtures.pod(name), "Warning", "BackOff", "restarting failed container"))
			broadcaster:poll()
		end
		assert.is_true(broadcaster:shutdown(10))
		return writes, errors
	end

	it("makes a crash loop over restarts one event", function()
		local now, event = fixtures.now, nil
		for count = 1, 5 do
			local writes, errors = live(now, { "web-0" })
			assert.same({}, errors)
			assert.equal(1, #writes)
			event = event or writes[1].name
			assert.equal(event, writes[1].name)
			assert.equal(count == 1 and "create" or "patch", writes[1].verb)
			assert.equal(count, writes[1].count)
			now = now + 300
		end
	end)

	it("counts what had no token, and gives no new tokens", function()
		local names = {}
		for i = 1, 30 do
			names[i] = "web-0"
		end
		assert.equal(25, #live(fixtures.now, names))
		assert.equal(0, #live(fixtures.now + 1, names))
		local writes = live(fixtures.now + 301, { "web-0" })
		assert.equal(1, #writes)
		assert.equal(61, writes[1].count)
	end)

	--- A life of a day later under the fake clock uses up the tokens. In one under the real clock they come again.
	local function check_tokens_come_again(options)
		local ahead, before = os.time() + 86400, os.time()
		assert.equal(1, #live(ahead, { "web-0" }, options))
		assert.equal(0, #live(ahead, { "web-1" }, options))
		options.correlator.qps = 1000
		local writes
		repeat
			writes = live(evrec.clock(), { "web-1" }, options)
		until #writes ~= 0 or os.time() > before + 10
		assert.equal(1, #writes)
	end

	it("that a clock ahead of its time has left holds no tokens up", function()
		local function spam_key() return "all" end
		for _, correlate in ipairs { "core", "series" } do
			os.remove(path)
			check_tokens_come_again {
				correlate = correlate ~= "core" and correlate or nil, rate_limit = correlate == "series" or nil,
				correlator = { burst_size = 1, spam_key_func = spam_key },
			}
		end
	end)

	it("that is damaged is told and replaced", function()
		live(fixtures.now, { "web-0" })
		local file = assert(io.open(path, "r+b"))
		file:seek("set", 30)
		file:write("XX")
		file:close()
		local writes, errors = live(fixtures.now, { "web-0" })
		assert.equal(1, writes[1].count)
		assert.equal(1, #errors)
		assert.equal("state", errors[1].name)
		assert.truthy(errors[1].message:find("damaged", 1, true))
		writes, errors = live(fixtures.now, { "web-0" })
		assert.equal(2, writes[1].count)
		assert.same({}, errors)
	end)

	it("of another sink is told once", function()
		local errors = {}
		local broadcaster = evrec.broadcaster {
			on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end,
		}
		local create = function() end
		broadcaster:start_recording_to_sink(evrec.sink.lua { state_file = path, create = create })
		broadcaster:start_recording_to_sink(evrec.sink.lua { state_file = path, create = create, name = "second" })
		local recorder = broadcaster:new_recorder { component = "spec" }
		for _ = 1, 5 do
			assert.is_true(recorder:event(fixtures.pod(), "Normal", "Started", "started"))
			broadcaster:poll()
		end
		assert.is_true(broadcaster:shutdown(10))
		assert.equal(1, #errors)
		assert.truthy(errors[1]:find("^state: second: .*in use by another process or sink"))
	end)

	it("does not count back what a spool has", function()
		local counts, up = {}, true
		local function begin(now)
			local write = function(event)
				if not up then
					return nil, 503
				end
				counts[#counts + 1] = event.count
			end
			local broadcaster = evrec.broadcaster { clock = evrec.fake_clock(now), on_error = function() end }
			broadcaster:start_recording_to_sink(evrec.sink.lua {
				state_file = path, spool = path .. ".spool", create = write, patch = write,
			})
			return broadcaster, broadcaster:new_recorder { component = "spec" }
		end
		local broadcaster, recorder = begin(fixtures.now)
		recorder:event(fixtures.pod(), "Normal", "Started", "started")
		broadcaster:poll()
		up = false
		recorder:event(fixtures.pod(), "Normal", "Started", "started")
		broadcaster:shutdown(0)
		up = true
		broadcaster, recorder = begin(fixtures.now + 10)
		recorder:event(fixtures.pod(), "Normal", "Started", "started")
		assert.is_true(broadcaster:flush(10))
		assert.is_true(broadcaster:shutdown(10))
		os.remove(path .. ".spool")
		assert.same({ 1, 2, 3 }, counts)
	end)

	--- The first process leaves a create in the spool, the second one makes it, and leaves the next count there.
	it("makes no second event of a count that two processes leave in a spool", function()
		local events, left = {}, 0
		local function create(event)
			local name = event.metadata.name
			if left == 0 then
				return nil, 429
			elseif events[name] then
				return nil, 409
			end
			left = left - 1
			events[name] = event.series and event.series.count or 1
		end
		local function patch(event)
			if left == 0 then
				return nil, 429
			elseif not events[event.metadata.name] then
				return nil, 404
			end
			events[event.metadata.name] = event.series.count
		end
		for life, takes in ipairs { 0, 1, 10 } do
			left = takes
			local broadcaster = evrec.broadcaster { clock = evrec.fake_clock(fixtures.now + life), on_error = false }
			broadcaster:start_recording_to_sink(evrec.sink.lua {
				correlate = "series", state_file = path, spool = path .. ".spool", create = create, patch = patch,
			})
			local recorder = broadcaster:new_recorder { component = "spec" }
			if life < 3 then
				assert.is_true(recorder:event(fixtures.pod(), "Normal", "Started", "started"))
			end
			fixtures.flush_until(broadcaster, function() return left == 0 or life == 3 end)
			broadcaster:flush(life == 3 and 10 or 0)
			broadcaster:shutdown(0.05)
		end
		os.execute(("rm -rf '%s.spool'"):format(path))
		local counts = {}
		for _, count in pairs(events) do
			counts[#counts + 1] = count
		end
		assert.same({ 2 }, counts)
	end)

	it("is an option of every sink", function()
		evrec.sink.file { path = "-", state_file = path }
		evrec.sink.kubernetes { server = "https://127.0.0.1:1", token = "t", state_file = path }
		for _, value in ipairs { 5, true, {} } do
			assert.has_error(function() evrec.sink.file { path = "-", state_file = value } end)
		end
		assert.has_error(function() evrec.sink.file { path = "-", state_file = "a\0b" } end)
	end)
end)
