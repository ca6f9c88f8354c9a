-- One fire drill: evrec records into a server while something happens to it; afterwards every event must be there.
-- Each event is written twice, by a broadcaster of each style: "record" counts as tools/record, by core/v1; "series" as
-- tools/events, by events.k8s.io/v1.
--
--   return {
--       { name = "the server is frozen for 20 s", perform = function(d)
--           d:record(2)
--           d:cluster "freeze"
--           d:record(20)
--           d:cluster "thaw"
--           d:record(2)
--       end },
--   }
--
-- Further fields of a drill:
--   through = "proxy"             evrec's requests go through the fault proxy; "otlp_proxy": through the collector's
--   receiver = "collector"        the sink writes to the collector, and the API server has no part in the drill
--   before = function() ... end   runs first
--   flags = { "--flag", ... }     kube-apiserver has these flags too while the drill lasts
--   account = "admin"             evrec uses this account instead of the recorder's
--   sink = function(d) ... end    makes the sink of the style d.style
--   events = function(d) ... end  reads the events that the sink wrote, and how many of them are there twice
--   twice = "why"                 events may be there twice
--   losses = { cause = true }     events may be dropped for this cause, and for no other
--   environment = { NAME = value }  variables of the process that performs the drill
--   skip = "why"                  the drill is not performed
--
-- The broadcasters, from their start to their shutdown, are a life of the drill. A drill may have several lives:
-- d:end_life(seconds), d:begin_life(styles): without styles, both.
local Ledger = require "ledger"
local Pair = require "pair"
local cluster = require "cluster"
local evrec = require "evrec"
local fixtures = require "fixtures"
local http = require "socket.http"
local process = require "process"
local socket = require "socket"
local tmpfiles = require "tmpfiles"

local rate = 100 -- new events a second
local regulars = 10 -- objects that get the same event again and again
local cached = 200 -- entries in each of the caches
local both = { "record", "series" }
local warm_up = 2 * cached -- events that fill the caches and lengthen the queues before memory is measured first
local settling = 150 -- seconds until everything must be written: several of the longest backoffs
-- Bytes that memory may grow by for each sink: libcurl may hold 32 transfers and 4 connections more than before, at
-- most 32 KiB and 88 KiB each.
local growth = (32 * 32 + 4 * 88) * 1024
-- A sink for a collector also keeps the buffer of its largest body, of 1 MiB; buffers grow by half of their size.
local body_buffer = 1536 * 1024

local Drill = {}
Drill.__index = Drill

--- Scales seconds of a drill in full length to this run.
function Drill:scaled(seconds)
	return seconds * self.scale
end

-- ---- recording ----

-- The time from the clock that evrec reads; os.time may be a tick behind.
local function seconds_now()
	return math.floor(socket.gettime())
end

function Drill:emit(name, message, namespace)
	namespace = namespace or self.namespace
	local from = seconds_now()
	local pod = { kind = "Pod", apiVersion = "v1", namespace = namespace, name = name }
	self.pair:event(pod, "Normal", "Drill", message or "what happens under fire")
	local to = seconds_now()
	for _, style in ipairs(self.styles) do
		self.ledgers[namespace]:add(style, name, from, to)
	end
	self.recorded = self.recorded + 1
	if self.recorded % 10 == 0 then
		self:check_equations()
	end
end

--- Notes a fault if the condition does not hold; the drill goes on.
function Drill:expect(holds, fault)
	if not holds then
		self.faults[fault] = fault
	end
end

function Drill:check_equations()
	for _, broadcaster in ipairs(self.pair.broadcasters) do
		local fault = fixtures.fault(broadcaster:stats())
		if fault and not self.faults.equation then
			self.faults.equation = "the equation does not hold: " .. fault
		end
	end
end

--- Records at the rate until `over()` is true: for every new event also one that was there before.
function Drill:record_until(over)
	local begun, n = process.time(), 0
	while not over() do
		n, self.number = n + 1, self.number + 1
		for _, namespace in ipairs(self.namespaces) do
			self:emit("new-" .. self.number, nil, namespace)
			self:emit(("regular-%d-%d"):format(self.life, self.number % regulars), nil, namespace)
		end
		socket.sleep(math.max(0, begun + n / rate - process.time()))
	end
end

function Drill:after(seconds)
	local deadline = process.time() + self:scaled(seconds)
	return function() return process.time() >= deadline end
end

function Drill:record(seconds)
	self:record_until(self:after(seconds))
end

--- Records `n` new events at once.
function Drill:burst(n)
	for _ = 1, n do
		self.number = self.number + 1
		for _, namespace in ipairs(self.namespaces) do
			self:emit("new-" .. self.number, nil, namespace)
		end
	end
end

-- ---- what is done to the server ----

function Drill.cluster(_, verb, ...)
	cluster.control(verb, ...)
end

--- Goes on recording while the command `verb` of kube/cluster.sh runs.
function Drill:record_while(verb)
	local done = cluster.scratch .. "/done"
	os.remove(done)
	local command = ("(spec/support/kube/cluster.sh %s '%s' >'%s.log' 2>&1; echo $? >'%s.new'; mv '%s.new' '%s') &")
	os.execute(command:format(verb, cluster.dir, done, done, done, done))
	self:record_until(function() return io.open(done) ~= nil end)
	assert(cluster.read(done) == "0\n", cluster.read(done .. ".log"))
end

-- The port of the drill's proxy.
local function port_of(d, kind)
	return os.getenv("EVREC_DRILL_" .. d.through:upper() .. (kind or ""))
end

local function ask_proxy(d, path)
	local answer, code = http.request(("http://127.0.0.1:%s/%s"):format(port_of(d, "_CONTROL"), path))
	assert(code == 200, answer)
	return answer
end

--- From now on the proxy does that fault to a share of the requests; without a kind, to none.
function Drill:fault(kind, share, delay)
	ask_proxy(self, ("fault?kind=%s&share=%s&delay=%.3fs"):format(kind or "", share or 1, delay or 0))
end

--- Records for so many seconds, and then until the fault was done to at least one request.
function Drill:record_until_met(seconds)
	self:record(seconds)
	self:record_until(function() return tonumber(ask_proxy(self, "met")) > 0 end)
end

--- Waits until nothing is under way, then `moment` unscaled seconds; returns the stats.
function Drill:calm(moment)
	local stats = self.pair:flush(settling)
	socket.sleep(moment or 0)
	return stats
end

-- ---- the life of a drill ----

local function options_of(d)
	local options = cluster.connection(d.account)
	if d.through == "proxy" then
		options.server = d:proxy_url()
	end
	options.api = d.style == "series" and "events.k8s.io/v1" or nil
	return d:add_options(options)
end

--- Options of evrec.sink.kubernetes, for drills that make a sink of their own.
Drill.options = options_of

--- Adds the options that sinks of all kinds have in a drill.
function Drill:add_options(options)
	options.timeout = math.max(0.5, self:scaled(10))
	options.name = self.style
	if self.style == "series" then
		options.refresh_interval, options.max_series = 1, cached
	end
	return options
end

--- The proxy, for clients.
function Drill:proxy_url()
	return "https://127.0.0.1:" .. port_of(self)
end

function Drill:add_namespace()
	local name = self.receiver and "drill" or cluster.namespace()
	table.insert(self.namespaces, name)
	self.ledgers[name] = Ledger.new()
	return name
end

--- Each life has regular objects of its own, as a new broadcaster does not know the events that are already there.
function Drill:begin_life(styles)
	self.life = self.life + 1
	self.styles = styles or both
	local broadcasters = {}
	for i, style in ipairs(self.styles) do
		broadcasters[i] = evrec.broadcaster {
			correlator = { lru_cache_size = cached, burst_size = 1000000 },
			on_error = function(message, name)
				local told = self.errors[name] or ""
				if not told:find(message, 1, true) then
					self.errors[name] = told == "" and message or told .. "; " .. message
				end
			end,
		}
		self.style = style
		broadcasters[i]:start_recording_to_sink(self:make_sink())
	end
	self.pair = Pair.new(broadcasters)
end

--- Gives the waiting writes so many unscaled seconds; returns the stats, and adds them to the drill's.
function Drill:end_life(seconds)
	local stats = self.pair:shutdown(seconds)
	self:check_equations()
	for cause, n in pairs(stats.dropped) do
		self.dropped[cause] = (self.dropped[cause] or 0) + n
	end
	self.retries = self.retries + stats.retries
	return stats
end

local function make_sink(d)
	return evrec.sink.kubernetes(d:options())
end

-- Restarts the server unless it has these flags and no more: the drill before may have had the same.
local function give_flags(flags)
	local path, words = cluster.scratch .. "/flags", table.concat(flags, " ")
	if tmpfiles.read(path) ~= words then
		cluster.control("restart", unpack(flags))
		cluster.write(path, words)
	end
end

local function start(plan, scale)
	local d = setmetatable({
		name = plan.name, through = plan.through, receiver = plan.receiver, account = plan.account, scale = scale,
		losses = plan.losses or {}, twice = plan.twice,
		ledgers = {}, namespaces = {}, faults = {}, errors = {}, dropped = {},
		recorded = 0, retries = 0, number = 0, life = 0,
		make_sink = plan.sink or make_sink, read_events = plan.events,
	}, Drill)
	if plan.before then
		plan.before()
	end
	if not d.receiver then
		give_flags(plan.flags or {})
	end
	d.namespace = d:add_namespace()
	d:begin_life()
	d:burst(warm_up)
	d.pair:flush(settling)
	d.memory = { before = process.memory() }
	return d
end

local function fetch(d, namespace)
	if d.read_events then
		return d:read_events()
	end
	return cluster.events(namespace)
end

-- Waits until nothing is pending, and checks memory and drops. An event dropped for one of the drill's `losses` is no
-- fault; compare() then checks that all others are there.
local function settle(d)
	local stats = d.pair:flush(settling)
	d.memory.after = process.memory()
	if stats.pending ~= 0 then
		d.faults.pending = ("%d are still pending"):format(stats.pending)
	end
	d:end_life(1)
	d.result = { events = 0, lost = 0, duplicates = 0, dropped = 0, retries = d.retries }
	for cause, n in pairs(d.dropped) do
		d.result.dropped = d.result.dropped + n
		if n > 0 and not d.losses[cause] then
			d.faults.dropped = ("%d dropped, %s"):format(n, cause)
		end
	end
end

local function compare(d)
	local result = d.result
	local inexact = {}
	for _, namespace in ipairs(d.namespaces) do
		local events, twice = fetch(d, namespace)
		local seen = d.ledgers[namespace]:compare(events)
		result.events = result.events + seen.events
		result.lost = result.lost + seen.lost
		result.duplicates = result.duplicates + seen.duplicates + (twice or 0)
		if namespace ~= d.doomed then
			for _, text in ipairs(seen.inexact) do
				inexact[#inexact + 1] = text
			end
		end
	end
	result.lost = result.lost - result.dropped
	result.exact = #inexact == 0 and result.lost == 0
	if result.lost ~= 0 or result.duplicates ~= 0 and not d.twice then
		d.faults.server = ("%d lost, %d twice"):format(result.lost, result.duplicates)
	end
	if #inexact > 0 then
		d.faults.counts = table.concat(inexact, "; ", 1, math.min(3, #inexact))
	end
	local most = #both * (growth + (d.receiver and body_buffer or 0))
	if d.memory.after and d.memory.after - d.memory.before > most then
		d.faults.memory = "memory has grown"
	end
end

--- Performs a drill, and returns its result, a table of plain values.
function Drill.perform(plan, scale)
	local d = start(plan, scale)
	plan.perform(d)
	settle(d)
	compare(d)
	for _, namespace in ipairs(d.receiver and {} or d.namespaces) do
		cluster.clear(namespace)
	end
	local faults = {}
	for _, fault in pairs(d.faults) do
		faults[#faults + 1] = fault
	end
	table.sort(faults)
	local result = d.result
	result.name, result.recorded, result.faults, result.errors = d.name, d.recorded, faults, d.errors
	result.before, result.after = d.memory.before, d.memory.after
	return result
end

return Drill
