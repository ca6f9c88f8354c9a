-- The goals, and whether evrec meets them. evrec is measured end to end: from a call in Lua 5.4 with a plain table as
-- the object, to the sink. The goals of speed compare it with client-go end to end, and with its correlator alone. The
-- correlator alone gets an event that was made beforehand, and writes nothing.
local goals = {}

local US, BASELINE = "5.4/recorder", "5.4/baseline"
local THEM, THEIR_CORRELATOR = "client-go/recorder", "client-go/correlator"

-- The quotients of the medians, and of the fastest rounds. Nil if one of the two was not measured.
local function ratio(of, to)
	if of and to then
		return of.median / to.median, of.min / to.min
	end
end

local function at(t, ...)
	for i = 1, select("#", ...) do
		local key = select(i, ...)
		t = t and key and t[key]
	end
	return t
end

local function times(value) return ("%.1f times"):format(value) end
local function ns(value) return ("%.0f ns"):format(value) end
local function ms(value) return ("%.1f ms"):format(value * 1000) end
local function count(value) return ("%.0f"):format(value) end
local function bytes(value) return ("%.0f bytes"):format(value) end
local function a_thousand(value) return ("%.1f in 1,000 events"):format(value * 1000) end

local function at_least(least) return function(value) return value >= least end end
local function at_most(most) return function(value) return value <= most end end
local function less_than(limit) return function(value) return value < limit end end

-- A list of goals: name, the wanted value, the measured value, the value in the fastest rounds, and whether the goal is
-- met. The medians decide that. The fastest rounds are those that other processes disturbed least.
function goals.check(r)
	local found = {}
	local function goal(name, wanted, met, show, value, best)
		table.insert(found, {
			name = name, wanted = wanted, value = value and show(value), best = best and show(best),
			met = value and met(value),
		})
	end
	local function time(workload, row) return at(r.ns, workload, row) end
	local function faster(workload, least)
		local wanted = ("at least %g times"):format(least)
		goal(workload .. ": faster than client-go", wanted, at_least(least), times,
			ratio(time(workload, THEM), time(workload, US)))
		goal(workload .. ": faster than its correlator alone", wanted, at_least(least), times,
			ratio(time(workload, THEIR_CORRELATOR), time(workload, US)))
	end

	-- Nanoseconds depend on the machine: the goals are those of the one that the published results are of.
	local function takes(workload, row, most)
		local t = time(workload, row) or {}
		local name, wanted = ("%s: an event, %s"):format(workload, row), ("at most %d ns"):format(most)
		goal(name, wanted, at_most(most), ns, t.median, t.min)
	end

	faster("duplicate", 100)
	goal("duplicate: time relative to the baseline", "at most 1.5 times", at_most(1.5), times,
		ratio(time("duplicate", US), time("duplicate", BASELINE)))
	faster("similar", 50)
	faster("unique", 6.5)
	takes("unique", "5.4/recorder", 1000)
	takes("unique", "c/recorder", 560)
	takes("unique", "luajit/recorder", 1300)
	takes("similar", "5.4/recorder", 380)
	takes("duplicate", "5.4/correlator", 900)
	goal("unique: instructions, c/recorder", "at most 5000", at_most(5000), count,
		at(r.instructions, "unique", "c/recorder"))
	goal("a count that is not written: allocations", "none", at_most(0), a_thousand,
		at(r.counts, "limited", US, "allocations"))
	local few, many = r.sizes[1], r.sizes[#r.sizes]
	goal(("%s keys: time relative to %s keys"):format(many or "many", few or "few"), "at most 3 times", at_most(3), times,
		ratio(at(r.keys, many, "5.4/limited"), at(r.keys, few, "5.4/limited")))
	goal(("%s keys: the same, the correlator from C"):format(many or "many"), "at most 3.5 times", at_most(3.5),
		times, ratio(at(r.keys, many, "c/correlator"), at(r.keys, few, "c/correlator")))
	goal("a key: bytes besides its strings", "at most 256", at_most(256), bytes, at(r.memory, many, "beyond"))
	goal("duplicate: a reference relative to a table", "less than 1", less_than(1), times,
		ratio(time("duplicate", "5.4/reference"), time("duplicate", US)))
	goal("a write that waits: bytes", "at most 700", at_most(700), bytes, at(r.once, "waiting", "median"))
	local start = r.once.require or {}
	goal('require "evrec"', "at most 3 ms", at_most(0.003), ms, start.median, start.min)
	return found
end

-- All programs must create, patch and skip as many of the same events. One line for each program that does not.
function goals.disagreements(r)
	local found = {}
	for workload, rows in pairs(r.counts) do
		local theirs = rows[THEIR_CORRELATOR]
		for id, row in pairs(rows) do
			if theirs and not id:find "baseline" and (row.events ~= theirs.events or row.created ~= theirs.created or
					row.patched ~= theirs.patched or row.skipped ~= theirs.skipped) then
				table.insert(found, ("%s, %s: of %d events %d new, %d patched, %d skipped; with %s, of %d: %d, %d, %d"):format(
					workload, id, row.events, row.created, row.patched, row.skipped, THEIR_CORRELATOR, theirs.events,
					theirs.created, theirs.patched, theirs.skipped))
			end
		end
	end
	table.sort(found)
	return found
end

return goals
