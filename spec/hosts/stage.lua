-- Sets up a host: its folder, a free port, a namespace, a sink, and perhaps a spool.
local books = require "books"
local cluster = require "cluster"
local process = require "process"
local socket = require "socket"
local tree = require "tree"

local stage = {}

local here = cluster.run { "pwd" }:match "[^\n]+"

local function free_port()
	for _ = 1, 100 do
		local port = math.random(20000, 32000)
		local server = socket.bind("127.0.0.1", port)
		if server then
			server:close()
			return port
		end
	end
	error "no free port"
end

--- Waits until something listens at the port.
function stage.await_port(port)
	tree.await("a server at port " .. port, function()
		local client = socket.connect("127.0.0.1", port)
		return client and client:close()
	end)
end

-- Writes a table of strings and tables as Lua.
local function literal(value)
	if type(value) ~= "table" then
		return ("%q"):format(value)
	end
	local fields = {}
	for key, field in pairs(value) do
		fields[#fields + 1] = ("%s = %s"):format(key, literal(field))
	end
	return "{ " .. table.concat(fields, ", ") .. " }"
end

-- Makes the folder of a host, which its users may enter.
local function make_folder(kind)
	math.randomseed(process.time() * 1000)
	local folder = ("%s/%s-%x"):format(cluster.scratch, kind, math.random(0x7fffffff))
	assert(cluster.run { "bash", "-c", 'mkdir -p "$0/chroot" && chmod 755 "$0" "$0/chroot"', folder } == "")
	return folder
end

-- Makes a folder that a host's user alone may enter; returns its path as the host sees it, and as this process does.
local function make_own_folder(host, user, name)
	local outside, inside = host:path(name)
	cluster.run { "install", "-d", "-o", user, "-m", "700", outside }
	return inside or outside, outside
end

--- Makes a host, which is not started yet. Its requests are recorded about objects in the namespace host.namespace.
---@param kind "nginx"|"haproxy"
---@param settings table words for its configuration, or `configuration`
---@param options { notes?: boolean, share?: boolean, spool?: boolean, state?: boolean, name?: string } host.notes is a
--- file with what was recorded
function stage.host(kind, settings, options)
	local class, folder = require(kind), make_folder(kind)
	local words = {
		folder = folder, port = free_port(), top = here,
		lua_path = ("%s/?.lua;%s/spec/hosts/?.lua;%s/lua/?.lua;%s/lua/?/init.lua"):format(folder, here, here, here),
		lua_cpath = ("%s/%s/%s/?.so"):format(here, os.getenv "HOSTS_BUILD", class.lua),
	}
	for name, word in pairs(settings) do
		words[name] = word
	end
	local host = class.new(words)
	host.namespace = folder:match "[^/]*$"
	local sink = books.server()
	if options.notes then
		host.notes = folder .. "/notes"
		cluster.write(host.notes, "")
	end
	if options.spool then
		sink.spool, host.spool_folder = make_own_folder(host, class.user, "spool")
	end
	if options.state then
		sink.state_file = make_own_folder(host, class.user, "known") .. "/state"
		-- A shared sink that names a state file alone has its spool beside that file.
		host.spool_folder = host.spool_folder or host:path "known" .. "/state.spool"
	end
	local path = folder .. "/settings.lua"
	host.share = options.share and "@evrec-" .. host.namespace or nil
	cluster.write(path, "return " .. literal {
		sink = sink, namespace = host.namespace, notes = host.notes, share = host.share, name = options.name,
	})
	process.set("HOSTS_SETTINGS", path)
	return host
end

--- Begins to make requests of a host; returns a function that waits for the last answer.
---@param rate integer requests a second
---@param held? number seconds for which another request has begun
function stage.load(host, requests, rate, held)
	local command = "luajit spec/hosts/load.lua %d %d %d %g 2>&1"
	local pipe = assert(io.popen(command:format(host.port, requests, rate, held or 0)))
	return function()
		local output = pipe:read "*a"
		pipe:close()
		assert(output:find "answers", output)
		return output
	end
end

local rows, rows_or_journals = "spool$", "spool(-pending)?$"

-- Whether the folder of a spool has files whose names end so.
local function has_files(folder, pattern)
	return cluster.run { "bash", "-c", 'ls "$0" 2>/dev/null | grep -E "$1"', folder, pattern }:match "%S"
end

--- Lets further processes take up what the spool has. While a process lives it has a journal of its own, so the wait is
--- for files of rows alone, and a process may end before it has found a journal.
function stage.take_up(host)
	local folder = host.spool_folder
	for _ = 1, 3 do
		if not folder or not has_files(folder, rows_or_journals) then
			return
		end
		host:start()
		-- A process looks at the spool with its first event.
		stage.await_port(host.port)
		stage.load(host, 1, 1)()
		tree.await("an empty spool", function() return not has_files(folder, rows) end, 30)
		host:finish()
	end
	assert(not has_files(folder, rows_or_journals), "three processes did not empty the spool")
end

return stage
