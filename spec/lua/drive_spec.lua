-- The option `drive`, and the program that polls: stand-ins for the tables of nginx and HAProxy, whose clock the spec
-- moves. spec/e2e/hosts_spec.lua runs the real ones.
local evrec = require "evrec"
local fixtures = require "fixtures"

describe("evrec.broadcaster { drive = }", function()
	it("takes three words", function()
		for _, drive in ipairs { "auto", "thread", "poll" } do
			assert.equal("userdata", type(evrec.broadcaster { drive = drive }))
		end
		assert.has_error(function() evrec.broadcaster { drive = "threads" } end,
			[[evrec.broadcaster: option 'drive': expected "auto", "thread" or "poll", got "threads"]])
		assert.has_error(function() evrec.broadcaster { drive = true } end,
			[[evrec.broadcaster: option 'drive': expected "auto", "thread" or "poll", got boolean]])
	end)

	it("is named by the option `thread` of every sink, and of a broadcaster", function()
		local message = ": option 'thread': sinks have none; use the option 'drive' of evrec.broadcaster"
		assert.has_error(function() evrec.sink.kubernetes { server = "https://s", thread = false } end,
			"evrec.sink.kubernetes" .. message)
		assert.has_error(function() evrec.sink.file { path = "-", thread = true } end, "evrec.sink.file" .. message)
		assert.has_error(function() evrec.sink.lua { create = function() end, thread = true } end,
			"evrec.sink.lua" .. message)
		assert.has_error(function() evrec.broadcaster { thread = false } end,
			"evrec.broadcaster: option 'thread': there is none; use the option 'drive'")
	end)

	it("writes with the script's polls alone in a plain program", function()
		assert.equal("lua", evrec.host())
		local path = os.tmpname()
		local b = evrec.broadcaster { drive = "poll" }
		b:start_recording_to_sink(evrec.sink.file { path = path })
		b:new_recorder():event(fixtures.pod(), "Normal", "R", "m")
		assert.equal(1, b:stats().pending)
		b:poll()
		assert.equal(0, b:stats().pending)
		assert.equal(1, b:stats().created)
		os.remove(path)
	end)
end)

-- Runs a script in a new Lua with a stand-in, after which `evrec`, `tick(seconds)`, `b` and `r` are there. The stand-in
-- calls what is due when the script lets time pass.
local STAND_IN = [[
	local now, timers, begun = 0, {}, 0
	local function after(seconds, f)
		timers[#timers + 1] = { at = now + seconds, f = f }
		begun = begun + 1
		return true
	end
	function lose() timers = {} end
	function count() return #timers, begun end
	function tick(seconds)
		now = now + seconds + 1e-9
		for _ = 1, 1000 do
			local due
			for i, timer in ipairs(timers) do
				due = due or timer.at <= now and i
			end
			if not due then
				return
			end
			table.remove(timers, due).f()
		end
		error "the timers never end"
	end
]]
local HAPROXY = STAND_IN .. [[
	core = { register_task = function(f) after(0, coroutine.wrap(f)) end, Warning = function(line) print(line) end }
	function core.msleep(ms)
		local me = coroutine.running()
		after(ms / 1000, function() assert(coroutine.resume(me)) end)
		coroutine.yield()
	end
]]
local NGINX = STAND_IN .. [[
	phase, exiting = "log", false
	newproxy = newproxy or function() return setmetatable({}, { __gc = true }) end
	ngx = { ERR = 4, log = function(_, line) print(line) end, get_phase = function() return phase end,
		worker = { exiting = function() return exiting end },
		timer = { at = function(seconds, f, argument)
			if phase == "exit_worker" then
				error "API disabled in the context of exit_worker_by_lua*"
			end
			return (not exiting or seconds == 0) and after(seconds, function()
				coroutine.wrap(f)(exiting, argument)
			end) or nil
		end },
		sleep = function(seconds)
			local me = coroutine.running()
			after(seconds, function() assert(coroutine.resume(me)) end)
			coroutine.yield()
		end }
]]
local MAKE = [[
	evrec = require "evrec"
	written = 0
	function make(options)
		local b = evrec.broadcaster(options)
		b:start_recording_to_sink(evrec.sink.lua { create = function() written = written + 1 end })
		return b, b:new_recorder { component = "spec" }
	end
	function record(r, name)
		assert(r:event({ kind = "Pod", namespace = "shop", name = name or "web-0" }, "Normal", "R", "m"))
	end
	b, r = make { drive = "poll", on_error = false }
	assert(count() == 0) -- a constructor has no effects
]]

local function run(stand_in, script)
	local path = os.tmpname()
	local file = assert(io.open(path, "w"))
	file:write(stand_in, MAKE, script)
	file:close()
	local pipe = assert(io.popen(fixtures.lua .. " " .. path .. " 2>&1; echo \"exit=$?\""))
	local output = pipe:read "*a"
	pipe:close()
	os.remove(path)
	assert.equal("exit=0\n", output)
end

for host, stand_in in pairs { nginx = NGINX, haproxy = HAPROXY } do
	describe("in " .. host, function()
		it("evrec.host() says so", function()
			run(stand_in, ("assert(evrec.host() == %q)"):format(host))
		end)

		it("the first recording call begins polls, and they end after a second with nothing to do", function()
			run(stand_in, [[
				record(r)
				assert(count() == 1 and written == 0)
				tick(0)
				assert(count() == 1 and written == 1)
				record(r, "web-1")
				assert(count() == 1)
				tick(0.1)
				assert(written == 2)
				for _ = 1, 20 do tick(0.1) end
				assert(count() == 0)
				record(r, "web-2")
				assert(count() == 1)
				tick(0)
				assert(written == 3)
			]])
		end)

		it("one timer or task is for all broadcasters, and a stream of events begins few", function()
			run(stand_in, [[
				local _, other = make {}
				for i = 1, 50 do
					record(r)
					record(other)
					tick(0.01)
				end
				local _, begun = count()
				assert(begun < 100, begun)
				assert(written > 2)
			]])
		end)

		it("the first poll or flush begins polls as well", function()
			run(stand_in, "b:poll() assert(count() == 1)")
			run(stand_in, "b:flush(0) assert(count() == 1)")
		end)

		it("shutdown ends although the host's log records each of its lines", function()
			run(stand_in, [[
				local lines, ended = 0, false
				local function log(line)
					lines = lines + 1
					assert(lines < 100, line)
					if not ended then
						r:event({ kind = "Pod", namespace = "shop", name = "web-0" }, "Warning", "Logged", line)
					end
				end
				if ngx then ngx.log = function(_, line) log(line) end else core.Warning = log end
				b, r = make { drive = "poll" }
				assert(not r:event(nil, "Normal", "R", "m"))
				assert(lines == 1)
				assert(not r:event(nil, "Normal", "R", "m"))
				assert(not b:shutdown(0))
				assert(lines > 1 and b:stats().refused.closed > 0)
				ended = true
				b:shutdown(0) -- logs the last line
			]])
		end)

		it("polls keep no broadcaster alive that the script has dropped, and end", function()
			run(stand_in, [[
				if jit then jit.off() jit.flush() end
				record(r)
				tick(0)
				local seen = setmetatable({ b }, { __mode = "v" })
				b, r = nil, nil
				for _ = 1, 4 do collectgarbage() end
				assert(seen[1] == nil)
				tick(1)
				assert(count() == 0)
			]])
		end)

		it("polls end when the broadcaster is closed", function()
			run(stand_in, [[
				record(r)
				assert(b:shutdown(0))
				tick(1)
				assert(count() == 0)
				assert(not r:event({ kind = "Pod", name = "web-0" }, "Normal", "R", "m"))
				tick(1)
				assert(count() == 0)
			]])
		end)

		it("a callback that records in a poll is heard", function()
			run(stand_in, [[
				b:shutdown(0)
				local other, recorder, seen = nil, nil, 0
				b = evrec.broadcaster { on_error = false }
				b:start_recording_to_sink(evrec.sink.lua { create = function()
					if not other then
						other, recorder = make {}
						record(recorder)
					end
					seen = seen + 1
				end })
				record(b:new_recorder())
				for _ = 1, 30 do tick(0.1) end
				assert(seen == 1 and written == 1)
				assert(count() == 0)
			]])
		end)
	end)
end

describe("in nginx", function()
	it("the master begins nothing; a worker does, with the master's broadcaster", function()
		run(NGINX, [[
			phase = "init"
			record(r)
			b:flush(0)
			assert(count() == 0)
			phase = "log"
			record(r, "web-1")
			assert(count() == 1)
			tick(0)
		]])
	end)

	it("a phase that refuses timers fails no call, and the next call begins polls", function()
		run(NGINX, [[
			phase = "exit_worker"
			record(r)
			phase = "log"
			record(r)
			assert(count() == 1)
			tick(0)
		]])
		run(NGINX, [[
			local at = ngx.timer.at
			ngx.timer.at = function() return nil, "too many pending timers" end
			record(r)
			ngx.timer.at = at
			record(r)
			assert(count() == 1)
			tick(0)
		]])
	end)

	it("a worker whose first event is that of its end, where no timer begins, writes it for its share", function()
		run(NGINX, [[
			phase = "exit_worker"
			local path = os.tmpname()
			local shared = evrec.broadcaster { share = "@" .. path, on_error = false }
			shared:start_recording_to_sink(evrec.sink.file { path = path })
			record(shared:new_recorder {})
			assert(shared:shutdown(5))
			assert(io.open(path):read "*a" ~= "")
			os.remove(path)
		]])
	end)

	it("a timer that nginx drops is replaced, once the collector has found it", function()
		run(NGINX, [[
			if jit then jit.off() jit.flush() end
			record(r)
			lose()
			record(r, "web-1")
			assert(count() == 0)
			collectgarbage()
			collectgarbage()
			record(r, "web-2")
			assert(count() == 1)
			tick(0)
			assert(written == 3)
		]])
	end)

	it("a worker that exits polls for each event at once", function()
		run(NGINX, [[
			record(r)
			tick(0)
			exiting = true
			tick(0.1)
			for i = 1, 3 do
				record(r, "late-" .. i)
				tick(0)
				tick(1)
				assert(written == 1 + i)
				assert(count() == 0)
			end
		]])
	end)

	it("a worker that exits waits for its timers no longer than two seconds", function()
		run(NGINX, [[
			exiting = true
			local core = require "evrec.core"
			record(r)
			core.poll_delay = function() return 0.01 end
			tick(0)
			for _ = 1, 199 do
				assert(count() == 1)
				tick(0.01)
			end
			tick(0.01)
			assert(count() == 0)
		]])
	end)

	it("a worker that exits does not wait for what other processes of its share may send", function()
		run(NGINX, [[
			exiting = true
			local core = require "evrec.core"
			record(r)
			core.poll_delay = function() return 0.05 end
			tick(0)
			assert(count() == 0)
		]])
	end)
end)
