-- Runs two programs, the oracle (client-go) and evrec's, and compares their answers.

local cjson = require "cjson"
local trace = require "trace"

local FIELDS = { "skip", "why", "name", "count", "resourceVersion", "firstTimestamp", "lastTimestamp", "message",
	"patch", "kept", "requests" }

local COLLISION = '{"collision":true}'

local Programs = {}
Programs.__index = Programs

--- The programs for traces of a kind (kinds.lua) are in `dir`. The files there for their input and output begin with
--- `name`, until close() removes them.
local function new(kind, dir, name)
	local path = ("%s/%s"):format(dir, name)
	return setmetatable({
		kind = kind, dir = dir, input = path .. ".traces", errors = path .. ".errors",
		outputs = { oracle = path .. ".oracle", evrec = path .. ".evrec" },
	}, Programs)
end

function Programs:close()
	for _, path in ipairs { self.input, self.errors, self.outputs.oracle, self.outputs.evrec } do
		os.remove(path)
	end
end

--- Runs both programs on the text of traces. Returns two iterators over lines: the oracle's and evrec's. If a program
--- fails, returns nil and the programs' error messages.
function Programs:run(text)
	local file = assert(io.open(self.input, "w"))
	assert(file:write(text))
	file:close()
	local command = "exec 2>'%s'; '%s/%s' <'%s' >'%s' & '%s/%s' <'%s' >'%s'; s=$?; wait $! && exit $s"
	local ok = os.execute(command:format(self.errors, self.dir, self.kind.oracle, self.input, self.outputs.oracle,
		self.dir, self.kind.runner, self.input, self.outputs.evrec))
	if not ok then
		local errors = assert(io.open(self.errors))
		local message = errors:read(2000) or "a program failed without an error message"
		errors:close()
		return nil, message
	end
	return io.lines(self.outputs.oracle), io.lines(self.outputs.evrec)
end

local function same(a, b)
	if type(a) ~= "table" or type(b) ~= "table" then
		return a == b
	end
	for key, value in pairs(a) do
		if not same(value, b[key]) then
			return false
		end
	end
	for key in pairs(b) do
		if a[key] == nil then
			return false
		end
	end
	return true
end

-- The oracle's line without its `cases`, which are not compared; and those cases.
local function without_cases(line)
	if not line:find('"cases":[', 1, true) then
		return line
	end
	local head, cases = line:match('^(.-),?"cases":%[(.-)%]}$')
	return head .. "}", cases
end

--- The fields in which two lines differ, in the order of FIELDS, joined by commas. Nil if no field differs.
local function difference(oracle, evrec)
	oracle = without_cases(oracle)
	if oracle == evrec then
		return nil
	end
	local names = {}
	local a, b = cjson.decode(oracle), cjson.decode(evrec)
	for _, key in ipairs(FIELDS) do
		if not same(a[key], b[key]) then
			names[#names + 1] = key
		end
	end
	return #names > 0 and table.concat(names, ",") or nil
end

-- Finds the traces on which a program fails with `message`, by bisection, and compares the others.
local function compare_halves(self, traces, seen, message)
	if #traces == 1 then
		return { { line = #traces[1].steps + 1, fields = "failure", oracle = "one of the programs failed", evrec = message } }
	end
	local half, out = #traces // 2, {}
	for _, range in ipairs { { 1, half }, { half + 1, #traces } } do
		local found = self:compare(table.move(traces, range[1], range[2], 1, {}), seen)
		for i = range[1], range[2] do
			out[i] = found[i - range[1] + 1]
		end
	end
	return out
end

--- Compares the programs' answers. Returns for each trace: nil if all answers are equal; the first difference, as
--- { line =, fields =, oracle =, evrec = }; or "collision" if two of client-go's joined keys are equal, which ends the
--- comparison of that trace. Calls `seen`, unless it is nil, for every step compared: with the trace, the oracle's
--- answer, and the cases that the oracle named.
function Programs:compare(traces, seen)
	local texts, lengths, out = {}, {}, {}
	for i, t in ipairs(traces) do
		local lines = trace.lines(t)
		texts[i], lengths[i] = table.concat(lines, "\n") .. "\n", #lines
	end
	local oracle, evrec = self:run(table.concat(texts))
	if not oracle then
		return compare_halves(self, traces, seen, evrec)
	end
	for i, t in ipairs(traces) do
		for line = 1, lengths[i] do
			local a, b = oracle(), evrec()
			if not out[i] then
				local fields = a ~= COLLISION and difference(a, b)
				out[i] = a == COLLISION and "collision" or
					fields and { line = line, fields = fields, oracle = a, evrec = b } or nil
				if not out[i] and seen and line > 1 then
					seen(t, without_cases(a))
				end
			end
		end
	end
	return out
end

return { new = new, difference = difference }
