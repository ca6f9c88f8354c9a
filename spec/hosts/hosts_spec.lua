-- Properties of hosts that the matrix does not try. Run by hosts.sh, in LuaJIT.
local bit = require "bit"
local books = require "books"
local cluster = require "cluster"
local process = require "process"
local stage = require "stage"
local tree = require "tree"

local kinds = {
	{ "nginx", { workers = 2 } },
	{ "haproxy", { mode = "-Ws", load = "lua-load", threads = "" } },
	{ "haproxy", { mode = "-Ws", load = "lua-load-per-thread", threads = "nbthread 2" } },
}

tree.adopt()

describe("a host", function()
	after_each(tree.kill_all)

	local function request(host, requests)
		stage.await_port(host.port)
		stage.load(host, requests, 500)()
	end

	-- Waits until as many occurrences are there.
	local function await_events(host, wanted)
		local sum
		local _, failure = pcall(tree.await, "events", function()
			sum = 0
			for _, count in pairs(books.ledger(host.namespace).counts) do
				sum = sum + count
			end
			return sum >= wanted
		end)
		assert.equal(wanted, sum, failure)
	end

	-- The open descriptors of a process at this moment, without numbers: a sorted list.
	local function list_descriptors(pid)
		local list = {}
		for line in cluster.run { "find", ("/proc/%d/fd"):format(pid), "-type", "l", "-printf", "%l\\n" }:gmatch "[^\n]+" do
			list[#list + 1] = line:gsub("%d+", "N")
		end
		table.sort(list)
		return table.concat(list, "\n")
	end

	-- The same, once the process has opened and closed none for half a second.
	local function descriptors(pid)
		local before, since
		tree.await("descriptors that stay", function()
			local list = list_descriptors(pid)
			if list ~= before then
				before, since = list, process.time()
			end
			return process.time() - since > 0.5
		end)
		return before
	end

	local calls = "network,clone,clone3,fork,vfork,execve,open,openat,creat,mkdir,mkdirat,rename,unlink"

	-- The system calls by which a host that checks its configuration makes threads, processes, sockets or files: a sorted
	-- list, without numbers.
	local function effects(host)
		local trace, list = host.folder .. "/trace", {}
		local output, ok = cluster.run { "strace", "-f", "-o", trace, "-e", "trace=" .. calls, host:check() }
		assert.is_true(ok, output)
		for line in io.lines(trace) do
			if line:find("O_CREAT", 1, true) or not line:find "O_RDONLY" then
				-- strace pads process ids that have fewer digits.
				list[#list + 1] = line:gsub("0x%x+", "N"):gsub("%d+", "N"):gsub("%s+", " ")
			end
		end
		table.sort(list)
		return list
	end

	for _, kind in ipairs(kinds) do
		local name = table.concat({ kind[1], kind[2].load }, ", ")

		it(name .. ": leaks no descriptor over 20 reloads", function()
			local host = stage.host(kind[1], kind[2], {})
			host:start()
			local first
			for n = 1, 21 do
				request(host, 20)
				await_events(host, 20 * n)
				host.changes.reload(host)
				if n == 1 then
					stage.await_port(host.port)
					first = { descriptors(host.pid), descriptors(host:workers()[1]) }
				end
			end
			assert.equal(first[1], descriptors(host.pid))
			assert.equal(first[2], descriptors(host:workers()[1]))
			host:finish()
		end)

		it(name .. ": has no side effect if it only checks its configuration", function()
			local host = stage.host(kind[1], kind[2], { spool = true, state = true })
			-- A script of this name in the host's own folder is found first.
			local stand_in = host.folder .. "/recording.lua"
			cluster.write(stand_in, "return { record = function() end }")
			local without = effects(host)
			os.remove(stand_in)
			assert.same(without, effects(host))
		end)
	end

	local function status(pid, field)
		return tonumber(cluster.read(("/proc/%d/status"):format(pid)):match(field .. ":%s*(%d+)"))
	end

	-- Whether SIGUSR1 is in a mask of a process.
	local function has_signal(pid, field)
		local mask = cluster.read(("/proc/%d/status"):format(pid)):match(field .. ":%s*(%x+)")
		return bit.band(tonumber(mask:sub(-4), 16), 0x200) ~= 0
	end

	-- A master sends a second one to a worker that still writes, if a stop or another reload follows a reload.
	it("HAProxy writes on after a second SIGUSR1", function()
		local host, server = stage.host("haproxy", kinds[2][2], {}), tonumber(os.getenv "HOSTS_SERVER_PID")
		host:start()
		request(host, 20)
		await_events(host, 20)
		tree.signal(server, "STOP")
		finally(function() tree.signal(server, "CONT") end)
		request(host, 20)
		local worker = host:workers()[1]
		tree.signal(host.pid, "USR1")
		-- At its end HAProxy gives up its signal handlers. evrec, which blocks SIGUSR1, then waits for the server.
		tree.await("the end of HAProxy's handlers", function() return not has_signal(worker, "SigCgt") end)
		pcall(tree.await, "the block", function() return has_signal(worker, "SigBlk") end, 0.5)
		tree.signal(worker, "USR1")
		tree.signal(server, "CONT")
		tree.await_end(host.pid)
		await_events(host, 40)
	end)

	-- nginx makes a Lua state for each request, and closes it afterwards. A leak grows in each round; the C library's
	-- heaps grow in some, with the number of threads that run at once.
	it("nginx with lua_code_cache off: delivers, and leaks nothing", function()
		local host = stage.host("nginx", { workers = 1, code_cache = "off" }, {})
		host:start()
		local worker, sizes, total, least = host:workers()[1], {}, 0, math.huge
		for round = 1, 4 do
			request(host, 100)
			total = total + 100
			await_events(host, total)
			tree.await("the end of the threads", function() return status(worker, "Threads") == 1 end)
			sizes[round] = { status(worker, "VmRSS"), descriptors(worker) }
			least = round == 1 and least or math.min(least, sizes[round][1] - sizes[round - 1][1])
		end
		assert.equal(sizes[1][2], sizes[4][2])
		assert.is_true(least < 1024, least .. " KiB or more in each round of 100 requests")
		host:finish()
	end)

	-- The state of init_by_lua lives as long as the worker, and holds the broadcaster of that name.
	it("nginx with lua_code_cache off: the states of requests share one broadcaster, if it has a name", function()
		local host = stage.host("nginx", { workers = 1, code_cache = "off" }, { name = "main" })
		host:start()
		request(host, 400)
		await_events(host, 400)
		assert.equal(1, status(host:workers()[1], "Threads") - 1) -- the sink's
		host:finish()
		-- load.lua asks for one hundred regular objects, and a new one each tenth time.
		local objects = 0
		for _ in pairs(books.ledger(host.namespace).counts) do
			objects = objects + 1
		end
		assert.equal(objects, books.ledger(host.namespace).events)
	end)
end)
