-- A broadcaster without on_error tells by itself what was refused, lost or went wrong: in lines on standard error.
local lua = require("command").interpreter

-- Every script below begins with these lines. The sink answers with `answer.status` if that is set; `tell` writes to
-- standard error, between the lines of evrec.
local prelude = [[
	local evrec = require "evrec"
	local clock = evrec.fake_clock(1700000000)
	local answer = {}
	local function setup(options, max_pending)
		options = options or {}
		options.clock = options.clock or clock
		local b = evrec.broadcaster(options)
		b:start_recording_to_sink(evrec.sink.lua { max_pending = max_pending,
			create = function(event)
				if answer.status then
					return nil, answer.status, nil
				end
				return event:to_table()
			end })
		return b, b:new_recorder { component = "loud" }
	end
	local function pod(name)
		return { kind = "Pod", namespace = "shop", name = name or "web-0" }
	end
	local function tell(...)
		io.stderr:write(table.concat({ ... }, " "), "\n")
	end
]]

--- Runs a script in a process of its own, with `redirection` for its standard error; returns that, without the name of
--- the script's folder, and the exit code.
local function run(script, redirection)
	local path = os.tmpname()
	local file = assert(io.open(path, "w"))
	file:write((prelude:gsub("\n%s*", " ")), "\n", script)
	file:close()
	local pipe = assert(io.popen(("%s %s %s; echo exit=$?"):format(lua, path, redirection or "2>&1")))
	local output = pipe:read "*a"
	pipe:close()
	os.remove(path)
	-- gcc 12's ThreadSanitizer may write this at the end of a process, whatever the process did.
	output = output:gsub("==%d+==ERROR: ThreadSanitizer failed to allocate[^\n]*\n", "")
	local text, code = output:gsub(path:gsub("%p", "%%%0"), "script.lua"):match "^(.*)exit=(%d+)\n$"
	return text, tonumber(code)
end

local function lines(...)
	return table.concat({ ... }, "\n") .. "\n"
end

local WRONG_TYPE = 'type: expected "Normal" or "Warning", got "warning" '
local REFUSED = "evrec: 1 recording call was refused: invalid: " .. WRONG_TYPE

describe("a broadcaster without on_error", function()
	it("tells the first lost event at once, and 180 further ones in one line", function()
		assert.equal(lines(
			"evrec: 1 event was not written: forbidden: POST: 403; e.g. Warning BackOff about Pod shop/web-0: boo 0",
			"told",
			"nothing yet",
			"evrec: 180 events were not written in 10 s: forbidden: POST: 403; e.g. Warning BackOff about Pod shop/p1: boo",
			"end"), (run [[
				answer.status = 403
				local b, r = setup()
				r:event(pod(), "Warning", "BackOff", "boo 0")
				b:poll()
				tell "told"
				for i = 1, 180 do
					r:event(pod("p" .. i), "Warning", "BackOff", "boo")
					b:poll()
				end
				clock:advance(9)
				b:poll()
				tell "nothing yet"
				clock:advance(1)
				b:poll()
				tell "end"
			]]))
	end)

	it("tells with the first unfit event why it is that", function()
		assert.equal(lines("evrec: 1 event was not written: unfit: reportingController: \"a b\" is no qualified name; "
			.. "e.g. Warning R about Pod shop/web-0: m"), (run [[
				local b = evrec.broadcaster { clock = clock }
				b:start_recording_to_sink(evrec.sink.lua { create = print, correlate = "series" })
				b:new_recorder { component = "a b" }:event(pod(), "Warning", "R", "m")
				b:shutdown(0)
			]]))
	end)

	it("tells refused calls with the first caller's file and line", function()
		assert.equal(lines(
			REFUSED .. "(script.lua:3)",
			"evrec: 4 recording calls were refused: invalid; e.g. message: expected a string, got nil (script.lua:4)"),
			(run [[
				local b, r = setup()
				assert(not r:event(pod(), "warning", "R", "m"))
				assert(not r:event(pod(), "Warning", "R", nil))
				assert(not r:eventf(pod(), "Warning", "R", "%d", "x"))
				assert(not r:event({ name = "x" }, "Warning", "R", "m"))
				assert(not r:emit { regarding = pod(), type = "Normal", reason = "R", note = "m", wrong = 1 })
				assert(b:stats().invalid == 5)
				b:shutdown(0)
			]]))
	end)

	it("tells a call with '.', which no broadcaster counts", function()
		assert.equal("evrec: a recording call was refused: invalid: called with '.', use ':', as in "
			.. "recorder:event(object, ...) (script.lua:4)\n", (run [[
				local b, r = setup()
				for _ = 1, 3 do
					assert(not r.event(pod(), "Warning", "R", "m"))
				end
				b:shutdown(0)
			]]))
	end)

	it("finds the caller of a recorder of evrec.testing", function()
		assert.equal(REFUSED .. "(script.lua:3)\n", (run [[
				local t = evrec.testing.recorder {}
				t:event(pod(), "warning", "R", "m")
			]]))
	end)

	it("finds the caller behind pcall, and in a coroutine", function()
		assert.equal(lines(
			REFUSED .. "(script.lua:3)",
			"evrec: 1 recording call was refused in 20 s: invalid: reason: expected a string, got nil (script.lua:5)"),
			(run [[
				local b, r = setup()
				local function hook() local ok, _, name = pcall(r.event, r, pod(), "warning", "R", "m") assert(ok) end
				hook() clock:advance(20)
				coroutine.wrap(function() assert(not r:event(pod(), "Normal", nil, "m")) end)()
			]]))
	end)

	it("tells each kind of trouble in a line of its own, and errors without loss as such", function()
		assert.equal(lines(
			"evrec: the sink lua: server: POST: 503 (is retried)",
			"evrec: 1 event was not written: queue_full; e.g. Normal R about Pod shop/c: m; the last error was server: "
				.. "POST: 503",
			"evrec: callback: event watcher: boom",
			"evrec: 3 events were not written: closed; e.g. Normal R about Pod shop/a: m; the last error was server: "
				.. "POST: 503"), (run [[
				answer.status = 503
				local b, r = setup({}, 2)
				r:event(pod "a", "Normal", "R", "m")
				b:poll()
				r:event(pod "b", "Normal", "R", "m")
				r:event(pod "c", "Normal", "R", "m")
				local watch = b:start_event_watcher(function() error("boom", 0) end)
				r:event(pod "a", "Normal", "R", "m")
				watch:stop()
				b:shutdown(0)
			]]))
	end)

	it("does not tell of events that are limited in rate, or of full queues", function()
		assert.equal("", (run [[
			local b, r = setup()
			local watch = b:watch { queue_length = 1 }
			for i = 1, 100 do
				r:event(pod(), "Normal", "R" .. i, "m")
			end
			local ok, stats = b:shutdown(1)
			assert(ok and stats.rate_limited == 75 and stats.watch_dropped == 99 and watch)
		]]))
	end)

	it("is loud too if it has an on_drop", function()
		assert.equal(lines(
			"on_drop forbidden",
			"evrec: 1 event was not written: forbidden: POST: 403; e.g. Normal R about Pod shop/web-0: m"), (run [[
				answer.status = 403
				local b, r = setup { on_drop = function(_, why) tell("on_drop", why) end }
				r:event(pod(), "Normal", "R", "m")
				b:poll()
			]]))
	end)

	it("escapes control characters, also in the names of files", function()
		assert.equal(lines(
			[[evrec: 1 event was not written: closed; e.g. Normal R about Pod shop/web-0: a\nevrec: b\x1B[31m\x7F\xC2\x9B]],
			REFUSED .. [[([string "x\ny..."]:1)]]),
			(run([[
				local b, r = setup()
				r:event(pod(), "Normal", "R", "a\nevrec: b\27[31m\127\194\155")
				answer.status = 503
				b:shutdown(0)
				r = setup():new_recorder {}
				assert((loadstring or load)("local r, pod = ... r:event(pod, 'warning', 'R', 'm')", "=[string \"x\ny...\"]"))(
					r, pod())
			]]):gsub("; the last error was server: POST: 503", ""):gsub("evrec: the sink lua: server[^\n]+\n", "")))
	end)

	it("does not show the token of a sink", function()
		local text = run [[
			local b = evrec.broadcaster {}
			b:start_recording_to_sink(evrec.sink.kubernetes { server = "http://127.0.0.1:1", token = "a-secret-token" })
			local r = b:new_recorder {}
			r:event(pod(), "Normal", "R", "it is a-secret-token")
			local _, _, message = b:shutdown(0)
			tell(message)
			r:event(pod("a-secret-token"), "a-secret-token", "R", "m")
		]]
		assert.matches("it is %*%*%*%*%*%*%*%*%*%*%*%*%*%*", text)
		assert.is_nil(text:find("secret", 1, true))
	end)

	it("is silent with on_error = false, also at its end", function()
		assert.equal("", (run [[
			answer.status = 403
			local b, r = setup { on_error = false }
			r:event(pod(), "warning", "R", "m")
			r:event(pod(), "Warning", "R", "m")
			b:poll()
			r:event(pod(), "Warning", "another", "m")
			local c, s = setup { on_error = false, clock = evrec.clock() }
			c:start_recording_to_sink(evrec.sink.kubernetes { server = "http://127.0.0.1:1", token = "t" })
			s:event(pod(), "Warning", "R", "m")
		]]))
	end)

	it("gives on_error every message, and writes no line", function()
		assert.equal(lines("on_error lua: POST: 403 forbidden"), (run [[
			answer.status = 403
			local b, r = setup { on_error = function(message, name) tell("on_error", message, name) end }
			r:event(pod(), "warning", "R", "m")
			r:event(pod(), "Warning", "R", "m")
			b:shutdown(0)
		]]))
	end)

	it("tells at the end what on_error cannot be told any more", function()
		assert.matches("^evrec: the sink kubernetes: 1 event was not written: 1 closed; the last error", (run [[
			local b, sink = evrec.broadcaster { on_error = tell }, { server = "http://127.0.0.1:1", token = "t" }
			b:start_recording_to_sink(evrec.sink.kubernetes(sink)) b:new_recorder {}:event(pod(), "Normal", "R", "m")
		]]))
	end)

	it("refuses any other on_error", function()
		for _, wrong in ipairs { true, 1, "no" } do
			assert.error_matches(function() require("evrec").broadcaster { on_error = wrong } end,
				"option 'on_error': expected a function or false, got " .. type(wrong))
		end
	end)
end)

describe("flush and shutdown", function()
	it("return a sentence about what was lost since the last flush", function()
		assert.equal(lines(
			"true nil",
			"false 2 events were not written: forbidden; the last error was forbidden: POST: 403",
			"true nil",
			"false 1 recording call was refused: invalid; e.g. type: expected \"Normal\" or \"Warning\", got \"normal\"",
			"false 1 event was not written: rejected; 1 recording call was refused: invalid; the last error was rejected: "
				.. "POST: 422",
			"false 1 event still waits; the last error was server: POST: 503",
			"false 1 event was not written: closed; the last error was server: POST: 503",
			"false 1 event was not written: closed; the last error was server: POST: 503",
			"false 1 event was not written: closed; the last error was server: POST: 503",
			"1"), (run [[
				local b, r = setup { on_error = false }
				local function show(ok, stats, message)
					assert(type(stats) == "table" and stats.recorded)
					tell(tostring(ok), tostring(message))
				end
				r:event(pod(), "Normal", "R", "m")
				show(b:flush(1))
				answer.status = 403
				r:event(pod "a", "Normal", "R", "m")
				r:event(pod "b", "Normal", "R", "m")
				show(b:flush(1))
				show(b:flush(1))
				r:event(pod(), "normal", "R", "m")
				show(b:flush(1))
				clock:advance(60)
				answer.status = 422
				r:event(pod "c", "Normal", "R", "m")
				r:event(pod "c", "normal", "R", "m")
				show(b:flush(1))
				answer.status = 503
				r:event(pod "d", "Normal", "R", "m")
				show(b:flush(0))
				show(b:shutdown(0))
				show(b:shutdown(5))
				assert(not r:event(pod(), "Normal", "R", "m"))
				show(b:flush(5))
				tell(b:stats().refused.closed)
			]]))
	end)

	it("do not call full queues and limited events a loss", function()
		assert.equal(lines "true nil", (run [[
			local b, r = setup { on_error = false }
			local watch = b:watch { queue_length = 1 }
			for i = 1, 100 do
				r:event(pod(), "Normal", "R" .. i, "m")
			end
			local ok, _, message = b:shutdown(1)
			tell(tostring(ok), tostring(message))
			assert(watch:stats().dropped == 99)
		]]))
	end)

	it("tell of spooled events, which are not lost", function()
		local spool = os.tmpname()
		local text = run(([[
			local failed = false
			local b = evrec.broadcaster { on_error = function() failed = true end }
			b:start_recording_to_sink(evrec.sink.kubernetes { server = "http://127.0.0.1:1", token = "t", spool = %q })
			b:new_recorder {}:event(pod(), "Normal", "R", "m")
			require("fixtures").flush_until(b, function() return failed end)
			local ok, _, message = b:shutdown(0.1)
			tell(tostring(ok), tostring(message))
		]]):format(spool))
		os.execute("rm -rf " .. spool)
		assert.matches("^false 1 event waits in the spool; the last error was transport: POST: ", text)
	end)
end)

describe("at the end of a loud broadcaster", function()
	local unpolled = lines(
		"evrec: the sink lua: 3 events were not written: 3 closed; a call of poll, flush or shutdown was missing")
	local script = [[
		local b, r = setup()
		for i = 1, 3 do
			r:event(pod("web-" .. i), "Normal", "R", "m")
		end
	]]

	it("events that wait for a sink in Lua are told: it was collected", function()
		assert.equal(unpolled .. "end\n", (run(script .. "b, r = nil, nil collectgarbage() collectgarbage() tell 'end'")))
	end)

	it("events that wait for a sink in Lua are told: the script ends", function()
		assert.equal(unpolled, (run(script)))
	end)

	it("events that wait for a sink in Lua are told: os.exit", function()
		local text, code = run(script .. "os.exit(3)")
		assert.equal(unpolled, text)
		assert.equal(3, code)
	end)

	if _VERSION == "Lua 5.4" then
		it("events that wait for a sink in Lua are told: __close", function()
			assert.equal(unpolled .. "end\n", (run(("do local c <close> = setup() %s end tell 'end'"):format(
				script:gsub("local b, r = setup%(%)", "local r = c:new_recorder {}")))))
			assert.equal("closed\nevrec: refused calls, lost events and errors that were not printed: 1\n",
				(run "local b, r = setup() do local c <close> = b end tell(select(3, r:event(pod(), 'Normal', 'R', 'm')))"))
		end)
	end

	for name, ending in pairs { ["the script ends"] = "", ["os.exit"] = "os.exit(0)",
		["it was collected"] = "b, r = nil, nil collectgarbage() collectgarbage()" } do
		it("events that a thread could not write are told: " .. name, function()
			local text = run([[
				local b = evrec.broadcaster {}
				b:start_recording_to_sink(evrec.sink.kubernetes { server = "http://127.0.0.1:1", token = "a-secret" })
				local r = b:new_recorder {}
				for i = 1, 3 do
					r:event(pod("web-" .. i), "Normal", "R", "m")
				end
			]] .. ending)
			text = text:gsub("^evrec: the sink kubernetes: transport: [^\n]+\n", "")
			assert.matches("^evrec: the sink kubernetes: 3 events were not written: 3 closed; "
				.. "the last error was transport: POST: [^\n]+\n$", text)
			assert.is_nil(text:find("secret", 1, true))
		end)
	end

	it("what is not told yet is told", function()
		local refusals = [[
			local b, r = setup()
			for i = 1, 5 do
				r:event(pod(), "warning", "R", "m")
			end
		]]
		local first = REFUSED .. "(script.lua:4)\n"
		assert.equal(first .. "evrec: 4 recording calls were refused: invalid; e.g. " .. WRONG_TYPE
			.. "(script.lua:4)\n", (run(refusals)))
		assert.equal(first .. "evrec: refused calls, lost events and errors that were not printed: 4\n",
			(run(refusals .. "os.exit(1)")))
		assert.equal(first .. "evrec: 4 recording calls were refused: invalid; e.g. " .. WRONG_TYPE
			.. "(script.lua:4)\nend\n", (run(refusals .. "b:shutdown(0) tell 'end' os.exit(1)")))
	end)

	if not os.getenv "TSAN_OPTIONS" then -- ThreadSanitizer delivers no signal to a thread in a system call
		it("a signal of on_signal tells what exit() would tell", function()
			local text, code = run(script .. [[
				r:event(pod(), "warning", "R", "m")
				r:event(pod(), "warning", "R", "m")
				assert(evrec.on_signal { "TERM", timeout = 0.1 })
				os.execute "kill $PPID"
				repeat until os.time() == 0
			]])
			text = text:gsub("Terminated\n", "") -- the shell's
			assert.equal(lines(REFUSED .. "(script.lua:6)", (unpolled:gsub("\n", "")),
				"evrec: refused calls, lost events and errors that were not printed: 1"), text)
			assert.equal(128 + 15, code)
		end)
	end

	it("a broadcaster that lost nothing says nothing", function()
		assert.equal("", (run(script .. "assert(b:shutdown(1))")))
		assert.equal("", (run(script .. "assert(b:shutdown(1)) os.exit(0)")))
	end)
end)

describe("a full pipe as standard error", function()
	-- The reader of the pipe waits until the script has ended.
	it("does not block, and what could not be told is counted and told as a number", function()
		local path = os.tmpname()
		local script = ([[
			local b, r = setup()
			for _ = 1, 3000 do
				for _ = 1, 3 do
					r:event(pod(), "warning", "R", ("m"):rep(100))
				end
				clock:advance(10)
			end
			local untold = b:stats().untold
			local file = assert(io.open(%q, "w"))
			file:write(untold)
			file:close()
		]]):format(path)
		-- Opens the pipe for the script, and reads only after its end.
		local text = run(script, "2>&1 >/dev/null | (while ! [ -s " .. path .. " ]; do sleep 0.05; done; cat)")
		local file = assert(io.open(path))
		local untold = tonumber(file:read "*a")
		file:close()
		os.remove(path)
		assert.is_true(untold > 1000, tostring(untold))
		assert.matches("evrec: 3 recording calls were refused in 10 s: invalid", text)
		for line in text:gmatch "[^\n]+" do
			assert.matches("^evrec: ", line)
		end
	end)
end)
