-- A file sink writes to a pipe whose reader does not read, in a process that cannot start threads. So poll() writes,
-- and must not wait.
local cjson = require "cjson"

local lua = require("command").interpreter
-- No thread can start, because none gets a stack of a terabyte. timeout kills a process that hangs.
local threadless = "ulimit -s 1000000000 && exec timeout 60 " .. lua

local script = [[
	local evrec = require "evrec"
	local folder = ...
	local b = evrec.broadcaster { on_error = function(message) print(message) end }
	b:start_recording_to_sink(evrec.sink.file { path = folder .. "/fifo" })
	local r = b:new_recorder { component = "spec" }
	for i = 1, 500 do
		assert(r:event({ kind = "Pod", namespace = "shop", name = "pod-" .. i }, "Normal", "R", ("m"):rep(500)))
	end
	for _ = 1, 3 do
		b:poll()
		assert(b:stats().pending > 0)
	end
	assert(not b:flush(0.01))
	assert(b:stats().pending > 0 and b:stats().retries == 0)
	io.open(folder .. "/read", "w"):close()
	assert(b:flush(30))
	assert(b:stats().created == 500)
	assert(b:shutdown(0))
]]

-- Opens the pipe, prints "ready", and reads the pipe once the file `read` exists.
local reader = [[
	exec 3<>"$1/fifo" 4<"$1/fifo" 3>&-
	echo ready
	while [ ! -e "$1/read" ]; do sleep 0.01; done
	exec cat <&4
]]

describe("evrec.sink.file with a full pipe", function()
	local folder
	before_each(function()
		folder = os.tmpname()
		os.remove(folder)
		assert(os.execute(("mkdir %s && mkfifo %s/fifo"):format(folder, folder)))
	end)
	after_each(function() os.execute("rm -r " .. folder) end)

	local function write(name, text)
		local file = assert(io.open(folder .. "/" .. name, "w"))
		file:write(text)
		file:close()
	end

	it("does not wait in poll, loses no event, and cuts no line", function()
		write("script", script)
		write("reader", reader)
		local pipe = io.popen(("timeout 60 sh %s/reader %s"):format(folder, folder))
		assert.equal("ready", pipe:read "*l")
		local run = io.popen(("(%s %s/script %s) 2>&1; echo exit=$?"):format(threadless, folder, folder))
		local lines = 0
		for line in pipe:lines() do
			lines = lines + 1
			assert.equal("pod-" .. lines, cjson.decode(line).involvedObject.name)
		end
		local output = run:read "*a"
		run:close()
		pipe:close()
		assert.truthy(output:find "^file: no thread could be started[^\n]*\nexit=0\n$", output)
		assert.equal(500, lines)
	end)
end)
