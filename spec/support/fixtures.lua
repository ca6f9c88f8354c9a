-- Shared by specs: objects, a server in a table, and the equations of stats.
local evrec = require "evrec"

local fixtures = { now = 1700000000 }

fixtures.has_close = _VERSION == "Lua 5.4"

--- For a spec that checks what is collected, or how much memory is used. LuaJIT's compiled code takes memory, holds
--- objects, and leaves others in stack slots that it no longer writes; leaving a trace may grow the stack.
function fixtures.interpret()
	if jit then
		jit.off()
		jit.flush()
	end
end

function fixtures.pod(name)
	name = name or "web-0"
	return { kind = "Pod", apiVersion = "v1", namespace = "shop", name = name, uid = "uid-" .. name }
end

--- A sink in Lua that keeps the writes it gets. `answers` is a queue of functions: each answers one write; without one
--- the write succeeds.
function fixtures.server()
	local server = { writes = {}, events = {}, answers = {} }
	local function answer(verb, event, patch)
		local write = { verb = verb, event = event, name = event.metadata.name, patch = patch }
		server.writes[#server.writes + 1] = write
		local scripted = table.remove(server.answers, 1)
		if scripted then
			return scripted(write)
		end
		server.events[write.name] = event:to_table()
		return server.events[write.name]
	end
	server.sink = evrec.sink.lua {
		create = function(event) return answer("create", event) end,
		patch = function(event, patch) return answer("patch", event, patch) end,
	}
	return server
end

--- A broadcaster under a fake clock, with such a server and a recorder. Without on_error it is silent.
function fixtures.setup(options)
	options = options or {}
	local clock = evrec.fake_clock(fixtures.now)
	options.clock = clock
	if options.on_error == nil then
		options.on_error = false
	end
	local broadcaster, server = evrec.broadcaster(options), fixtures.server()
	local watch = broadcaster:start_recording_to_sink(server.sink)
	return {
		clock = clock, broadcaster = broadcaster, server = server, watch = watch,
		recorder = broadcaster:new_recorder { component = "spec", host = "node-1" },
	}
end

--- The same, with a watch; last() returns the last event that this one got since the call before.
function fixtures.recording()
	local s = fixtures.setup()
	s.watch = s.broadcaster:watch()
	function s.last()
		local last
		for event in function() return s.watch:next() end do
			last = event
		end
		return last
	end
	return s
end

local function sum(dropped)
	local n = 0
	for _, count in pairs(dropped) do
		n = n + count
	end
	return n
end

--- Checks the equation of a sink; returns nil if it holds, else a message.
function fixtures.sink_fault(s)
	local right = s.rate_limited + s.created + s.patched + s.coalesced + s.counted + s.pending + s.spooled + sum(s.dropped)
	if s.received ~= right then
		return ("%s: received %d, elsewhere %d"):format(s.name or "ended sinks", s.received, right)
	end
end

--- Checks the equations of stats; returns nil if they hold, else a message.
function fixtures.fault(stats)
	local right = stats.broadcast + stats.queued + stats.invalid + sum(stats.refused)
	if stats.recorded ~= right then
		return ("recorded %d, elsewhere %d"):format(stats.recorded, right)
	end
	local created = 0
	for i = 0, #stats.sinks do
		local sink = stats.sinks[i] or stats.ended
		local fault = fixtures.sink_fault(sink)
		if fault then
			return fault
		end
		created = created + sink.created
	end
	if stats.created ~= created then
		return ("created %d, by all sinks %d"):format(stats.created, created)
	end
end

--- A generator of random numbers that is the same in every Lua, as math.random is not. EVREC_SEED sets its seed.
function fixtures.random()
	local seed = tonumber(os.getenv("EVREC_SEED")) or os.time() % 1000000
	print("# EVREC_SEED=" .. ("%d"):format(seed))
	return function(n)
		seed = (seed * 16807 + 11) % 2147483647
		return math.floor(seed / 7) % n + 1
	end
end

--- Flushes until the function returns true, for 30 s at most: a sink's thread may begin late.
function fixtures.flush_until(broadcaster, is_enough)
	local deadline = os.time() + 30
	repeat
		broadcaster:flush(0.05)
	until is_enough() or os.time() > deadline
end

--- The start of a shell command that runs Debian's Python, without the sanitizer's library that this process may have.
fixtures.python = "env -u LD_PRELOAD /usr/bin/python3 "

--- Starts a server that accepts connections and never answers. It ends after a minute at most.
function fixtures.mute_server()
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

--- The command of the interpreter that runs the specs.
fixtures.lua = require("command").interpreter

--- Runs a script, sends it a signal once it has printed "ready", and waits for its end. Returns its exit status, or
--- minus the number of the signal that ended it. `alone`: it is process 1 of a new PID namespace; nil if there can be
--- none.
function fixtures.end_by_signal(script, signal, alone)
	local pipe = assert(io.popen(("%sspec/support/end_by_signal.py %s %s %s %s"):format(fixtures.python, signal,
		alone and "alone" or "together", fixtures.lua, script)))
	local first, status = pipe:read "*l", pipe:read "*l"
	pipe:close()
	if first == "no namespace" then
		return nil
	end
	assert(first == "ready", first)
	return tonumber(status)
end

--- Overflows Lua's stack. Finalizers would fail for want of stack meanwhile, and not be called again, so the collector
--- is stopped until the caller's `collectgarbage "restart"`.
function fixtures.overflow()
	collectgarbage "stop"
	local function f()
		return f() .. ""
	end
	return f()
end

--- Whether `text` is a string that contains `part`, taken literally.
function fixtures.has(text, part)
	return type(text) == "string" and text:find(part, 1, true) ~= nil
end

return fixtures
