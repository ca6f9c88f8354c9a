-- evrec.on_signal: processes of their own record, are sent a signal, and die by it; what they recorded is written.
local evrec = require "evrec"
local fixtures = require "fixtures"

describe("on_signal", function()
	if os.getenv "TSAN_OPTIONS" then
		pending "skipped: ThreadSanitizer delivers no signal to a thread in a system call"
		return
	end

	local names, output

	local function temporary()
		local name = os.tmpname()
		os.remove(name)
		names[#names + 1] = name
		return name
	end

	before_each(function()
		names = {}
		output = temporary()
	end)
	after_each(function()
		for _, name in ipairs(names) do
			os.execute(("rm -rf '%s' '%s-journal' '%s.lock'"):format(name, name, name))
		end
	end)

	local function write_script(text)
		local path = temporary()
		local file = assert(io.open(path, "w"))
		file:write(text)
		file:close()
		return path
	end

	--- Runs a script that records 500 events to the sink, both Lua code, and then passes the time. Returns its status.
	local function die(sink, pastime, how)
		how = how or {}
		local script = write_script(([[
			local evrec = require "evrec"
			local output = %q
			local b = evrec.broadcaster {}
			b:start_recording_to_sink(%s)
			local r = b:new_recorder { component = "signal" }
			assert(evrec.on_signal { "TERM", "SIGINT", timeout = %g })
			for i = 1, 500 do
				assert(r:event({ kind = "ConfigMap", name = "signal-" .. i }, "Normal", "Signal", "m"))
			end
			print "ready"
			io.stdout:flush()
			%s
			os.exit(3)
		]]):format(output, sink, how.timeout or 20, pastime))
		return fixtures.end_by_signal(script, how.signal or "SIGTERM", how.alone)
	end

	local function lines()
		local n = 0
		for _ in io.lines(output) do
			n = n + 1
		end
		return n
	end

	local pastimes = {
		["in an endless loop"] = "repeat until os.time() == 0",
		["in os.execute"] = "os.execute 'sleep 30'",
		["in a read"] = "io.read()",
	}
	local file_sink = "evrec.sink.file { path = output }"

	for name, pastime in pairs(pastimes) do
		it("writes what waits if the script is " .. name, function()
			assert.equal(-15, die(file_sink, pastime))
			assert.equal(500, lines())
		end)
	end

	it("takes the place of the interpreter's own handler of SIGINT", function()
		assert.equal(-2, die(file_sink, pastimes["in a read"], { signal = "SIGINT" }))
		assert.equal(500, lines())
	end)

	it("ends process 1 with 128 + the signal's number", function()
		local status = die(file_sink, pastimes["in a read"], { alone = true })
		if not status then
			pending "skipped: this system gives no PID namespace"
			return
		end
		assert.equal(143, status)
		assert.equal(500, lines())
	end)

	--- Checks that a sink with the spool finds 500 events in it.
	local function check_spooled(make, options)
		local b = evrec.broadcaster {}
		b:start_recording_to_sink(make(options))
		local deadline = os.time() + 30
		local stats
		repeat
			stats = select(2, b:flush(0.05))
		until stats.restored >= 500 or os.time() > deadline
		assert.equal(500, stats.restored)
		b:shutdown(0)
	end

	it("spools what a frozen server does not take", function()
		local server, spool = fixtures.mute_server(), temporary()
		local status = die(("evrec.sink.kubernetes { server = %q, spool = %q }"):format(server.url, spool),
			pastimes["in a read"], { timeout = 0.5 })
		assert.equal(-15, status)
		check_spooled(evrec.sink.kubernetes, { server = server.url, spool = spool })
		server.stop()
	end)

	it("waits for the polls of a script with a sink in Lua", function()
		local sink = [[evrec.sink.lua {
			create = function(event)
				local file = io.open(output, "a")
				file:write(event.reason, "\n")
				file:close()
			end,
		}]]
		assert.equal(-15, die(sink, "os.execute 'sleep 0.2' while true do b:poll() end"))
		assert.equal(500, lines())
	end)

	it("spools the events of a sink in Lua if the script does not poll", function()
		local spool = temporary()
		assert.equal(-15, die(("evrec.sink.lua { spool = %q, create = print }"):format(spool), pastimes["in a read"],
			{ timeout = 0.2 }))
		check_spooled(evrec.sink.lua, { spool = spool, create = function() end })
	end)

	--- Returns what a script prints, with `before` run by the shell.
	local function printed(script, before)
		local pipe = assert(io.popen(("%s %s %s 2>&1"):format(before or "", fixtures.lua, write_script(script))))
		local text = pipe:read "*a"
		pipe:close()
		return text
	end

	it("is refused in nginx and in HAProxy, and over what somebody else has set", function()
		assert.equal("nil\tnginx handles its signals itself\tinvalid\n",
			printed "ngx = { config = {} } print(require('evrec').on_signal { 'TERM' })")
		assert.equal("nil\thaproxy handles its signals itself\tinvalid\n",
			printed "core = { register_task = print } print(require('evrec').on_signal { 'TERM' })")
		assert.equal("nil\tsignals: the process already ignores signal 1\tinvalid\n",
			printed("print(require('evrec').on_signal { 'TERM', 'HUP' })", "trap '' HUP;"))
	end)

	it("raises on misuse", function()
		local function check(message, ...)
			local ok, text = pcall(evrec.on_signal, ...)
			assert.is_false(ok)
			assert.truthy(fixtures.has(text, message), text)
			assert.truthy(fixtures.has(text, "evrec.on_signal: "), text)
			assert.falsy(fixtures.has(text, "init.lua"), text)
		end
		check "expected a table of signals, got nil"
		check("expected a table of signals, got string", "TERM")
		check("expected 1 to 16 names of signals, got 0", {})
		check('expected "TERM", "INT", "HUP", "QUIT", "USR1" or "USR2", got "KILL"', { "KILL" })
		check('"USR2", got "SIGSTOP"', { "TERM", "SIGSTOP" })
		check('"USR2", got number', { 15 })
		check("unknown option 'time'", { "TERM", time = 2 })
		check("unknown option 'timeout'", { "TERM", ["timeout\0x"] = 2 })
		check("the name of a signal has a NUL byte", { "TERM\0x" })
		check("unknown option of type boolean", { "TERM", [true] = 2 })
		check("'timeout': expected a number of seconds >= 0, got -1", { "TERM", timeout = -1 })
		check("'timeout': expected at most 86400 seconds, got 86401", { "TERM", timeout = 86401 })
	end)
end)
