-- Runs the two programs, `oracle` and `subject`, and tells where their answers differ.

local cjson = require "cjson"
local trace = require "trace"

local FIELDS = { "skip", "why", "name", "count", "resourceVersion", "firstTimestamp", "lastTimestamp", "message",
	"patch", "kept" }

local COLLISION = '{"collision":true}'

local Programs = {}
Programs.__index = Programs

--- The programs are in `dir`; `name` is for their input and output, files that close() removes.
local function new(dir, name)
	local path = ("%s/%s"):format(dir, name)
	return setmetatable({
		dir = dir, input = path .. ".traces", errors = path .. ".errors",
		outputs = { oracle = path .. ".oracle", subject = path .. ".subject" },
	}, Programs)
end

function Programs:close()
	for _, path in ipairs { self.input, self.errors, self.outputs.oracle, self.outputs.subject } do
		os.remove(path)
	end
end

--- Runs both on the text of traces; two functions, each of which returns a line of theirs. Nil and what was said where
--- one failed.
function Programs:run(text)
	local file = assert(io.open(self.input, "w"))
	assert(file:write(text))
	file:close()
	local ok = os.execute(("exec 2>'%s'; '%s/oracle' <'%s' >'%s' & '%s/subject' <'%s' >'%s'; s=$?; wait $! && exit $s")
		:format(self.errors, self.dir, self.input, self.outputs.oracle, self.dir, self.input, self.outputs.subject))
	if not ok then
		local errors = assert(io.open(self.errors))
		local said = errors:read(2000) or "nothing was said"
		errors:close()
		return nil, said
	end
	return io.lines(self.outputs.oracle), io.lines(self.outputs.subject)
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

-- The oracle's line as it is compared, and the cases that it names.
local function without_cases(line)
	if not line:find('"cases":[', 1, true) then
		return line
	end
	local head, cases = line:match('^(.-),?"cases":%[(.-)%]}$')
	return head .. "}", cases
end

--- The fields in which two lines differ, in order; nil where they say the same.
local function difference(oracle, subject)
	oracle = without_cases(oracle)
	if oracle == subject then
		return nil
	end
	local names = {}
	local a, b = cjson.decode(oracle), cjson.decode(subject)
	for _, key in ipairs(FIELDS) do
		if not same(a[key], b[key]) then
			names[#names + 1] = key
		end
	end
	return #names > 0 and table.concat(names, ",") or nil
end

-- Which of the traces it was that a program failed on, and `said` why.
local function compare_halves(self, traces, seen, said)
	if #traces == 1 then
		return { { line = #traces[1].steps + 1, fields = "failure", oracle = "or the subject failed", subject = said } }
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

--- For each trace nil, or where it first differs: { line =, fields =, oracle =, subject = }, or "collision" where the
--- comparison ended. `seen`, where given, is called for every step that was compared: with the trace, the oracle's
--- answer, and its cases.
function Programs:compare(traces, seen)
	local texts, lengths, out = {}, {}, {}
	for i, t in ipairs(traces) do
		local lines = trace.lines(t)
		texts[i], lengths[i] = table.concat(lines, "\n") .. "\n", #lines
	end
	local oracle, subject = self:run(table.concat(texts))
	if not oracle then
		return compare_halves(self, traces, seen, subject)
	end
	for i, t in ipairs(traces) do
		for line = 1, lengths[i] do
			local a, b = oracle(), subject()
			if not out[i] then
				local fields = a ~= COLLISION and difference(a, b)
				out[i] = a == COLLISION and "collision" or
					fields and { line = line, fields = fields, oracle = a, subject = b } or nil
				if not out[i] and seen and line > 1 then
					seen(t, without_cases(a))
				end
			end
		end
	end
	return out
end

return { new = new, difference = difference }
