-- evrec's files are replaced below a running nginx, and nginx reloads: the process keeps its library, evrec.core.
local cluster = require "cluster"
local quickstart = require "quickstart"

if _VERSION ~= "Lua 5.4" then
	describe("an upgrade of evrec", function()
		pending("skipped: nginx brings its own Lua; the specs on Lua 5.4 start it")
	end)
	return
end

describe("an upgrade of evrec", function()
	it("needs a restart of nginx, which a reload says; the old workers go on meanwhile", function()
		local folder = cluster.scratch .. "/upgrade"
		finally(function() cluster.run { "rm", "-rf", folder } end)
		local port = quickstart.copy(folder, "nginx", { "luajit" }, { 8080, 8082 })[8080]
		local readme = folder .. "/examples/nginx/README.md"
		local command = quickstart.command(readme, "EVENTS=- "):gsub("^(%S+) ", "env %1 ")
		local version = cluster.read(folder .. "/lua/evrec/init.lua"):match 'version = "(%d+%.%d+%.%d+)"'
		local newer = version:gsub("^%d+", function(major) return (major + 1) % 10 end)

		local function record()
			quickstart.await_port(port)
			local code = cluster.run { "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
				("http://127.0.0.1:%d/cart"):format(port) }
			assert.equal("503", code)
		end

		-- Waits until the log has the text that often.
		local function await_lines(log, text, count)
			quickstart.await(function()
				local _, n = cluster.read(log):gsub(text, "")
				return n >= count
			end)
		end

		local stop, pid, log = quickstart.start(folder, command)
		record()
		await_lines(log, '"reason":"UpstreamFailed"', 1)

		-- The new version, which has a Lua file that its old library would make fail. An installer puts a new file in the
		-- place of the old one, and does not write into it.
		local said, ok = cluster.run({ "bash", "-euc", [[cd "$0"
			sed -i "s/$1/$2/" lua/evrec/init.lua
			echo 'assert(require("evrec.core").version == "'"$2"'", "the old library")' >>lua/evrec/host.lua
			sed -i 's/^return host$//' lua/evrec/host.lua; echo 'return host' >>lua/evrec/host.lua
			sed "s/$1/$2/" build/luajit/evrec/core.so >core.so
			mv core.so build/luajit/evrec/core.so]], folder, version:gsub("%.", "\\."), newer })
		assert.is_true(ok, said)
		said, ok = cluster.run { "kill", "-HUP", pid }
		assert.is_true(ok, said)
		await_lines(log, "a reload is not enough", 1)
		record()
		await_lines(log, '"reason":"UpstreamFailed"', 2)
		said = stop "QUIT"
		assert.truthy(said:find(("evrec: the Lua files are of version %s, the library evrec.core is of version %s. A "
			.. "process keeps the library that it has loaded: restart it, a reload is not enough"):format(newer, version),
			1, true), said)
		assert.is_nil(said:find("the old library", 1, true), said)

		stop, pid, log = quickstart.start(folder, command)
		assert.is_string(pid)
		record()
		await_lines(log, '"reason":"UpstreamFailed"', 1)
		assert.is_nil(stop("QUIT"):find("version", 1, true))
	end)
end)
