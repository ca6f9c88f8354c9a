-- How it ends, above all where the server says nothing: reports, time, and the spool.
local evrec = require "evrec"
local fixtures = require "fixtures"

local pod = fixtures.pod()
local lua = _G.jit and "luajit" or ("lua" .. _VERSION:match "%d%.%d")

--- A server that takes connections and says nothing, for a minute at most.
local function mute_server()
	local script = "import os, socket, time; s = socket.create_server((\"127.0.0.1\", 0)); "
		.. "print(s.getsockname()[1], os.getpid(), flush=True); time.sleep(60)"
	local pipe = assert(io.popen("exec " .. fixtures.python .. "-c '" .. script .. "'"))
	local port, pid = pipe:read("*l"):match "^(%d+) (%d+)$"
	return {
		url = "http://127.0.0.1:" .. port,
		stop = function()
			os.execute("kill " .. pid)
			pipe:close()
		end,
	}
end

describe("an end that the server does not hear of", function()
	local server, spool, errors
	setup(function() server = mute_server() end)
	teardown(function() server.stop() end)
	before_each(function()
		spool = os.tmpname()
		os.remove(spool)
	end)
	after_each(function()
		os.remove(spool)
		os.remove(spool .. "-journal")
	end)

	--- `others`: more options of the sink.
	local function start(others)
		local options = { server = server.url }
		for name, value in pairs(others or {}) do
			options[name] = value
		end
		errors = {}
		local b = evrec.broadcaster { on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end }
		b:start_recording_to_sink(evrec.sink.kubernetes(options))
		return b, b:new_recorder { component = "ending" }
	end

	--- Flushes until `n` events have come out of the spool, however long the disk takes; what flush returned last.
	local function flush_until_restored(b, n)
		local deadline = os.time() + 30
		local ok, stats
		repeat
			ok, stats = b:flush(0.05)
		until stats.restored >= n or os.time() > deadline
		assert.equal(n, stats.restored)
		return ok, stats
	end

	local function seconds_of(f)
		local before = os.time()
		f()
		return os.time() - before
	end

	it("is reported by flush and shutdown, in time", function()
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
		assert.is_true((b:shutdown(0)))
	end)

	it("is not waited for by the collector", function()
		fixtures.interpret()
		for _, others in ipairs { {}, { spool = spool }, { thread = false } } do
			local b, r = start(others)
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
	end)

	--- Runs a script that records ten events, and then comes to an end as `ending` has it.
	local function run(ending, options)
		local path = os.tmpname()
		local file = assert(io.open(path, "w"))
		file:write(([[
			local evrec = require "evrec"
			local b = evrec.broadcaster {}
			b:start_recording_to_sink(evrec.sink.kubernetes { server = %q, %s })
			local r = b:new_recorder { component = "exit" }
			for i = 1, 10 do
				assert(r:event({ kind = "ConfigMap", name = "exit-" .. i }, "Normal", "Exit", "m"))
			end
			%s
		]]):format(server.url, options, ending))
		file:close()
		local pipe = assert(io.popen(lua .. " " .. path .. " 2>&1; echo \"exit=$?\""))
		local output = pipe:read "*a"
		pipe:close()
		os.remove(path)
		return output
	end

	it("takes 2 s at exit, and prints nothing", function()
		assert.is_true(seconds_of(function() assert.equal("exit=0\n", run("os.exit(0)", "")) end) < 8)
	end)

	it("leaves what it could not write in the spool, for the next", function()
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
		for _, thread in ipairs { true, false } do
			b = start { spool = spool, thread = thread }
			ok, stats = flush_until_restored(b, 3)
			assert.is_false(ok)
			assert.equal(3, stats.pending)
			assert.equal(0, stats.recorded)
			assert.equal(3, stats.sinks[1].received)
			assert.is_nil(fixtures.fault(stats))
			assert.truthy(fixtures.has(b:metrics(), 'evrec_sink_restored_total{sink="0",name="kubernetes"} 3'))
			ok, stats = b:shutdown(0.1)
			assert.is_false(ok)
			assert.equal(3, stats.spooled)
		end
	end)

	it("does so at exit too, and when it was collected", function()
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

	-- By another process: to close the file here would give the lock back that SQLite has on it.
	local function size_of(path)
		local pipe = io.popen(("stat -c %%s '%s' 2>/dev/null"):format(path))
		local size = tonumber(pipe:read "*l")
		pipe:close()
		return size or 0
	end

	it("goes on without a spool that another has, and says so", function()
		local first, r = start { spool = spool }
		r:event(pod, "Normal", "R", "m")
		local deadline = os.time() + 30
		repeat
			first:flush(0.05)
		until size_of(spool) > 0 or os.time() > deadline
		local second = start { spool = spool }
		local told = errors
		second:new_recorder():event(pod, "Normal", "R", "m")
		local _, stats = second:shutdown(0.2)
		assert.equal(1, stats.dropped.closed)
		assert.equal("spool: going on without the spool: " .. spool .. " is in use by another process or sink", told[1])
		_, stats = first:shutdown(0.1)
		assert.equal(1, stats.spooled)
	end)

	it("goes on without a spool that is none", function()
		local file = assert(io.open(spool, "w"))
		file:write(("not a database "):rep(100))
		file:close()
		local b, r = start { spool = spool }
		assert.is_true(r:event(pod, "Normal", "R", "m"))
		local _, stats = b:shutdown(0.2)
		assert.equal(1, stats.dropped.closed)
		assert.equal("spool: going on without the spool: " .. spool .. ": file is not a database", errors[1])
	end)

	it("wants the name of a file", function()
		assert.has_error(function() start { spool = 1 } end,
			"evrec.sink.kubernetes: option 'spool': expected a string, got number")
		assert.has_error(function() start { spool = "a\0b" } end,
			"evrec.sink.kubernetes: option 'spool': must be the name of a file")
	end)
end)

describe("a deadline, and a sink in Lua that is slow", function()
	local b, r, seconds

	local function record(n)
		for i = 1, n do
			assert.is_true(r:event(fixtures.pod("pod-" .. i), "Normal", "R", "m"))
		end
	end

	before_each(function()
		b = evrec.broadcaster {}
		b:start_recording_to_sink(evrec.sink.lua {
			create = function()
				local start = os.clock() -- of the processor, which is never ahead of the real time
				while os.clock() - start < seconds do end -- luacheck: ignore 542
			end,
		})
		r = b:new_recorder {}
	end)

	it("is looked at between writes", function()
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

	it("is none to poll, nor is it where there is no time at all", function()
		seconds = 0.0002
		for i, method in ipairs { "poll", "flush", "shutdown" } do
			record(20)
			assert.is_true((b[method](b, method ~= "poll" and 0 or nil)))
			assert.equal(20 * i, b:stats().created + b:stats().patched)
		end
	end)
end)
