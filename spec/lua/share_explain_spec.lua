-- `explain` in a worker of a share: another process is the owner.
local cjson = require "cjson"
local evrec = require "evrec"
local interpreter = require("command").interpreter

-- For each line of its input it writes what explain() says; it records before.
local OWNER = [[
local cjson, evrec = require "cjson", require "evrec"
local b = evrec.broadcaster { share = %q, on_error = error }
b:start_recording_to_sink(evrec.sink.file { path = "/dev/null" }, { correlator = { burst_size = 1, qps = 0 } })
local r = b:new_recorder { component = "proxy" }
repeat
	b:poll()
until b:stats().share == "owner"
r:event({ kind = "Pod", namespace = "shop", name = "web-0" }, "Normal", "Started", "m")
local pipe = io.popen "echo $PPID"
print(pipe:read "*l")
pipe:close()
for _ in io.lines() do
	io.stdout:flush()
	print(cjson.encode(b:explain()))
end
]]

local web = { kind = "Pod", namespace = "shop", name = "web-0" }

describe("explain in a worker", function()
	local number, folder, child, pid, b, r = 0, nil, nil, nil, nil, nil

	local function run(command)
		local pipe = assert(io.popen(command))
		local output = pipe:read "*a"
		pipe:close()
		return (output:gsub("%s+$", ""))
	end

	-- The lines that the owner has written, once there are so many.
	local function lines(n)
		for _ = 1, 600 do
			local found = {}
			for line in io.lines(folder .. "/out") do
				found[#found + 1] = line
			end
			if #found >= n then
				return found
			end
			run "sleep 0.05"
		end
		error "waited for 30 s in vain"
	end

	local function start_owner(share)
		local file = assert(io.open(folder .. "/owner.lua", "w"))
		file:write(OWNER:format(share))
		file:close()
		assert(io.open(folder .. "/out", "w")):close()
		child = assert(io.popen(("exec %s %s/owner.lua >%s/out"):format(interpreter, folder, folder), "w"))
		child:write("\n")
		child:flush()
		pid = lines(1)[1]
	end

	before_each(function()
		number = number + 1
		folder = run "mktemp -d"
		local share = ("@evrec-explain-spec-%s-%d"):format(folder:match "[^/]+$", number)
		start_owner(share)
		b = evrec.broadcaster { share = share, on_error = error }
		b:start_recording_to_sink(evrec.sink.file { path = "/dev/null" }, { correlator = { burst_size = 1, qps = 0 } })
		r = b:new_recorder { component = "proxy" }
	end)
	after_each(function()
		if child then
			child:close()
		end
		b:shutdown(5)
		run("rm -rf " .. folder)
	end)

	it("is what the owner says", function()
		for _ = 1, 3 do
			assert.is_true(r:event(web, "Normal", "Started", "m"))
		end
		local ours = b:explain(nil, 30)
		assert.equal("worker", b:stats().share)
		assert.equal(1, #ours)
		assert.equal("file", ours[1].name)
		assert.equal(1, #ours[1].suppressed)
		assert.equal("rate_limited", ours[1].suppressed[1].why)
		assert.equal(3, ours[1].suppressed[1].count)
		child:write("\n")
		child:close()
		child = nil
		local said = lines(2)
		assert.same(cjson.decode(said[#said]), cjson.decode(cjson.encode(ours)))
	end)

	it("is about one object", function()
		r:event(web, "Normal", "Started", "m")
		assert.equal(1, #b:explain(web, 30)[1].suppressed)
		assert.same({}, b:explain({ kind = "Pod", namespace = "shop", name = "web-1" }, 30)[1].suppressed)
	end)

	it("is nil if the owner does not answer in time", function()
		b:explain(nil, 30)
		run("kill -STOP " .. pid)
		run(("while grep -h ^State: /proc/%s/task/*/status | grep -qv T; do sleep 0.01; done"):format(pid))
		local explained, message, name = b:explain(web, 0.05)
		run("kill -CONT " .. pid)
		assert.is_nil(explained)
		assert.equal("share: the owner did not answer within 50 ms", message)
		assert.equal("timeout", name)
		assert.equal(1, #b:explain(web, 30))
		assert.has_error(function() b:explain(web, "1") end,
			"broadcaster:explain: 'timeout': expected a number of seconds >= 0, got string")
	end)

	it("is its own once the owner is gone", function()
		b:explain(nil, 30)
		run("kill -KILL " .. pid)
		child:close()
		child = nil
		assert.same({}, b:explain(web, 30)[1].suppressed)
		assert.equal("owner", b:stats().share)
		r:event(web, "Normal", "Started", "m")
		r:event(web, "Normal", "Started", "m")
		assert.equal(1, b:explain(web)[1].suppressed[1].count)
	end)
end)
