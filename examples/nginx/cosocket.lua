-- A sink of your own that needs nginx's sockets: sends each event as a line of JSON to a TCP port, such as a log
-- collector's. Cosockets work in timers alone, and not in the phases that record events. So a watch queues the events,
-- and a timer of each worker takes them out.
--
--     init_worker_by_lua_block { require("cosocket").start(broadcaster, "127.0.0.1", 5140) }
local cosocket = {}

local EACH = 0.1 -- seconds between two looks at the queue, and between two tries
local CLOSES = 2 -- seconds at most that a worker which exits still tries

--- Call it once in each worker, which has its own copy of the broadcaster. A watch gets every event as it was recorded,
--- neither combined nor limited. If the receiver is away, the queue fills, and further events are dropped for this
--- watch alone: `watch:stats().dropped` counts them. A worker that exits sends what is queued then, and nothing later.
---@param broadcaster evrec.Broadcaster
---@param host string
---@param port integer
function cosocket.start(broadcaster, host, port)
	local watch = broadcaster:watch { queue_length = 1000 }
	local line -- the one that was taken out of the queue and not sent yet

	--- Sends what the queue has. False: the receiver did not take all of it.
	local function send()
		line = line or watch:next()
		if not line then
			return true
		end
		local socket = ngx.socket.tcp()
		socket:settimeout(1000)
		local ok = socket:connect(host, port)
		while ok and line do
			ok = socket:send(line:to_json() .. "\n")
			if ok then
				line = watch:next()
			end
		end
		if ok then
			socket:setkeepalive()
		end
		return ok
	end

	local function look()
		local sent = send()
		if not ngx.worker.exiting() then
			ngx.timer.at(EACH, look)
			return
		end
		-- nginx has ended the timer, and begins none that is due later. A sleep is still possible.
		for _ = 1, CLOSES / EACH do
			if sent then
				return
			end
			ngx.sleep(EACH)
			sent = send()
		end
		ngx.log(ngx.ERR, "events were not sent to ", host, ":", port)
	end

	ngx.timer.at(0, look)
end

return cosocket
