-- Compares evrec with client-go on random traces, line by line. Shrinks, prints and keeps a trace on which the two
-- differ.
--
-- usage: run.lua [NAME=VALUE]...
--   kind=NAME      the kind of the traces, of kinds.lua (record)
--   seed=N         the seed of the first trace; each following trace has the next seed (default: from the time)
--   traces=N       run at least N traces (500)
--   steps=N        and at least N steps (150000)
--   jobs=N         number of worker processes (1)
--   programs=DIR   has the programs `oracle` and `trace_runner`, and gets the traces that differ (.)
--   replay=FILE    compare this one trace, and print each of its steps

local here = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path

local cjson = require "cjson"
local kinds = require "kinds"
local programs = require "programs"
local shrink = require "shrink"
local trace = require "trace"

local BATCH = 20000 -- lines of traces in one run of the programs
local SHOWN = 40 -- how many steps of a differing trace are printed: the last ones
local ENOUGH = 100000 -- steps; a run of as many must reach every case

local settings = { seed = os.time() % 1000000 * 1000, traces = 500, steps = 150000, jobs = 1, programs = ".",
	worker = 0, replay = "", kind = "record" }
for _, word in ipairs(arg) do
	local name, value = word:match("^(%l+)=(.*)$")
	if not name or settings[name] == nil then
		error(("unknown setting %q; the head of %s lists the settings"):format(word, arg[0]), 0)
	end
	settings[name] = type(settings[name]) == "number" and assert(math.tointeger(value), word) or value
end

-- ---- counts ----

local function new_tally()
	return { traces = 0, steps = 0, cut = 0, differ = 0, of = {} }
end

local function count(tally, name, n)
	tally.of[name] = (tally.of[name] or 0) + (n or 1)
end

local function count_step(tally, t, line, cases)
	tally.steps = tally.steps + 1
	local why = line:match('"why":"([%l_]+)"')
	if why then
		count(tally, why)
	end
	for _, option in ipairs { "key_func", "message_func", "spam_key_func" } do
		if why and t.options[option] then
			count(tally, option)
		end
	end
	for case in (cases or ""):gmatch('"([%l_]+)"') do
		count(tally, case)
		if case == "event_evicted" and t.options.lru_cache_size == 4096 then
			count(tally, "event_evicted_of_4096")
		end
	end
end

local function add(sum, tally)
	for _, name in ipairs { "traces", "steps", "cut", "differ" } do
		sum[name] = sum[name] + tally[name]
	end
	for name, n in pairs(tally.of) do
		count(sum, name, n)
	end
end

-- ---- a worker: runs the seeds seed + worker - 1, then every jobs-th ----

local function show(t, found, path)
	local lines = trace.lines(t)
	local file = assert(io.open(path, "w"))
	file:write(table.concat(lines, "\n"), "\n")
	file:close()
	print(("they differ in %s; shrunk to %d steps: make conformance TRACE=%s"):format(found.fields, #t.steps, path))
	for i, line in ipairs(lines) do
		if i == 1 or i > #lines - SHOWN then
			print("  " .. line)
		end
	end
	print("  oracle:  " .. found.oracle)
	print("  evrec:   " .. found.evrec)
end

local function shrink_and_show(run, seed, t, found)
	print(("at step %d of the trace of seed %d:"):format(found.line - 1, seed))
	local small = shrink(run, t, found.fields)
	show(small, run:compare({ small })[1], ("%s/differs-%s-%d.jsonl"):format(settings.programs, settings.kind,
		seed))
end

local function work(run)
	local jobs, tally = settings.jobs, new_tally()
	local seed = settings.seed + settings.worker - 1
	local function wanted(traces, steps)
		return traces * jobs < settings.traces or steps * jobs < settings.steps
	end
	while tally.differ == 0 and wanted(tally.traces, tally.steps) do
		local traces, seeds, lines = {}, {}, 0
		while lines < BATCH and wanted(tally.traces + #traces, tally.steps + lines) do
			local t = run.kind.generate.trace(seed)
			traces[#traces + 1], seeds[#seeds + 1] = t, seed
			lines, seed = lines + #t.steps, seed + jobs
		end
		local found = run:compare(traces, function(t, ...) count_step(tally, t, ...) end)
		local soonest
		tally.traces = tally.traces + #traces
		for i in ipairs(traces) do
			if found[i] == "collision" then
				tally.cut = tally.cut + 1
			elseif found[i] then
				tally.differ = tally.differ + 1
				soonest = soonest and found[soonest].line <= found[i].line and soonest or i
			end
		end
		if soonest then
			shrink_and_show(run, seeds[soonest], traces[soonest], found[soonest])
		end
	end
	print("tally " .. cjson.encode(tally))
	return true
end

-- ---- all workers ----

local function start(worker)
	local command = "'%s' '%s' kind=%s worker=%d jobs=%d seed=%d traces=%d steps=%d programs='%s' 2>&1"
	return assert(io.popen(command:format(arg[-1], arg[0], settings.kind, worker, settings.jobs, settings.seed,
		settings.traces, settings.steps, settings.programs)))
end

-- Sums the workers' counts, and prints every other line of their output. The second result is false if a worker failed.
local function gather(workers)
	local sum, complete = new_tally(), true
	for _, worker in ipairs(workers) do
		local tally
		for line in worker:lines() do
			tally = line:match("^tally (.*)$")
			if tally then
				add(sum, cjson.decode(tally))
			else
				print(line)
			end
		end
		complete = worker:close() and tally and complete
	end
	return sum, complete
end

-- Prints how many steps came to each of the names. Returns the names that no step came to.
local function report(names, sum)
	local out, missing = {}, {}
	for i, name in ipairs(names) do
		local n = sum.of[name] or 0
		out[i] = ("%s %d"):format(name, n)
		missing[#missing + 1] = n == 0 and name or nil
	end
	print(table.concat(out, ", "))
	return missing
end

local function search()
	io.stdout:setvbuf "line"
	print(("%s: seed %d; to repeat this run: make conformance SEED=%d TRACES=%d STEPS=%d"):format(settings.kind,
		settings.seed, settings.seed, settings.traces, settings.steps))
	local workers = {}
	for i = 1, settings.jobs do
		workers[i] = start(i)
	end
	local sum, complete = gather(workers)
	local missing = report(kinds[settings.kind].counted, sum)
	for _, name in ipairs(report(kinds[settings.kind].cases, sum)) do
		missing[#missing + 1] = name
	end
	local failed = sum.differ
	if not complete then
		failed = failed + 1
		print "a worker failed"
	end
	if #missing > 0 and sum.steps >= ENOUGH then
		failed = failed + 1
		print("no step came to: " .. table.concat(missing, ", "))
	end
	if sum.cut > 0 then
		print(("%d traces were cut because two of client-go's keys collide"):format(sum.cut))
	end
	print(("seeds %d, steps %d, differences %d"):format(sum.traces, sum.steps, sum.differ))
	print(("traces: %d passed, %d failed"):format(sum.traces - sum.differ, failed))
	return failed == 0
end

local function replay(run, path)
	local file = assert(io.open(path))
	local oracle, evrec = run:run(file:read("a"))
	file:close()
	if not oracle then
		print("a program failed: " .. evrec)
		return false
	end
	local good = true
	for line in io.lines(path) do
		local a, b = oracle(), evrec()
		local fields = programs.difference(a, b)
		print(line, "\n  oracle:  " .. a .. "\n  evrec:   " .. b .. (fields and "\n  differ in " .. fields or ""))
		good = good and not fields
	end
	return good
end

local function with_programs(f, ...)
	local run = programs.new(assert(kinds[settings.kind], "no such kind"), settings.programs,
		("run-%s-%d-%d"):format(settings.kind, settings.seed, settings.worker))
	local ok, result = pcall(f, run, ...)
	run:close()
	if not ok then
		error(result, 0)
	end
	return result
end

local good
if settings.replay ~= "" then
	settings.kind = io.lines(settings.replay)():find "max_series" and "series" or "record"
	good = with_programs(replay, settings.replay)
elseif settings.worker > 0 then
	good = with_programs(work)
else
	good = search()
end
os.exit(good)
