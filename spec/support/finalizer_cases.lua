-- Cases in which the collector calls a finalizer at any allocation, also while a function of evrec runs. Whatever the
-- finalizer does with the same objects, the function continues with its own copies, or returns that they are closed.
--
-- A file of cases is a program of its own, because a small heap keeps whole cycles of the collector cheap. `FILE CASE`
-- runs the case of that number, and fails if the case does. Without CASE it prints the names of all cases.
local fixtures = require "fixtures"
local garbage = require "garbage"

local finalizer_cases = {}
local cases, group = {}, nil

function finalizer_cases.describe(name, f)
	group = name
	f()
end

function finalizer_cases.it(name, f)
	cases[#cases + 1] = { name = group .. " " .. name, run = f }
end

function finalizer_cases.equal(expected, value)
	if expected ~= value then
		error(("expected %s, got %s"):format(tostring(expected), tostring(value)), 2)
	end
end

--- Calls f(...) while a finalizer runs at every allocation. Every finalizer calls `action`, or, with `nth`, only the
--- n-th. Returns how many finalizers ran, and three results of f. Raises the errors of both.
function finalizer_cases.with_finalizers(action, nth, f, ...)
	local ran, on, fault = 0, true, nil
	local function finalizer()
		if not on then
			return
		end
		ran = ran + 1
		if not nth or ran == nth then
			local ok, message = pcall(action, ran)
			fault = fault or not ok and message
		end
		garbage.make(finalizer)
	end
	garbage.collect_always()
	garbage.make(finalizer)
	local results = { pcall(f, ...) }
	on = false
	garbage.collect_normally()
	assert(not fault, fault)
	assert(results[1], results[2])
	return ran, (unpack or table.unpack)(results, 2, 4)
end

--- Calls `try(n)` for each allocation n, or each `step`th one. `try` returns how many allocations there were.
function finalizer_cases.at_each(try, step)
	local n = 0
	repeat
		n = n + (step or 1)
	until try(n) < n
	assert(n > (step or 1))
end

--- Ends a broadcaster, in Lua 5.4 by a to-be-closed variable.
function finalizer_cases.end_of(broadcaster)
	if fixtures.has_close then
		assert(load "local object <close> = ...")(broadcaster)
	else
		broadcaster:shutdown(0)
	end
end

--- Runs the case of the number `wanted`, or prints the names of all cases.
function finalizer_cases.run(wanted)
	fixtures.interpret()
	for i, case in ipairs(cases) do
		if not wanted then
			print(case.name)
		elseif tonumber(wanted) == i then
			case.run()
			print("done")
		end
	end
end

return finalizer_cases
