-- Reads the measurements from the files that bench.sh writes.
local results = {}

results.workloads = {
	{ name = "duplicate", title = "Duplicate: one event again and again" },
	{ name = "similar", title = "Similar: one object and reason, each message another" },
	{ name = "unique", title = "Unique: each event about another object, more than the caches hold" },
	{ name = "limited", title = "Rate-limited: one event again and again, its tokens gone" },
}

-- The rows of the tables in order: program and variant, as bench.sh names them.
results.rows = {}
local function add(program, variant, title)
	table.insert(results.rows, { id = program .. "/" .. variant, program = program, variant = variant, title = title })
end
add("client-go", "recorder", "client-go, end to end")
add("client-go", "correlator", "client-go, EventCorrelate alone")
for _, lua in ipairs { { "5.4", "Lua 5.4" }, { "5.3", "Lua 5.3" }, { "luajit", "LuaJIT" } } do
	add(lua[1], "recorder", "evrec from " .. lua[2])
	add(lua[1], "reference", "evrec from " .. lua[2] .. ", a reference")
	add(lua[1], "correlator", "evrec from " .. lua[2] .. ", correlator alone")
	add(lua[1], "baseline", "baseline from " .. lua[2])
end
add("c", "recorder", "evrec from C")
add("c", "reference", "evrec from C, a reference")
add("c", "correlator", "evrec from C, correlator alone")

-- The fields of each line of a file. An empty list if there is no such file.
local function lines(path)
	local found = {}
	local file = io.open(path)
	for text in file and file:lines() or function() end do
		local fields = {}
		for field in (text .. "\t"):gmatch "([^\t]*)\t" do
			table.insert(fields, tonumber(field) or field)
		end
		table.insert(found, fields)
	end
	if file then
		file:close()
	end
	return found
end

local function into(t, key)
	t[key] = t[key] or {}
	return t[key]
end

-- The median and the extremes of some measurements.
local function spread(values)
	table.sort(values)
	local n = #values
	return {
		median = (values[(n + 1) // 2] + values[n // 2 + 1]) / 2, min = values[1], max = values[n], rounds = n,
	}
end

local function each_spread(t)
	for _, inner in pairs(t) do
		for id, values in pairs(inner) do
			inner[id] = spread(values)
		end
	end
	return t
end

-- ns[workload][row], and keys[n][row]: the spread of the nanoseconds that an event takes.
local function times(path)
	local ns = {}
	for _, f in ipairs(lines(path)) do
		table.insert(into(into(ns, f[1]), f[2] .. "/" .. f[3]), f[5] / f[4] * 1e9)
	end
	return each_spread(ns)
end

-- counts[workload][row]: how many events were created, patched and skipped; allocations and bytes of an event.
local function counts(path)
	local found = {}
	for _, f in ipairs(lines(path)) do
		local events, allocations, bytes = f[4], f[11], f[12]
		if f[2] == "client-go" then
			allocations, bytes = f[9], f[10]
		elseif f[2] == "luajit" then
			bytes = bytes + f[10]
		end
		into(found, f[1])[f[2] .. "/" .. f[3]] = {
			events = events, created = f[6], patched = f[7], skipped = f[8],
			allocations = allocations / events, bytes = bytes / events,
		}
	end
	return found
end

local function instructions(path)
	local found = {}
	for _, f in ipairs(lines(path)) do
		into(found, f[1])[f[2] .. "/" .. f[3]] = f[5] / f[4]
	end
	return found
end

local function memory(path)
	local found = {}
	for _, f in ipairs(lines(path)) do
		found[f[1]] = { entries = f[2], bytes = f[3], own = f[4], beyond = f[3] - f[4] }
	end
	return found
end

-- once[name]: the spread of the seconds, or bytes.
local function once(path)
	local found = {}
	for _, f in ipairs(lines(path)) do
		table.insert(into(found, f[1]), f[2])
	end
	for name, values in pairs(found) do
		found[name] = spread(values)
	end
	return found
end

function results.read(folder)
	local r = {
		machine = lines(folder .. "/machine.tsv"),
		ns = times(folder .. "/times.tsv"),
		counts = counts(folder .. "/counts.tsv"),
		keys = times(folder .. "/keys.tsv"),
		memory = memory(folder .. "/memory.tsv"),
		instructions = instructions(folder .. "/instructions.tsv"),
		once = once(folder .. "/once.tsv"),
		sizes = {},
	}
	for n in pairs(r.memory) do
		table.insert(r.sizes, n)
	end
	table.sort(r.sizes)
	return r
end

return results
