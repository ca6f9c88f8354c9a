-- The broadcaster of `evrec record`. While it is open the state file is its own, and other processes wait for it.
local core = require "evrec.core"
local evrec = require "evrec"

local drops = require "evrec.cli.drops"
local sources = require "evrec.cli.sources"
local terminal = require "evrec.cli.terminal"

local record_session = {}
record_session.__index = record_session

local PAUSE = 0.02 -- seconds between two tries to get the state file
local TURN = 0.05 -- longer than the pause, so that a process that waits gets its turn
local LONGEST = 1 -- seconds that the state file is kept while lines come
local LOOK = 0.2 -- seconds between two looks at a write that waits
local PATIENCE = 3 -- seconds after which a lasting error is printed while lines may come, though evrec still tries
local UNLIMITED = 1000000000 -- tokens, and tokens a second: a script records only events that people are to see

-- The names of errors that lose no event, and of those after which the sink tries again.
local HARMLESS = { state = true, notes = true, cardinality = true, warning = true }
local RETRIED = { transport = true, server = true, throttled = true, unauthorized = true, store = true }

-- Without a limit a bucket is filled at once, as a limited call before may have left it empty in the state file.
local function correlator(arguments)
	return {
		burst_size = arguments.burst_size or UNLIMITED,
		qps = arguments.qps or not arguments.burst_size and UNLIMITED or nil,
	}
end

--- Makes a session, which is not open yet.
---@param arguments table of `evrec record`
---@param make fun(options: table): evrec.Sink
---@param options table for `make`
function record_session.new(arguments, make, options)
	return setmetatable({
		make = make, options = options, timeout = arguments.timeout,
		clock = { now = function() return core.monotonic() end }, -- a wait does not end later if the time is set back
		has_named_state = arguments.state_file ~= nil, -- else the state file has its default path
		told = {}, -- what the broadcaster reported since the last look
		troubles = {}, -- messages of errors after which evrec tries again; not printed yet
		lost = false, lost_count = 0, -- occurrences
		dropped = 0, -- the broadcaster's drops at the last look at an error
		correlator = correlator(arguments),
		source = { component = arguments.component, host = arguments.host },
	}, record_session)
end

-- ---- messages ----

-- A damaged state file needs no advice, as the next write replaces it. A file that the user named may be anything.
local function with_advice(message, is_named)
	return (message:gsub("is not a state file of evrec$", is_named and "%0; name another file by --state-file"
		or "%0; delete it, and counts begin anew"))
end

-- Names standard output as a shell does, not as a sink's path.
local function with_stream(message)
	return (message:gsub("^file: %-: ", "standard output: "))
end

-- Refused calls were told one by one.
local function is_refusal(message)
	return message:find "^%d+ recording calls? w%a+ refused" ~= nil
end

local function print_troubles(self)
	for _, message in ipairs(self.troubles) do
		terminal.tell(message)
		self.reported = true
	end
	self.troubles = {}
end

-- Prints what the broadcaster reported since the last call, but for errors after which it tries again: these wait.
local function print_reports(self)
	while self.told[1] do
		local report = table.remove(self.told, 1)
		local message = with_stream(report.message)
		if RETRIED[report.name] then
			if message ~= self.troubles[#self.troubles] then
				self.troubles[#self.troubles + 1] = message
				self.trouble_began = self.troubles[2] and self.trouble_began or self.clock:now()
			end
		elseif not is_refusal(report.message) then
			terminal.tell(with_advice(message, self.has_named_state))
			self.reported = self.reported or not HARMLESS[report.name]
		end
	end
end

--- Prints the errors that the broadcaster reported since the last call. An error after which it tries again is printed
--- once it has lasted for a while, or an event was lost since the last error; and not at all if all events were written
--- before.
function record_session:tell()
	local any = self.told[1] or self.troubles[1]
	print_reports(self)
	if not any or not self.broadcaster then
		return
	end
	local stats = self.broadcaster:stats()
	local dropped = drops.count(stats)
	if self.troubles[1] and (dropped > self.dropped or self.clock:now() - self.trouble_began >= PATIENCE) then
		print_troubles(self)
	elseif stats.pending == 0 then
		self.troubles = {}
	end
	self.dropped = dropped
end

-- ---- open and closed ----

-- Calls a constructor, which raises if an argument of the command is out of range.
local function made(constructor, ...)
	local ok, result, message = pcall(constructor, ...)
	if not ok or not result then
		terminal.fail(ok and 1 or 2, sources.reworded(ok and message or result))
	end
	return result
end

local function new_broadcaster(self)
	local told = {}
	local broadcaster = made(evrec.broadcaster, {
		correlator = self.correlator,
		on_error = function(message, name) told[#told + 1] = { message = message, name = name } end,
	})
	made(broadcaster.start_recording_to_sink, broadcaster, made(self.make, self.options))
	broadcaster:poll()
	return broadcaster, told
end

-- Opens it unless it is. The state file is its own then, unless another process kept it for longer than the timeout.
local function open(self)
	local deadline = self.clock:now() + self.timeout
	while not self.broadcaster do
		local broadcaster, told = new_broadcaster(self)
		local last = told[#told]
		local busy = last and last.name == "state" and last.message:find("in use", 1, true)
		if not busy or self.clock:now() >= deadline then
			self.broadcaster, self.told, self.reported, self.dropped = broadcaster, told, false, 0
			self.recorder = made(broadcaster.new_recorder, broadcaster, self.source)
			self.opened = self.clock:now()
		else
			broadcaster:shutdown(0)
			core.pause(PAUSE)
		end
	end
end

-- Waits until the events are written, at most for the timeout, and prints errors meanwhile. Returns the remaining
-- seconds, and why events were lost, if some were.
local function wait_for_writes(self)
	local left, lost, why_lost = self.timeout, 0, nil
	repeat
		local seconds = math.min(LOOK, left)
		local written, stats, why = self.broadcaster:flush(seconds)
		self:tell()
		left = left - seconds
		if drops.count(stats) > lost then
			lost, why_lost = drops.count(stats), why
		end
	until written or stats.pending == 0 or left <= 0
	return left, why_lost
end

-- Writes the waiting events, and ends the broadcaster. Results as of broadcaster:shutdown.
local function shut_down(self, lines_may_come)
	local timeout, why_lost = self.timeout, nil
	if lines_may_come then
		timeout, why_lost = wait_for_writes(self)
	end
	local written, stats, why = self.broadcaster:shutdown(timeout)
	if written and why_lost then
		return false, stats, why_lost
	end
	return written, stats, why
end

--- Writes the waiting events, and lets the state file go. The next event opens the session again.
---@param lines_may_come? boolean lines may still come: print errors while they last
function record_session:close(lines_may_come)
	if not self.broadcaster then
		return
	end
	local written, stats, why = shut_down(self, lines_may_come)
	self.broadcaster, self.recorder = nil, nil
	self.lost_count = self.lost_count + drops.count(stats)
	print_reports(self)
	if not written and not is_refusal(why) then
		self.lost = true
		print_troubles(self)
		if not self.reported then
			if (stats.dropped.closed or 0) ~= 0 then
				-- The name of the drop's cause says less than the option's name.
				why = ("not written within %g s (--timeout): %s"):format(self.timeout, (why:gsub(": closed%f[;%z]", "")))
			end
			terminal.tell(why)
		end
	end
	self.troubles = {}
	return stats
end

--- Lets the state file go if nothing is to be written for a while. Without a state file counts are in memory alone, so
--- that the session stays open.
function record_session:rest()
	if self.options.state_file then
		self:close(true)
	elseif self.broadcaster then
		self.broadcaster:poll()
		self:tell()
	end
end

--- Records an event.
---@param event evrec.EventInput
---@return boolean? ok, string? message, string? name as of recorder:emit
function record_session:emit(event)
	if self.broadcaster and self.options.state_file and self.clock:now() - self.opened > LONGEST then
		self:close(true)
		core.pause(TURN)
	end
	open(self)
	return self.recorder:emit(event)
end

return record_session
