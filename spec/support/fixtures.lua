-- What several specs need: objects, a server in a table, and the equations of stats.
local evrec = require "evrec"

local fixtures = { now = 1700000000 }

fixtures.has_close = _VERSION == "Lua 5.4"

--- For a spec that looks at what is collected, or at memory. What LuaJIT compiles takes some, holds objects, and leaves
--- others in stack slots that it no longer writes; leaving a trace may grow the stack.
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

--- A sink in Lua that keeps what it is given. `answers` is a queue of functions, each of which answers one write in the
--- place of success.
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

--- A broadcaster under a fake clock, with such a server and a recorder.
function fixtures.setup(options)
	options = options or {}
	local clock = evrec.fake_clock(fixtures.now)
	options.clock = clock
	local broadcaster, server = evrec.broadcaster(options), fixtures.server()
	local watch = broadcaster:start_recording_to_sink(server.sink)
	return {
		clock = clock, broadcaster = broadcaster, server = server, watch = watch,
		recorder = broadcaster:new_recorder { component = "spec", host = "node-1" },
	}
end

local function sum(dropped)
	local n = 0
	for _, count in pairs(dropped) do
		n = n + count
	end
	return n
end

--- The equation of a sink, nil where it holds.
function fixtures.sink_fault(s)
	local right = s.rate_limited + s.created + s.patched + s.coalesced + s.pending + s.spooled + sum(s.dropped)
	if s.received ~= right then
		return ("%s: received %d, elsewhere %d"):format(s.name, s.received, right)
	end
end

--- What is wrong with the equations of stats, nil where they hold.
function fixtures.fault(stats)
	local right = stats.broadcast + stats.queued + stats.invalid + sum(stats.refused)
	if stats.recorded ~= right then
		return ("recorded %d, elsewhere %d"):format(stats.recorded, right)
	end
	for _, sink in ipairs(stats.sinks) do
		local fault = fixtures.sink_fault(sink)
		if fault then
			return fault
		end
	end
end

--- A generator of random numbers of its own: math.random differs between Luas. EVREC_SEED sets its seed.
function fixtures.random()
	local seed = tonumber(os.getenv("EVREC_SEED")) or os.time() % 1000000
	print("# EVREC_SEED=" .. ("%d"):format(seed))
	return function(n)
		seed = (seed * 16807 + 11) % 2147483647
		return math.floor(seed / 7) % n + 1
	end
end

--- The start of a command for the shell: Debian's Python, without the library of a sanitizer that looks at us.
fixtures.python = "env -u LD_PRELOAD /usr/bin/python3 "

--- Overflows Lua's stack. Finalizers that Lua calls then fail for want of stack, and are not called again: none are,
--- until `collectgarbage "restart"`.
function fixtures.overflow()
	collectgarbage "stop"
	local function f()
		return f() .. ""
	end
	return f()
end

--- Whether `text` has `part` in it, as it is.
function fixtures.has(text, part)
	return type(text) == "string" and text:find(part, 1, true) ~= nil
end

return fixtures
