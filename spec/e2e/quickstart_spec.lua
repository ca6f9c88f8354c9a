-- The quick starts for nginx, HAProxy and C, followed as their READMEs tell, against a real API server.
local cluster = require "cluster"
local collector = require "collector"
local quickstart = require "quickstart"

-- The hosts bring their own Lua, so one Lua is enough to start them.
if _VERSION ~= "Lua 5.4" then
	describe("the quick starts", function()
		pending("skipped: nginx and HAProxy bring their own Lua, C needs none; the specs on Lua 5.4 start them")
	end)
	return
end

local root = cluster.run { "id", "-u" } == "0\n"
local may_mount = select(2, cluster.run { "unshare", "--mount", "true" })
local no_mount = "skipped: no right to mount a folder (unshare --mount)"
local copies = 0

--- A new folder for each test: a host may still hold files of the last one.
local function new_folder()
	copies = copies + 1
	return ("%s/quickstart-%d"):format(cluster.scratch, copies)
end

--- Runs the README's curl `count` times; returns the first line of each answer, which all must be the same.
local function ask(folder, readme, port, count)
	quickstart.await_port(port)
	local curl = quickstart.command(readme, "curl ")
	for _ = 1, count do
		local answer, ok = quickstart.run(folder, curl .. " --no-progress-meter --max-time 10")
		assert.is_true(ok, answer)
		assert.matches("^HTTP/1.1 503 ", answer)
	end
end

--- Checks that the component's events are the one line that the README shows, `count` times in all.
local function check_events(readme, component, count, log)
	local shown = "Warning   UpstreamFailed   service/shop   Requests are answered with 503"
	assert.truthy(cluster.read(readme):find(shown, 1, true))
	assert.equal(count, quickstart.occurrences(component, function(event)
		return shown == ("%s   %s   %s/%s   %s"):format(event.type, event.reason, event.involvedObject.kind:lower(),
			event.involvedObject.name, event.message)
	end), log)
end

--- The occurrences that a collector was told, as its debug exporter prints them: the sum of the highest counts of the
--- events' names.
local function told_occurrences(output)
	local counts, sum = {}, 0
	local _, resources = output:gsub("ResourceLog #", "")
	local _, of_shop = output:gsub("%-> service%.name: Str%(shop%)\n", "")
	assert.equal(resources, of_shop)
	for record in output:gmatch "\nLogRecord #%d+\n(.-)\nFlags: " do
		assert.matches("\nSeverityNumber: Warn%(13%)\nBody: Str%(Requests are answered with 503%)\n", record)
		assert.matches("%-> k8s%.event%.reason: Str%(UpstreamFailed%)\n", record)
		local name = record:match "%-> k8s%.event%.name: Str%((.-)%)\n"
		local count = tonumber(record:match "%-> k8s%.event%.count: Int%((%d+)%)")
		counts[name] = math.max(counts[name] or 0, count)
	end
	for _, count in pairs(counts) do
		sum = sum + count
	end
	return sum
end

describe("the quick start", function()
	before_each(function() cluster.clear "default" end)

	it("names packages that packages.sh installs", function()
		for _, example in ipairs { "nginx", "haproxy", "c", "operator" } do
			assert.same({}, quickstart.unknown_packages("examples/" .. example .. "/README.md"))
		end
	end)

	describe("for nginx", function()
		--- Starts nginx in a new copy, sends 20 requests, and stops nginx.
		---@param signal string
		---@param prepare? fun(folder: string): string? prepares the copy; returns words to put before the command
		local function follow(signal, prepare)
			local folder = new_folder()
			local port = quickstart.copy(folder, "nginx", { "luajit" }, { 8080, 8082 })[8080]
			local readme = folder .. "/examples/nginx/README.md"
			local front = prepare and prepare(folder)
			local stop = quickstart.start(folder, quickstart.command(readme, "nginx "), front)
			ask(folder, readme, port, 20)
			local log = stop(signal)
			check_events(readme, "nginx", 20, log)
			assert.is_nil(log:find("emerg", 1, true), log)
		end

		for _, signal in ipairs { "QUIT", "INT" } do
			it("delivers the events of two workers, stopped by SIG" .. signal, function() follow(signal) end)
		end

		it("delivers, started by an ordinary user", function()
			if not root then
				return pending "skipped: not root, so the other tests are an ordinary user's already"
			elseif not may_mount then
				return pending(no_mount)
			end
			-- The scratch folder is its owner's only, so this one lies elsewhere.
			local home = cluster.run { "mktemp", "-d" }:match "%S+"
			finally(function() cluster.run { "rm", "-rf", home } end)
			follow("QUIT", function(folder)
				local text, ok = cluster.run { "bash", "-euc", [[mkdir "$1/.kube"
					kubectl config view --raw --minify --flatten >"$1/.kube/config"
					mv "$0" "$1/checkout"; ln -s "$1/checkout" "$0"; chown -R nobody: "$1"]], folder, home }
				assert(ok, text)
				-- Debian's package makes this folder empty; what an earlier nginx of root made there is hidden.
				cluster.write(folder .. "/fresh.sh", 'mount -t tmpfs -o mode=755 none /var/lib/nginx && exec "$@"\n')
				return ("unshare --mount sh fresh.sh setpriv --reuid=nobody --regid=nogroup --clear-groups "
					.. "env -C %s/checkout -u KUBECONFIG HOME=%s"):format(home, home)
			end)
		end)

		it("delivers with an installed evrec, the workers being www-data", function()
			if not may_mount then
				return pending(no_mount)
			end
			follow("QUIT", function(folder)
				local text, ok = quickstart.run(quickstart.here, "make -s install LUA=luajit DESTDIR=" .. folder .. "/installed")
				assert(ok, text)
				cluster.run { "rm", "-r", folder .. "/lua", folder .. "/build/luajit" }
				cluster.run { "sed", "-i", "1i user www-data;", folder .. "/examples/nginx/nginx.conf" }
				cluster.write(folder .. "/mounted.sh", 'mount --bind installed/usr/local /usr/local && exec "$@"\n')
				return "unshare --mount sh mounted.sh"
			end)
		end)

		-- The workers open the sink anew, some time after the strings that the master gave it were collected.
		it("delivers with a spool that the master names", function()
			local spool = cluster.run { "mktemp", "-d" }:match "%S+"
			finally(function() cluster.run { "rm", "-rf", spool } end)
			cluster.run { "chmod", "1777", spool }
			for _ = 1, 3 do
				cluster.clear "default"
				follow("QUIT", function(folder)
					cluster.run { "sed", "-i", ("s|evrec.sink.kubernetes {}|evrec.sink.kubernetes { spool = '%s/events' }|")
						:format(spool), folder .. "/examples/nginx/failures.lua" }
				end)
			end
		end)

		it("tells a collector besides the cluster", function()
			local folder = new_folder()
			local ports = quickstart.copy(folder, "nginx", { "luajit" }, { 8080, 8082, 4318 })
			local readme = folder .. "/examples/nginx/README.md"
			-- Without its own metrics, for which it would listen at a fixed port. They belong to the last part of the file.
			local configuration = folder .. "/examples/nginx/collector.yaml"
			cluster.write(configuration, cluster.read(configuration) .. "  telemetry: { metrics: { level: none } }\n")
			local stop_collector = quickstart.start(folder, collector.program() .. " examples/nginx/collector.yaml")
			quickstart.await_port(ports[4318])
			local stop = quickstart.start(folder, "env " .. quickstart.command(readme, "OTEL_SERVICE_NAME=shop "))
			ask(folder, readme, ports[8080], 20)
			local log = stop "QUIT"
			check_events(readme, "nginx", 20, log)
			assert.equal(20, told_occurrences(stop_collector "TERM"), log)
			assert.is_nil(log:find("evrec: ", 1, true), log)
		end)

		-- If a worker takes too long to end, nginx kills the others as soon as that one has ended.
		it("lets each of many workers tell what it lost, stopped by SIGINT", function()
			local folder = new_folder()
			local port = quickstart.copy(folder, "nginx", { "luajit" }, { 8080, 8082 })[8080]
			local readme = folder .. "/examples/nginx/README.md"
			cluster.run { "sed", "-i", "s/worker_processes 2/worker_processes 16/", folder .. "/examples/nginx/nginx.conf" }
			local stop = quickstart.start(folder, quickstart.command(readme, "nginx "),
				"env OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1")
			ask(folder, readme, port, 60)
			local log = stop "INT"
			assert.truthy(log:find("not written", 1, true), log)
			assert.is_nil(log:find("exited on signal", 1, true), log)
		end)

		it("prints the events if there is no cluster", function()
			local folder = new_folder()
			local port = quickstart.copy(folder, "nginx", { "luajit" }, { 8080, 8082 })[8080]
			local readme = folder .. "/examples/nginx/README.md"
			local command = quickstart.command(readme, "EVENTS=- "):gsub("^(%S+) ", "env %1 ")
			local stop = quickstart.start(folder, command, "env -u KUBECONFIG HOME=/nonexistent")
			ask(folder, readme, port, 1)
			local log = stop "QUIT"
			assert.matches('"message":"Requests are answered with 503"', log)
		end)
	end)

	describe("for HAProxy", function()
		local function follow(beginning, change, signal, front)
			local folder = new_folder()
			local port = quickstart.copy(folder, "haproxy", { "5.3" }, { 8081, 8083 })[8081]
			local readme = folder .. "/examples/haproxy/README.md"
			local stop = quickstart.start(folder, change(quickstart.command(readme, beginning)), front)
			ask(folder, readme, port, 20)
			return readme, stop(signal)
		end

		it("delivers without a thread, from a chroot, stopped by the signal that it names", function()
			local signal = cluster.read "examples/haproxy/README.md":match "\n`pkill %-(%u+%d?) %-f '%^haproxy %-db'`"
			local readme, log = follow("haproxy ", tostring, signal)
			check_events(readme, "haproxy", 20, log)
			assert.is_nil(log:find("evrec: ", 1, true), log) -- all is well, so evrec tells nothing
		end)

		it("delivers with a master, stopped as the drop-in tells systemd", function()
			local unit = cluster.read "examples/haproxy/evrec.conf"
			assert.matches("\nKillMode=mixed\n", unit) -- the signal goes to the master alone
			local readme, log, code = follow("haproxy ", function(command)
				return (command:gsub("^haproxy %-db", "haproxy -W -db"))
			end, unit:match "\nKillSignal=SIG(%w+)\n")
			check_events(readme, "haproxy", 20, log)
			assert.equal("0", code)
		end)

		it("prints the events if there is no cluster", function()
			local _, log = follow("EVENTS=- ", function(command) return (command:gsub("^(%S+) ", "env %1 ")) end, "USR1",
				"env -u KUBECONFIG HOME=/nonexistent")
			assert.matches('"message":"Requests are answered with 503"', log)
		end)
	end)

	it("for C builds with two commands, and prints what it shows", function()
		local folder = new_folder()
		quickstart.copy(folder, "c", {}, {})
		local readme = folder .. "/examples/c/README.md"
		local prefix = "export HOME=" .. folder .. "; "
		local function follow(where, beginning)
			local said, ok = quickstart.run(where, prefix .. quickstart.command(readme, beginning))
			assert.is_true(ok, said)
			return said
		end
		follow(quickstart.here, "make install ")
		prefix = prefix .. quickstart.command(readme, "export ") .. "; "
		follow(folder, "cc -o in_cluster ")
		assert.matches("KUBERNETES_SERVICE_HOST is not set", (quickstart.run(folder,
			"unset KUBERNETES_SERVICE_HOST; " .. quickstart.command(readme, "./in_cluster "))))
		follow(folder, "cc -o embed ")
		local said = follow(folder, "./embed")
		for line in cluster.read(readme):gmatch "\n    ([{e][m\"][^\n]*)" do
			for part in line:gsub("…", "\n"):gmatch "[^\n]+" do
				assert.truthy(said:find(part, 1, true), part .. " is not in " .. said)
			end
		end
	end)
end)
