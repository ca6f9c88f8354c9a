-- The goals, and whether they are met: from Lua 5.4 with a plain table as the object, the whole way to the sink,
-- against client-go's whole way, which is like with like, and against its correlator alone, which gets an event made
-- beforehand and writes nothing.
local goals = {}

local US, FLOOR = "5.4/recorder", "5.4/floor"
local THEM, THEIR_CORRELATOR = "client-go/recorder", "client-go/correlator"

-- The quotients of the medians, and of the fastest rounds; nil where something was not measured.
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
local function bytes(value) return ("%.0f bytes"):format(value) end
local function a_thousand(value) return ("%.1f in 1,000 events"):format(value * 1000) end

local function at_least(least) return function(value) return value >= least end end
local function at_most(most) return function(value) return value <= most end end
local function less_than(limit) return function(value) return value < limit end end

-- A list: name, what was wanted, measured, and measured in the fastest rounds, and whether it is met. That is said by
-- the medians; the fastest rounds are those that other processes disturbed least.
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
		local wanted = ("at least %d times"):format(least)
		goal(workload .. ": faster than client-go", wanted, at_least(least), times,
			ratio(time(workload, THEM), time(workload, US)))
		goal(workload .. ": than its correlator alone", wanted, at_least(least), times,
			ratio(time(workload, THEIR_CORRELATOR), time(workload, US)))
	end

	faster("duplicate", 100)
	goal("duplicate: of the floor", "at most 1.5 times", at_most(1.5), times,
		ratio(time("duplicate", US), time("duplicate", FLOOR)))
	faster("similar", 50)
	faster("unique", 6)
	goal("a count: allocations without the writes", "none", at_most(0), a_thousand,
		at(r.counts, "limited", US, "allocations"))
	local few, many = r.sizes[1], r.sizes[#r.sizes]
	goal(("%s keys: of the time with %s"):format(many or "many", few or "few"), "at most 3 times", at_most(3), times,
		ratio(at(r.keys, many, "5.4/limited"), at(r.keys, few, "5.4/limited")))
	goal("a key: bytes beyond its own", "at most 256", at_most(256), bytes, at(r.memory, many, "beyond"))
	goal("duplicate: a reference, of a table", "less than 1", less_than(1), times,
		ratio(time("duplicate", "5.4/reference"), time("duplicate", US)))
	return found
end

-- What became of the same events must be the same wherever it was told: one line for each that differs.
function goals.disagreements(r)
	local found = {}
	for workload, rows in pairs(r.counts) do
		local theirs = rows[THEIR_CORRELATOR]
		for id, row in pairs(rows) do
			if theirs and not id:find "floor" and (row.events ~= theirs.events or row.created ~= theirs.created or
					row.patched ~= theirs.patched or row.skipped ~= theirs.skipped) then
				table.insert(found, ("%s, %s: %d events made %d new, %d patched, %d skipped; with %s, %d: %d, %d, %d"):format(
					workload, id, row.events, row.created, row.patched, row.skipped, THEIR_CORRELATOR, theirs.events,
					theirs.created, theirs.patched, theirs.skipped))
			end
		end
	end
	table.sort(found)
	return found
end

return goals
