-- The command `evrec serve FILE`, with processes of their own. share_spec.lua has the option `share`.
local command = require "command"
local read = require("tmpfiles").read

describe("evrec serve", function()
	local folder, running

	local function shell(script, ...)
		local pipe = assert(io.popen(command.line { "bash", "-c", script, ... }))
		local output = pipe:read "*a"
		pipe:close()
		return (output:gsub("%s+$", ""))
	end

	local function write(name, text)
		local file = assert(io.open(folder .. "/" .. name, "w"))
		file:write(text)
		file:close()
		return folder .. "/" .. name
	end

	local function await(tell)
		for _ = 1, 600 do
			if tell() then
				return
			end
			shell "sleep 0.05"
		end
		error "waited for 30 s in vain"
	end

	-- Starts a Lua program in the background, whose output goes to a file.
	local function start(...)
		local process = { log = ("%s/log-%d"):format(folder, #running + 1) }
		process.pid = shell([[log=$1; shift
			(code=0; "$@" >"$log" 2>&1 & echo $! >"$log.pid"; wait $! || code=$?; echo $code >"$log.code") \
			>/dev/null 2>&1 & until [ -s "$log.pid" ]; do sleep 0.01; done; cat "$log.pid"]], "bash", process.log,
			"env", "--default-signal=INT", command.interpreter, ...)
		running[#running + 1] = process
		function process.says(text)
			await(function() return read(process.log):find(text, 1, true) end)
		end
		-- Sends a signal. Returns the exit status and the output.
		function process.stop(signal)
			shell("kill -$0 $1", signal, process.pid)
			await(function() return read(process.log .. ".code") ~= "" end)
			process.ended = true
			return tonumber(read(process.log .. ".code")), read(process.log)
		end
		return process
	end

	-- The same script for all processes. `sink` is Lua code.
	local function script(sink)
		local share = "@evrec-serve-spec-" .. folder:match "[^/]+$"
		return write("shared.lua", ([[
			local evrec = require "evrec"
			local b = evrec.broadcaster { share = %q, on_error = false }
			b:start_recording_to_sink(%s)
			return b
		]]):format(share, sink))
	end

	-- Records the same event `n` times, and lives until it gets a signal.
	local function worker(shared, n)
		return start(write("worker.lua", ([[
			local b = dofile(%q)
			local core = require "evrec.core"
			local r = b:new_recorder { component = "proxy" }
			for _ = 1, %d do
				r:event({ kind = "Service", apiVersion = "v1", namespace = "shop", name = "web" }, "Warning", "Failed", "m")
			end
			local before
			repeat
				b:poll()
				local s = b:stats()
				local now = ("share %%s, pending %%d, forwarded %%d"):format(s.share, s.pending, s.forwarded)
				if now ~= before then
					print(now)
					io.stdout:flush()
					before = now
				end
			until core.wait_for_signal(0.01)
			os.exit(b:shutdown(5) and 0 or 1)
		]]):format(shared, n)))
	end

	local function serve(shared, ...) return start("lua/bin/evrec", "serve", shared, ...) end

	local OWNER, WAITS = "this process writes the events of all", "another process writes the events of all"

	before_each(function()
		folder, running = shell "mktemp -d", {}
	end)
	after_each(function()
		for _, process in ipairs(running) do
			if not process.ended then
				process.stop "KILL"
			end
		end
		shell("rm -rf $0", folder)
	end)

	it("makes one event of what two workers record", function()
		local output = folder .. "/events"
		local shared = script(("evrec.sink.file { path = %q }"):format(output))
		local server = serve(shared)
		server.says(OWNER)
		for _ = 1, 2 do
			worker(shared, 3).says "share worker, pending 0, forwarded 3"
		end
		local status, log = server.stop "TERM"
		assert.equal(0, status, log)
		assert.equal(("evrec: %s: %s\n"):format(shared, OWNER), log)
		local names = {}
		for name in read(output):gmatch '"name":"(web%.%x+)"' do
			names[name] = true
		end
		local name = next(names)
		assert.is_string(name)
		assert.is_nil(next(names, name))
		assert.matches('"count":6,', read(output))
	end)

	it("waits while another process is the owner, and takes over", function()
		local shared = script "evrec.sink.file { path = '/dev/null' }"
		local first = serve(shared)
		first.says(OWNER)
		local second = serve(shared)
		second.says(WAITS)
		assert.equal(0, (first.stop "INT"))
		second.says(OWNER)
		assert.equal(0, (second.stop "TERM"))
	end)

	it("leaves what it could not write to the process that recorded it", function()
		local shared = script "evrec.sink.kubernetes { server = 'http://127.0.0.1:1', token = 't' }"
		local server = serve(shared, "--timeout", "0")
		server.says(OWNER)
		local recording = worker(shared, 3)
		recording.says "share worker, pending 3"
		await(function() return shell("ls /proc/$0/task | wc -l", server.pid) ~= "1" end)
		assert.equal(0, (server.stop "TERM"))
		recording.says "share owner, pending 3"
	end)

	it("ends with 1 if events were lost", function()
		local shared = script "evrec.sink.kubernetes { server = 'http://127.0.0.1:1', token = 't' }"
		local own = write("own.lua", ([[
			local b = dofile(%q)
			b:new_recorder {}:event({ kind = "Node", name = "n" }, "Normal", "R", "m")
			return b
		]]):format(shared))
		local server = serve(own, "--timeout", "0")
		server.says(OWNER)
		local status, log = server.stop "TERM"
		assert.equal(1, status, log)
		assert.matches("1 event was not written: closed", log)
	end)

	it("sleeps while nothing is to be done", function()
		local shared = script "evrec.sink.file { path = '/dev/null' }"
		local server = serve(shared)
		server.says(OWNER)
		local function switches()
			return tonumber(read("/proc/" .. server.pid .. "/status"):match "\nvoluntary_ctxt_switches:%s*(%d+)")
		end
		local before = switches()
		shell "sleep 2"
		assert.is_true(switches() - before < 20)
		assert.equal(0, (server.stop "TERM"))
	end)

	local function run(...)
		local process = start("lua/bin/evrec", ...)
		await(function() return read(process.log .. ".code") ~= "" end)
		process.ended = true
		return tonumber(read(process.log .. ".code")), read(process.log)
	end

	it("tells misuse in one line", function()
		local cases = {
			{ "nothing.lua", nil, "cannot open [^\n]*/nothing.lua: No such file or directory" },
			{ "wrong.lua", "local local", "[^\n]*/wrong.lua:1: [^\n]+" },
			{ "raises.lua", "error 'why'", "[^\n]*/raises.lua:1: why" },
			{ "table.lua", "return {}", "[^\n]*/table.lua must return a broadcaster, and returned table" },
			{ "alone.lua", "return require('evrec').broadcaster {}", "the broadcaster of [^\n]*/alone.lua has no 'share'" },
			{ "empty.lua", "return require('evrec').broadcaster { share = '@x' }",
				"the broadcaster of [^\n]*/empty.lua has no sink" },
		}
		for _, case in ipairs(cases) do
			if case[2] then
				write(case[1], case[2])
			end
			local status, log = run("serve", folder .. "/" .. case[1])
			assert.matches("^evrec: " .. case[3] .. "\n$", log)
			assert.equal(2, status)
		end
		for _, arguments in ipairs { {}, { "serve" }, { "sevre" }, { "serve", "x", "--timeout", "-1" },
			{ "serve", "x", "--timeout", "nan" } } do
			local status, log = run((table.unpack or unpack)(arguments)) -- luacheck: ignore 143
			assert.matches("^evrec: [^\n]+ %(see evrec [%l ]*%-%-help%)\n$", log)
			assert.equal(2, status)
		end
	end)

	it("tells its version and its arguments", function()
		local status, log = run "--version"
		assert.equal(0, status)
		assert.equal("evrec " .. require("evrec")._VERSION .. "\n", log)
		status, log = run("serve", "--help")
		assert.equal(0, status)
		assert.matches("%-%-timeout SECONDS", log)
	end)
end)
