-- The goals, and whether they are met: from Lua 5.4 with a plain table as the object, the whole way to the sink,
-- against client-go's correlator alone, which gets an event made beforehand.
local goals = {}

local US, THEM, FLOOR = "5.4/recorder", "client-go/correlator", "5.4/floor"

-- nil where something was not measured
local function ratio(of, to)
	return of and to and of.median / to.median
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

function goals.check(r)
	local found = {}
	local function goal(name, value, show, wanted, met)
		table.insert(found, {
			name = name, wanted = wanted, value = value and show(value) or "not measured", met = value and met(value),
		})
	end
	local function faster(workload, least)
		goal(workload .. ": faster than client-go", ratio(at(r.ns, workload, THEM), at(r.ns, workload, US)), times,
			("at least %d times"):format(least), function(value) return value >= least end)
	end

	faster("duplicate", 100)
	goal("duplicate: of the floor", ratio(at(r.ns, "duplicate", US), at(r.ns, "duplicate", FLOOR)), times,
		"at most 1.5 times", function(value) return value <= 1.5 end)
	faster("similar", 50)
	faster("unique", 6)
	goal("a count: allocations without the writes", at(r.counts, "limited", US, "allocations"), a_thousand, "none",
		function(value) return value == 0 end)
	local least, most = r.sizes[1], r.sizes[#r.sizes]
	goal(("%s keys: of the cost of %s"):format(most or "many", least or "few"),
		ratio(at(r.keys, most, "5.4/limited"), at(r.keys, least, "5.4/limited")), times,
		"at most 3 times", function(value) return value <= 3 end)
	goal("a key: bytes beyond its own", at(r.memory, most, "beyond"), bytes, "at most 256",
		function(value) return value <= 256 end)
	goal("duplicate: a reference, of a table", ratio(at(r.ns, "duplicate", "5.4/reference"), at(r.ns, "duplicate", US)),
		times, "less than 1", function(value) return value < 1 end)
	return found
end

-- What became of the same events must be the same wherever it was told: one line for each that differs.
function goals.disagreements(r)
	local found = {}
	for workload, rows in pairs(r.counts) do
		local theirs = rows[THEM]
		for id, row in pairs(rows) do
			if theirs and not id:find "floor" and (row.events ~= theirs.events or row.created ~= theirs.created or
					row.patched ~= theirs.patched or row.skipped ~= theirs.skipped) then
				table.insert(found, ("%s, %s: %d events made %d new, %d patched, %d skipped; with %s, %d: %d, %d, %d"):format(
					workload, id, row.events, row.created, row.patched, row.skipped, THEM, theirs.events,
					theirs.created, theirs.patched, theirs.skipped))
			end
		end
	end
	table.sort(found)
	return found
end

return goals
