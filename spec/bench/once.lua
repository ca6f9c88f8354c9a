-- Measures costs that arise once: the processor time of `require "evrec"`, and the memory of a write that waits.
--
-- usage: once.lua require|waiting    (prints seconds, or bytes)
local function require_evrec()
	local started = os.clock()
	require "evrec"
	return ("%.9f"):format(os.clock() - started)
end

-- The broadcaster is never polled, so its writes wait.
local function waiting()
	local bench, evrec = require "bench", require "evrec"
	local broadcaster = evrec.broadcaster { drive = "poll", on_error = false }
	local sink_of_none = evrec.sink.kubernetes { server = "http://127.0.0.1:1", max_pending = 100000 }
	broadcaster:start_recording_to_sink(sink_of_none)
	local recorder = broadcaster:new_recorder { component = "kubelet", host = "node-1" }
	for i = 1, 50000 do
		recorder:event(bench.object_of(i), bench.TYPE, bench.REASON, bench.MESSAGE)
	end
	local sink = broadcaster:stats().sinks[1]
	assert(sink.pending_writes == 50000, sink.pending_writes)
	local bytes = sink.pending_bytes / sink.pending_writes
	broadcaster:shutdown(0)
	return bytes
end

print((... == "require" and require_evrec or waiting)())
