-- Runs each example that needs no cluster, as a reader would. spec/e2e runs the others.
local command = require "command"
local tmpfiles = require "tmpfiles"

local embed = ("%s %s/examples/c/embed"):format(os.getenv "EVREC_RUN" or "", os.getenv "EVREC_BUILD" or "build")
local lua = command.interpreter

--- Returns the output of a command. Raises if the command fails.
local function output(line)
	local pipe = assert(io.popen("(" .. line .. ") 2>&1; echo \"exit=$?\""))
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
		local failures, others = 0, 0
		for _, line in ipairs(lines(demo:match "Story 1(.*)Story 2")) do
			if line:find "^%w+ %(x4 over %w+%) +Warning +FailedScheduling +Pod/" then
				failures = failures + 1
			elseif line:find "^%w+ +Normal " then
				others = others + 1
			end
		end
		assert.equal(5, failures)
		assert.equal(7, others)
		assert.matches("\nLAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n", demo)
	end)

	it("show a CronJob that falls silent, the explanation, and the cure", function()
		local shown, explained, cured = demo:match "Story 2(.*)Why it fell silent(.*)Cured, in(.*)"
		assert.matches("SawCompletedJob", shown)
		assert.matches("SawCompletedJob +Normal +40 +9 +0 +31 ", explained)
		cured = cured:gsub("%s+", " ")
		assert.matches("SawCompletedJob of default CronJob/hello: 31 of 40 [^:]+; shown by variant 2 ", cured)
	end)

	it("say what each story shows and what to try next", function()
		assert.matches("Story 1, [^\n]+%.\n.*Story 2, [^\n]+%.\n.*What to try next:\n  .+\n$", demo)
	end)

	it("show both stories, and fail, if KUBECONFIG names no file", function()
		local status, told, complaints = command.shell('KUBECONFIG=/nowhere/config "$@"', lua, "examples/demo.lua")
		assert.equal(1, status)
		assert.matches("Story 1.*Story 2.*What to try next:", told)
		assert.matches("failed: no event was written to a cluster: [^\n]+/nowhere/config: No such file or directory",
			complaints)
	end)

	it("end the first script with one line that says what to do, if there is no cluster", function()
		local status, told, complaints = command.shell('unset KUBECONFIG; HOME=/nowhere "$@"', lua, "examples/first.lua")
		assert.equal(1, status)
		assert.equal("", told)
		assert.equal("evrec.sink.kubernetes: no API server: not inside a cluster, and cannot read the kubeconfig: "
			.. "/nowhere/.kube/config: No such file or directory; set $KUBECONFIG, or the option 'kubeconfig' or 'server'\n",
			complaints)
	end)

	it("have the first script in the README", function()
		local script = tmpfiles.read "examples/first.lua":gsub("^[^\n]+\n", "")
		assert.truthy(tmpfiles.read "README.md":find("```lua\n" .. script .. "```\n", 1, true))
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

	it("write lines from C, of which the command prints a table", function()
		local path = os.tmpname()
		output(embed .. " 2>/dev/null >" .. path)
		local rows = lines(output(("%s lua/bin/evrec events -A --lines %s"):format(lua, path)))
		os.remove(path)
		assert.equal(3, #rows)
		assert.matches("%(x3 over %w+%) +Normal +Started +Pod/web%-0 +Started container", table.concat(rows, "\n"))
	end)
end)
