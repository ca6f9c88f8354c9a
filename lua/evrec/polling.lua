-- Polls broadcasters in a program that has an event loop: in HAProxy by a task, in nginx by timers. Polling begins at
-- the end of a call that may have given the broadcaster work (csrc/lua/drive.h), and ends after a second without work.
local core = require "evrec.core"

local polling = {}

local poll = core.broadcaster_methods.poll

-- The broadcasters of this Lua state that are polled. Weak: a broadcaster without references in the script is
-- collected.
local polled, last = setmetatable({}, { __mode = "v" }), 0
-- How often in a row each of them had nothing to do.
local rests = {}

local REST = 0.1 -- seconds between polls of a broadcaster that has nothing to do
local BUSY = 0.04 -- a broadcaster that is to be polled as soon as this has something under way
local DRAIN = 2 -- seconds at most that a worker which exits is held up
local RESTS_MAX = 10 -- so a stream of events that cost no request, as they are limited, begins one timer a second

local function add(broadcaster)
	local place = 1
	while polled[place] do
		place = place + 1
	end
	polled[place], rests[place] = broadcaster, 0
	last = math.max(last, place)
	return true
end

local function let_go(place)
	core.let_go(polled[place])
	polled[place] = nil
end

-- Polls one. Returns the seconds until its next poll; nil: it is polled no more.
local function poll_at(place)
	local broadcaster = polled[place]
	if not broadcaster then
		return nil
	end
	core.may_own(broadcaster) -- as a master has no event loop
	poll(broadcaster)
	local delay = core.poll_delay(broadcaster)
	rests[place] = delay == false and rests[place] + 1 or 0
	if delay == nil then
		polled[place] = nil
	elseif rests[place] > RESTS_MAX then
		let_go(place)
	else
		return delay or REST
	end
end

-- Polls all. Returns the seconds until the next poll; nil: none is left.
local function poll_all()
	local soonest
	for place = 1, last do
		local ok, delay = pcall(poll_at, place)
		delay = not ok and 1 or delay -- no memory
		soonest = delay and math.min(delay, soonest or delay) or soonest
	end
	return soonest
end

local function let_go_all()
	for place = 1, last do
		if polled[place] then
			let_go(place)
		end
	end
end

local function of_haproxy()
	local haproxy = _G.core
	local running = false

	-- No local variable of this function holds a broadcaster: the task's stack lives as long as the task.
	local function run()
		repeat
			local delay = poll_all()
			if delay then
				haproxy.msleep(math.ceil(delay * 1000))
			else
				running = false
			end
			-- HAProxy may have interrupted this task just before, and a broadcaster may have been added
			-- meanwhile.
		until not delay and not next(polled)
	end

	return function(broadcaster)
		if not running then
			haproxy.register_task(run)
			running = true
		end
		return add(broadcaster)
	end
end

local function of_nginx()
	local ngx = _G.ngx
	local waiting, draining = false, false

	-- In a worker that exits, nginx accepts only timers without a delay. A sleep is still possible.
	local function drain()
		if draining then
			return
		end
		draining = true
		local slept, delay = 0, poll_all()
		while delay and delay <= BUSY and slept < DRAIN do
			ngx.sleep(delay)
			slept, delay = slept + delay, poll_all()
		end
		draining = false
		let_go_all()
	end

	-- nginx drops a timer if too many run, or if it has no connection left for one. Then the collector finds the timer's
	-- argument, and the next recording call begins another timer.
	local function new_guard()
		local guard = _G.newproxy(true)
		getmetatable(guard).__gc = function()
			waiting = false
			let_go_all()
		end
		return guard
	end

	local start

	local function run(_, guard)
		getmetatable(guard).__gc = nil
		waiting = false
		if ngx.worker.exiting() then
			return drain()
		end
		local delay = poll_all()
		if delay and not start(delay) then
			let_go_all()
		end
	end

	function start(delay)
		if not waiting then
			local guard = new_guard()
			waiting = ngx.timer.at(delay, run, guard) and true or false
			if not waiting then
				getmetatable(guard).__gc = nil
			end
		end
		return waiting
	end

	return function(broadcaster)
		-- The master has no event loop, and its workers have a copy of the broadcaster each.
		if ngx.get_phase() == "init" then
			return false
		end
		-- Not only in the timer: no timer begins in exit_worker_by_lua, whose event may be the worker's first one.
		core.may_own(broadcaster)
		return (draining or start(0)) and add(broadcaster)
	end
end

--- The function that takes over a broadcaster for the program that runs the script, and returns whether it did; nil:
--- the script polls.
---@param host "nginx"|"haproxy"|"lua"
---@return (fun(broadcaster: evrec.Broadcaster): boolean)?
function polling.of(host)
	return host == "haproxy" and of_haproxy() or host == "nginx" and _G.ngx.timer and of_nginx() or nil
end

return polling
