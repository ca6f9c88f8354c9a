-- A server admits so much, and refuses what is more with 429: evrec finds out how much, and keeps to it. One style
-- after the other, as two at once would share what is admitted.
local evrec = require "evrec"
local process = require "process"
local socket = require "socket"

local refused_share = 0.05 -- of what is written, at most
local written_share = 0.75 -- of what the server admits, at least, from the third second on
local tries = 3 -- a few refusals in a row, which pause a sink for seconds, take a third of what it writes in one try
local patience = 300 -- seconds until all must be written, at most

local function sink(d)
	local options = d:options()
	options.max_in_flight = d.at_once
	return evrec.sink.kubernetes(options)
end

--- Records so many events at once in a style, by a sink that knows nothing of the server yet; waits until all are
--- written. Returns what was written, how many requests were refused, the seconds, and events a second from the third
--- one on: over the whole time if that is too short.
local function write(d, style, n, at_once)
	d:end_life(patience)
	d.at_once = at_once
	d:begin_life { style }
	local begun, early, early_at = process.time(), 0, nil
	d:burst(n)
	local stats, seconds
	repeat
		socket.sleep(0.02)
		stats, seconds = d.pair:stats(), process.time() - begun
		if seconds >= 2 and not early_at then
			early, early_at = stats.created, seconds
		end
	until stats.pending == 0 or seconds > patience
	if not early_at or seconds - early_at < 1 then
		early, early_at = 0, 0
	end
	return stats.created, stats.retries, seconds, (stats.created - early) / (seconds - early_at)
end

local function gets_enough(rate, admits)
	return rate >= written_share * admits
end

local function judge(d, style, admits, written, refused, seconds, rate)
	local text = ("%s: %d written, %d refused, in %.1f s; from the third second on %.0f a second of %.0f admitted ones")
		:format(style, written, refused, seconds, rate, admits)
	print(text)
	d:expect(refused > 0, "the server refused nothing: " .. text)
	d:expect(refused <= refused_share * written, "too many were refused: " .. text)
	d:expect(gets_enough(rate, admits), "too little gets through: " .. text)
end

--- A limited server is said to admit as many events a second as a sink with one request under way writes: the slower
--- of two tries, before and after, as the machine has other work. The events are enough for five seconds.
local function one_at_a_time(d)
	local n = math.max(d:scaled(500), 200)
	local _, _, _, before = write(d, "record", n, 1)
	for _, style in ipairs { "record", "series" } do
		local admits, written, refused, seconds, rate
		for _ = 1, tries do
			written, refused, seconds, rate = write(d, style, math.max(d:scaled(1500), math.ceil(5 * before)))
			local _, _, _, after = write(d, style, n, 1)
			admits, before = math.min(before, after), after
			if gets_enough(rate, admits) then
				break
			end
		end
		judge(d, style, admits, written, refused, seconds, rate)
	end
end

return {
	{ name = "one request at a time is admitted (proxy)", through = "proxy", sink = sink, perform = function(d)
		d:fault("one-at-a-time", 1, 0.005)
		one_at_a_time(d)
		d:fault()
	end },
	{
		name = "one request at a time is admitted",
		flags = { "--enable-priority-and-fairness=false", "--max-mutating-requests-inflight=1" },
		sink = sink,
		perform = one_at_a_time,
	},
	{ name = "50 a second are admitted (proxy)", through = "proxy", sink = sink, perform = function(d)
		for _, style in ipairs { "record", "series" } do
			d:fault "fifty-a-second" -- with all of its tokens
			-- Fewer events would not come up against the limit.
			judge(d, style, 50, write(d, style, math.max(d:scaled(500), 400)))
		end
		d:fault()
	end },
}
