-- Measures how long recording calls take at worst just after the API server was frozen, on Lua 5.4 with its collector
-- running as usual. The baseline is the same loop around a Lua function that only computes, for as long as a call about
-- a new object takes: it shows how much of the worst times comes from the machine's other work. Page faults and waits,
-- as for a lock, are counted in the second half of the calls.
--
-- usage: lua5.4 worst_call.lua CALLS ROUNDS
local cluster = require "cluster"
local evrec = require "evrec"
local ticks = require "ticks"

local calls, rounds = tonumber(arg[1]), tonumber(arg[2])
local goal = 8 -- microseconds, of the 99.9th percentile
local goal_of_the_longest = 300 -- microseconds, with a real-time priority

local function measure_some(call, objects, times, from, to)
	for i = from, to do
		local object = objects[i]
		local begun = ticks.now()
		call(object)
		times[i] = ticks.now() - begun
	end
end

--- The nanoseconds of `calls` calls, sorted; and how many page faults and waits the second half of the calls had.
local function measure(call, objects)
	local times, half = {}, calls // 2
	for i = 1, calls do
		times[i] = 0
	end
	measure_some(call, objects, times, 1, half)
	local faults, waits = ticks.usage()
	measure_some(call, objects, times, half + 1, calls)
	local faults_now, waits_now = ticks.usage()
	table.sort(times)
	return times, faults_now - faults, waits_now - waits
end

local function percentiles(times, faults, waits)
	local function at(share)
		return times[math.max(1, math.ceil(#times * share))] / 1000
	end
	return { at(0.5), at(0.99), at(0.999), at(1), faults, waits }
end

local function median(rows, column)
	local values = {}
	for i, row in ipairs(rows) do
		values[i] = row[column]
	end
	table.sort(values)
	return values[(#values + 1) // 2]
end

local function objects(different)
	local list, made = {}, {}
	for i = 1, different do
		made[i] = { kind = "Pod", apiVersion = "v1", namespace = "default", name = "worst-" .. i }
	end
	for i = 1, calls do
		list[i] = made[(i - 1) % different + 1]
	end
	return list
end

--- A recorder into a server that has taken one event, and was then frozen.
local function recorder()
	local options = cluster.connection()
	options.max_pending = 2 * calls
	local b = evrec.broadcaster { on_error = false }
	b:start_recording_to_sink(evrec.sink.kubernetes(options))
	local r = b:new_recorder { component = "worst", host = "here" }
	assert(r:event({ kind = "Pod", apiVersion = "v1", name = "first" }, "Normal", "Worst", "before"))
	assert(b:flush(30))
	cluster.control "freeze"
	return b, r
end

--- A function that computes, and takes as many microseconds.
local function computation(microseconds)
	local text, steps = ("x"):rep(20), 1
	local function compute()
		for _ = 1, steps do
			text:byte(1, -1)
		end
	end
	repeat
		steps = steps + 1
	until percentiles(measure(compute, {}))[1] >= microseconds
	return compute
end

local function measure_events(list)
	local b, r = recorder()
	local function record(object)
		return r:event(object, "Normal", "Worst", "a call")
	end
	local times, faults, waits = measure(record, list)
	b:shutdown(0)
	cluster.control "thaw"
	return times, faults, waits
end

local compute

local function measure_baseline(list)
	compute = compute or computation(percentiles(measure_events(list))[1])
	return measure(compute, list)
end

local cases = {
	{ "the baseline: a call that only computes", calls, measure_baseline },
	{ "events about new objects", calls, measure_events },
	{ "events about 1,000 objects, again and again", 1000, measure_events },
}

print(("%-46s %9s %9s %9s %9s %9s %9s"):format("microseconds, median of " .. rounds .. " rounds", "p50", "p99", "p99.9",
	"max", "faults", "waits"))
for _, case in ipairs(cases) do
	local rows = {}
	for round = 1, rounds do
		rows[round] = percentiles(case[3](objects(case[2])))
		collectgarbage()
	end
	print(("%-46s %9.2f %9.2f %9.2f %9.2f %9d %9d"):format(case[1], median(rows, 1), median(rows, 2), median(rows, 3),
		median(rows, 4), median(rows, 5), median(rows, 6)))
	case.worst, case.longest, case.faults, case.waits = median(rows, 3), median(rows, 4), median(rows, 5), median(rows, 6)
end
local function judge(name, what, value, most)
	local met = value <= most and "met" or "NOT met"
	print(("%s: %s: %.2f, the goal is %d: %s"):format(name, what, value, most, met))
end
for i = 2, #cases do
	judge(cases[i][1], "us of the p99.9", cases[i].worst, goal)
	judge(cases[i][1], "us of the longest", cases[i].longest, goal_of_the_longest)
	judge(cases[i][1], "page faults", cases[i].faults, 0)
	judge(cases[i][1], "waits", cases[i].waits, 0)
end
