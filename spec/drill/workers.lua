-- For the workers of a real nginx: each records 100 events about objects of its own, some at a time, or none.
--
--   init_worker_by_lua_block { require("workers").start(OPTIONS, NAMESPACE, EVENTS) }
--
-- OPTIONS: a file with a list of sinks' options as JSON.
local cjson = require "cjson"
local evrec = require "evrec"

local workers = {}

-- A broadcaster with such a sink.
local function broadcaster_with(sink)
	local broadcaster = evrec.broadcaster {
		correlator = { burst_size = 1000000 },
		on_error = function(message, name) ngx.log(ngx.ERR, name, ": ", message) end,
	}
	broadcaster:start_recording_to_sink(evrec.sink.kubernetes(sink))
	return broadcaster
end

local function record(broadcaster, namespace, events)
	local recorder, n = broadcaster:new_recorder { component = "workers" }, 0
	ngx.timer.every(0.05, function()
		for _ = 1, 5 do
			if n < events then
				n = n + 1
				local name = ("worker-%d-%d"):format(ngx.worker.id(), n)
				local pod = { kind = "Pod", apiVersion = "v1", namespace = namespace, name = name }
				-- The second occurrence becomes the count of the first one.
				assert(recorder:event(pod, "Warning", "Drill", "recorded by a worker"))
				assert(recorder:event(pod, "Warning", "Drill", "recorded by a worker"))
			end
		end
		broadcaster:poll()
	end)
end

function workers.start(options, namespace, events)
	local file = assert(io.open(options))
	for _, sink in ipairs(cjson.decode(file:read "*a")) do
		record(broadcaster_with(sink), namespace, events)
	end
	file:close()
end

return workers
