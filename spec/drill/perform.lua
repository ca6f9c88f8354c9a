-- Performs one fire drill in this process, or lists all.
--
-- usage: luajit perform.lua list            prints a line for each drill: name, tab, NAME=VALUE words of environment
--        luajit perform.lua NAME SCALE OUT  performs the drill, and writes its result to the file OUT, a line of JSON
local cjson = require "cjson"

local plans = {}
for _, file in ipairs { "server", "answers", "flags", "identity", "surroundings", "spool", "throttle", "owner",
	"otlp" } do
	for _, plan in ipairs(require("plans." .. file)) do
		plans[#plans + 1] = plan
		plans[plan.name] = plan
	end
end

local function list()
	for _, plan in ipairs(plans) do
		local words = {}
		for name, value in pairs(not plan.skip and plan.environment or {}) do
			words[#words + 1] = name .. "=" .. value
		end
		print(plan.name .. "\t" .. table.concat(words, " "))
	end
end

local function perform(name, scale, out)
	local plan = assert(plans[name], "no such drill")
	require("process").keep_to_itself()
	local result = plan.skip and { name = name, skipped = plan.skip, faults = {}, errors = {} }
		or require("drill").perform(plan, tonumber(scale))
	local file = assert(io.open(out, "w"))
	file:write(cjson.encode(result), "\n")
	file:close()
end

if arg[1] == "list" then
	list()
else
	perform(arg[1], arg[2], arg[3])
end
