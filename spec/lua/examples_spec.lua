-- Runs each example that needs no cluster, as a reader would. spec/e2e runs the others.
local embed = ("%s %s/examples/c/embed"):format(os.getenv "EVREC_RUN" or "", os.getenv "EVREC_BUILD" or "build")
local lua = _G.jit and "luajit" or ("lua" .. _VERSION:match "%d%.%d")

--- Returns the output of a command. Raises if the command fails.
local function output(command)
	local pipe = assert(io.popen("(" .. command .. ") 2>&1; echo \"exit=$?\""))
	local text, code = pipe:read("*a"):match "^(.*)exit=(%d+)\n$"
	pipe:close()
	assert.equal("0", code, text)
	return text
end

local function lines(text)
	local list = {}
	for line in text:gmatch "[^\n]+" do
		list[#list + 1] = line
	end
	return list
end

describe("the examples", function()
	local demo

	setup(function() demo = output("env -u KUBECONFIG " .. lua .. " examples/demo.lua") end)

	it("show twenty scheduling failures as five rows of twelve", function()
		local rows, counts = 0, {}
		for _, line in ipairs(lines(demo)) do
			local count = line:match "^%d%d:%d%d:%d%d +%d%d:%d%d:%d%d +(%d+) "
			if count then
				rows = rows + 1
				local reason = line:match "FailedScheduling" or "others"
				counts[reason] = counts[reason] or {}
				table.insert(counts[reason], tonumber(count))
			end
		end
		assert.equal(12, rows)
		assert.same({ 4, 4, 4, 4, 4 }, counts.FailedScheduling)
		assert.same({ 1, 1, 1, 1, 1, 1, 1 }, counts.others)
		assert.matches("FIRSTSEEN +LASTSEEN +COUNT +NAME +KIND +REASON +SOURCE +MESSAGE", demo)
	end)

	it("show a CronJob that falls silent, the explanation, and the cure", function()
		local default, told, explained, cured =
			demo:match "With the defaults(.*)What stats%(%) says(.*)What explain%(cronjob%) says(.*)Cured by(.*)"
		assert.matches("SuccessfulCreate +40 +25 +36 +%(combined from similar events%)", default)
		assert.matches("SawCompletedJob +40 +31 +9 +Saw completed job: hello%-9", default)
		assert.matches("CronJob +default/hello +SawCompletedJob +31 +rate_limited", told)
		assert.matches("SawCompletedJob +rate_limited +31 +minute 10 +minute 40 +49 s +%(combined from", explained)
		assert.matches("one bucket: Normal events of cronjob%-controller about CronJob default/hello", explained)
		assert.matches("SawCompletedJob +40 +8 +36 ", cured)
	end)

	it("say what each story shows and what to try next, in lines of 100 columns", function()
		for _, line in ipairs(lines(demo)) do
			assert.is_true(#line <= 100, line)
		end
		assert.matches("Story 1, [^\n]+%.\n.*Story 2, [^\n]+%.\n.*What to try next:\n  .+\n$", demo)
	end)

	it("run a sink in Lua", function()
		local shown = {}
		local file = assert(io.open "examples/lua_sink.lua")
		for line in file:lines() do
			shown[#shown + 1] = line:match "^%-%-   (%l+:? .*)"
		end
		file:close()
		assert.equal(3, #shown)
		assert.same(shown, lines(output(lua .. " examples/lua_sink.lua")))
	end)

	it("embed the core in a C program", function()
		local said = lines(output(embed))
		assert.matches('"reason":"Started".*"count":3', table.concat(said, "\n"))
		assert.equal("embed: 4 of 4 occurrences written", said[#said])
	end)

	it("print a table of the events that a file sink wrote", function()
		local path = os.tmpname()
		output(embed .. " 2>/dev/null >" .. path)
		local rows = lines(output(lua .. " examples/events_table.lua " .. path))
		os.remove(path)
		assert.equal(3, #rows)
		assert.matches("3 +web%-0 +Pod +Started +embed +Started container", rows[2])
	end)
end)
