-- The end of a broadcaster whose server does not answer: results, time, and the spool.
local evrec = require "evrec"
local fixtures = require "fixtures"

local pod = fixtures.pod()

describe("an end while the server does not answer", function()
	local server, spool, errors
	setup(function() server = fixtures.mute_server() end)
	teardown(function() server.stop() end)
	before_each(function()
		spool = os.tmpname()
		os.remove(spool)
	end)
	after_each(function()
		os.execute(("rm -rf %s %s.lock"):format(spool, spool))
	end)

	--- Makes a broadcaster with a Kubernetes sink, and a recorder. `others` are further options of the sink.
	local function start(others, drive)
		local options = { server = server.url }
		for name, value in pairs(others or {}) do
			options[name] = value
		end
		errors = {}
		local b = evrec.broadcaster {
			drive = drive, on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end,
		}
		b:start_recording_to_sink(evrec.sink.kubernetes(options))
		return b, b:new_recorder { component = "ending" }
	end

	--- Flushes until the sink has taken up `n` events from the spool, for 90 s at most: a broadcaster that was collected
	--- keeps the file of its events for 30 s, and the sink looks every 3 s. Returns the last results of flush.
	local function flush_until_restored(b, n)
		local deadline = os.time() + 90
		local ok, stats = b:flush(0.05)
		while stats.restored < n and os.time() < deadline do
			os.execute "sleep 0.1"
			ok, stats = b:flush(0.05)
		end
		assert.equal(n, stats.restored)
		return ok, stats
	end

	local function seconds_of(f)
		local before = os.time()
		f()
		return os.time() - before
	end

	it("makes flush and shutdown return false within their timeouts", function()
		local b, r = start()
		r:event(pod, "Normal", "R", "m")
		assert.is_true(seconds_of(function()
			local ok, stats = b:flush(0.1)
			assert.is_false(ok)
			assert.equal(1, stats.pending)
			assert.is_nil(fixtures.fault(stats))
			ok, stats = b:shutdown(0.1)
			assert.is_false(ok)
			assert.equal(0, stats.pending)
			assert.equal(1, stats.dropped.closed)
			assert.is_nil(fixtures.fault(stats))
		end) < 5)
		local ok, message, name = r:event(pod, "Normal", "R", "m")
		assert.is_nil(ok)
		assert.equal("string", type(message))
		assert.equal("closed", name)
		assert.equal(1, b:stats().refused.closed)
		assert.is_false((b:shutdown(0)))
	end)

	it("does not make the collector wait", function()
		fixtures.interpret()
		for _, case in ipairs { {}, { { spool = spool } }, { {}, "poll" } } do
			local b, r = start(case[1], case[2])
			r:event(pod, "Normal", "R", "m")
			b:poll()
			local seen = setmetatable({ b }, { __mode = "v" })
			b, r = nil, nil -- luacheck: ignore
			assert.is_true(seconds_of(function()
				for _ = 1, 4 do
					collectgarbage()
				end
			end) < 5)
			assert.is_nil(seen[1])
		end
		-- The second broadcaster ends in the background, and leaves its event in the spool.
		local b = start { spool = spool }
		flush_until_restored(b, 1)
		b:shutdown(0.1)
	end)

	--- Runs a script that records ten events, and then executes `ending`. Returns its output and exit code.
	local function run(ending, options)
		local path = os.tmpname()
		local file = assert(io.open(path, "w"))
		file:write(([[
			local evrec = require "evrec"
			local b = evrec.broadcaster { on_error = false }
			b:start_recording_to_sink(evrec.sink.kubernetes { server = %q, %s })
			local r = b:new_recorder { component = "exit" }
			for i = 1, 10 do
				assert(r:event({ kind = "ConfigMap", name = "exit-" .. i }, "Normal", "Exit", "m"))
			end
			%s
		]]):format(server.url, options, ending))
		file:close()
		local pipe = assert(io.popen(fixtures.lua .. " " .. path .. " 2>&1; echo \"exit=$?\""))
		local output = pipe:read "*a"
		pipe:close()
		os.remove(path)
		return output
	end

	it("delays exit by 2 s, and prints nothing", function()
		assert.is_true(seconds_of(function() assert.equal("exit=0\n", run("os.exit(0)", "")) end) < 8)
	end)

	it("leaves unwritten events in the spool, for the next sink", function()
		local b, r = start { spool = spool }
		assert.is_nil(io.open(spool))
		r:event(pod, "Normal", "R", "m")
		r:event(pod, "Normal", "R", "m")
		r:event(pod, "Normal", "R", "another")
		local ok, stats = b:shutdown(0.1)
		assert.is_false(ok)
		assert.equal(3, stats.spooled)
		assert.equal(0, stats.dropped.closed)
		assert.is_nil(fixtures.fault(stats))
		assert.same({}, errors)
		for _, drive in ipairs { "auto", "poll" } do
			b = start({ spool = spool }, drive)
			ok, stats = flush_until_restored(b, 3)
			assert.is_false(ok)
			assert.equal(3, stats.pending)
			assert.equal(0, stats.recorded)
			assert.equal(3, stats.sinks[1].received)
			assert.is_nil(fixtures.fault(stats))
			assert.truthy(fixtures.has(b:metrics(), 'evrec_sink_restored_total{sink="1",name="kubernetes"} 3'))
			ok, stats = b:shutdown(0.1)
			assert.is_false(ok)
			assert.equal(3, stats.spooled)
		end
	end)

	it("leaves unwritten events in the spool at exit, and if the broadcaster was collected", function()
		local n = 0
		local collected = "b, r = nil, nil collectgarbage() collectgarbage()"
		for _, ending in ipairs { "os.exit(0)", "os.exit(0, true)", collected } do
			assert.equal("exit=0\n", run(ending, ("spool = %q"):format(spool)))
			n = n + 10
			local b = start { spool = spool }
			flush_until_restored(b, n)
			assert.equal(n, select(2, b:shutdown(0.1)).spooled)
		end
	end)

	it("keeps what two sinks with one spool could not write", function()
		local first, r = start { spool = spool }
		local told = errors
		-- Its thread has begun, and has read the spool.
		assert.is_true((first:flush(30)))
		r:event(pod, "Normal", "R", "m")
		local second = start({ spool = spool }, "poll")
		second:new_recorder():event(pod, "Normal", "R", "m")
		assert.equal(1, select(2, second:shutdown(0.1)).spooled)
		local _, stats = first:shutdown(0.1)
		-- If three seconds have gone by, it reads the spool again.
		assert.equal(1 + stats.restored, stats.spooled)
		assert.same({}, told)
		assert.same({}, errors)
	end)

	it("reports a spool that is no database, and the sink goes on without it", function()
		local file = assert(io.open(spool, "w"))
		file:write(("not a database "):rep(100))
		file:close()
		local b, r = start { spool = spool }
		assert.is_true(r:event(pod, "Normal", "R", "m"))
		fixtures.flush_until(b, function() return #errors ~= 0 end)
		local _, stats = b:shutdown(0.2)
		assert.equal(1, stats.dropped.closed)
		assert.equal("spool: kubernetes: the sink goes on without its spool: " .. spool .. ": file is not a database",
			errors[1])
	end)

	it("is preceded by a check that the spool is the name of a folder", function()
		assert.has_error(function() start { spool = 1 } end,
			"evrec.sink.kubernetes: option 'spool': expected a string or a table, got number")
		assert.has_error(function() start { spool = "a\0b" } end,
			"evrec.sink.kubernetes: option 'spool': must be the name of a folder")
	end)
end)

describe("a deadline for a slow sink in Lua", function()
	local b, r, seconds

	local function record(n)
		for i = 1, n do
			assert.is_true(r:event(fixtures.pod("pod-" .. i), "Normal", "R", "m"))
		end
	end

	before_each(function()
		b = evrec.broadcaster { on_error = false }
		b:start_recording_to_sink(evrec.sink.lua {
			create = function()
				local clock = evrec.clock()
				local start = clock:now()
				while clock:now() - start < seconds do end -- luacheck: ignore 542
			end,
		})
		r = b:new_recorder {}
	end)

	it("ends flush and shutdown between two writes", function()
		seconds = 0.002
		record(50)
		local ok, stats = b:flush(0.009)
		assert.is_false(ok)
		assert.is_true(stats.created >= 1 and stats.created <= 5, stats.created)
		assert.equal(50 - stats.created, stats.pending)
		local created = stats.created
		ok, stats = b:shutdown(0.009)
		assert.is_false(ok)
		assert.is_true(stats.created > created and stats.created <= created + 5, stats.created - created)
		assert.equal(0, stats.pending)
		assert.equal(50 - stats.created, stats.dropped.closed)
		assert.is_nil(fixtures.fault(stats))
	end)

	it("does not end poll, nor flush and shutdown with a timeout of 0", function()
		seconds = 0.0002
		for i, method in ipairs { "poll", "flush", "shutdown" } do
			record(20)
			assert.is_true((b[method](b, method ~= "poll" and 0 or nil)))
			assert.equal(20 * i, b:stats().created + b:stats().patched)
		end
	end)
end)
