-- Chooses the sink that `evrec record` writes to, and the file that keeps its counts between calls.
local evrec = require "evrec"
local core = require "evrec.core"
local kubernetes = require "evrec.kubernetes"

local sources = require "evrec.cli.sources"
local terminal = require "evrec.cli.terminal"

local record_target = {}

local SQLITE_HEADER = "SQLite format 3\0" -- the first bytes of every file of SQLite
local LAST_BYTES = 65536 -- of a file of lines; the last event is within them

local function quoted(text)
	return "'" .. text:gsub("'", [['\'']]) .. "'"
end

-- The folder of state files, which is made if need be. XDG Base Directory Specification.
local function state_folder()
	local base = os.getenv "XDG_STATE_HOME"
	if not base or base:sub(1, 1) ~= "/" then
		local home = os.getenv "HOME"
		if not home then
			terminal.fail(2, "neither HOME nor XDG_STATE_HOME is set: name a file by --state-file")
		end
		base = home .. "/.local/state"
	end
	local folder = base .. "/evrec"
	os.execute(("mkdir -p -m 700 -- %s 2>/dev/null"):format(quoted(folder)))
	return folder
end

-- ---- the file that is there already ----

local function is_event(line)
	local ok, event = pcall(require("cjson").decode, line)
	return ok and type(event) == "table" and type(event.metadata) == "table"
		and (event.involvedObject or event.regarding) ~= nil
end

-- Tells whether the last line is an event. One without a line feed may be cut off by a full disk, and does not count if
-- there is a line before it.
local function ends_in_event(text)
	local whole, last = text:match "([^\n]*)\n([^\n]*)$"
	return is_event(whole or text) or (whole == "" and last == "")
end

-- Makes a file with a name of its own in the folder of the path, and removes it: the path itself would be made with
-- another mode than the sink's. Returns true; or nil and a message.
local function can_make(path)
	local folder = path:match "^.*/" or "./"
	local probe = folder .. ".evrec-" .. tostring({}):match "%x+$"
	local file, why = io.open(probe, "ab") -- which empties no file that a link of this name leads to
	if not file then
		return nil, path .. why:sub(#probe + 1)
	end
	file:close()
	os.remove(probe)
	return true
end

local ENOENT, EACCES, EISDIR = 2, 13, 21

-- Ends the command if the file cannot be written or created: the sink would try until the timeout. Called if it cannot
-- be opened for reading and writing; a sink of lines needs only the right to write.
local function check_writable(path, arguments, why, code)
	if code == EISDIR then
		terminal.fail(2, why)
	end
	local file = code == EACCES and arguments.lines and io.open(path, "ab")
	local ok = file and file:close()
	if code == ENOENT then
		ok, why = can_make(path)
	end
	if not ok then
		local several = arguments.object == "-" or arguments.message == "-"
		terminal.fail(1, why .. (several and "; no event was written" or "; the event was not written"))
	end
end

-- Ends the command if the file at the path is of another kind than the sink's, before a state file lies beside it. Mode
-- "r+" does not wait for the other end of a named pipe. Only a regular file has a size.
local function check_file(path, arguments)
	local is_store = arguments.store ~= nil
	local file, why, code = io.open(path, "r+b")
	if not file then
		return check_writable(path, arguments, why, code)
	end
	local size = file:seek "end"
	if not size then
		file:close()
		return
	end
	file:seek "set"
	local is_sqlite = file:read(#SQLITE_HEADER) == SQLITE_HEADER
	file:seek("set", math.max(0, size - LAST_BYTES))
	local text = file:read(LAST_BYTES) or "" -- a device such as /dev/full has no end
	file:close()
	if is_store and size > 0 and not is_sqlite then
		terminal.fail(2, path .. " is not an event store of evrec")
	elseif not is_store and is_sqlite then
		terminal.fail(2, path .. " is an SQLite file: use --store for an event store")
	elseif not is_store and size > 0 and not ends_in_event(text) then
		terminal.fail(2, path .. " is not a file of events: its last line is none")
	end
	return size > 0
end

local function exists(path)
	local file = io.open(path, "rb")
	return file ~= nil and file:close()
end

-- Whether a store that cannot be read may be written all the same: the sink waits for another process, and converts a
-- store of an earlier version.
local function may_be_written(message)
	return message:find " is in use: another process is writing$" or message:find ": a store of an older version;"
end

-- Ends the command if a file of SQLite is no store. It is checked once: a state file beside it says that it is a store,
-- but a state file that the user has named may be that of another store.
local function check_store(path, arguments, state_file)
	if not arguments.state_file and exists(state_file) then
		return
	end
	local iterate, message = evrec.store({ path = path }):query { limit = 1 }
	if not iterate and not may_be_written(message) then
		terminal.fail(2, message)
	end
end

-- ---- the state file ----

-- The path of the folder, and the name of the file in it.
local function split(path)
	local folder, name = path:match "^(.*/)([^/]*)$"
	return folder or "./", name or path
end

-- Tells whether two paths name one file, also if it does not exist yet.
local function is_same(path, other)
	local _, file = core.file_at(path)
	local _, other_file = core.file_at(other)
	if path == other or (file and file == other_file) then
		return true
	end
	local folder, name = split(path)
	local other_folder, other_name = split(other)
	_, folder = core.file_at(folder)
	_, other_folder = core.file_at(other_folder)
	return name == other_name and folder ~= nil and folder == other_folder
end

-- The ends of the names of files that lie beside a store, beside lines, and beside a state file.
local BESIDE_STORE = { "", "-wal", "-shm", "-journal" }
local BESIDE_LINES = { "" }
local BESIDE_STATE = { "", ".lock", ".new" }

-- Ends the command if the state file, or a file beside it, is one of the store's files, or the file of lines.
local function check_state_file(path, arguments)
	local state, option = arguments.state_file, arguments.store and "--store" or "--lines"
	for _, suffix in ipairs(arguments.store and BESIDE_STORE or BESIDE_LINES) do
		for _, state_suffix in ipairs(BESIDE_STATE) do
			if is_same(path .. suffix, state .. state_suffix) then
				terminal.fail(2, suffix == "" and state_suffix == "" and "--state-file: names the same file as " .. option
					or ("--state-file: %s%s is a file of %s"):format(state .. state_suffix,
						state_suffix ~= "" and ", which it has beside it," or "", option))
			end
		end
	end
end

local SPECIAL = { pipe = true, device = true, socket = true }

-- Tells whether the path is a device, a pipe or a socket, or one of the names of standard output. Nobody looks for a
-- state file beside it, and the folder may be /dev.
local function is_special(path)
	return path:find "^/dev/std" ~= nil or path:find "^/dev/fd/" ~= nil or path:find "^/proc/" ~= nil
		or SPECIAL[core.file_at(path)] == true
end

-- ---- choosing ----

local function of_file(arguments, path)
	local special = path ~= "-" and is_special(path)
	local options = { path = path, state_file = arguments.state_file }
	if path ~= "-" and not special then
		options.state_file = options.state_file or path .. ".state"
	end
	if path ~= "-" and arguments.state_file then
		check_state_file(path, arguments)
	end
	-- The reader of a pipe would take its closing for the end.
	local is_pipe = special and core.file_at(path) == "pipe"
	if path ~= "-" and not is_pipe and check_file(path, arguments) and options.state_file and arguments.store then
		check_store(path, arguments, options.state_file)
	end
	if arguments.store and path ~= "-" then
		options.suppressions = true -- for `evrec explain --store`
		return evrec.sink.store, options, "default"
	end
	return evrec.sink.file, options, "default"
end

local function of_cluster(arguments)
	local options = sources.cluster_options(arguments)
	local ok, server = pcall(kubernetes.server, options)
	if not ok then
		terminal.fail(2, sources.reworded(server))
	end
	local namespace = kubernetes.namespace(options)
	options.state_file = arguments.state_file
		or ("%s/record-%s.state"):format(state_folder(), (server:gsub("[^%w.-]", "_")))
	return evrec.sink.kubernetes, options, namespace
end

--- Chooses a sink by the arguments, or ends the command.
---@param arguments table
---@return fun(options: table): evrec.Sink make
---@return table options with a state_file, but for lines on standard output
---@return string namespace of the objects that are recorded without -n
function record_target.choose(arguments)
	sources.check_paths(arguments, { "store", "lines", "state_file", "kubeconfig" })
	local path = arguments.store or arguments.lines
	local make, options, namespace
	if arguments.store and arguments.lines then
		terminal.fail(2, "--store: not together with --lines")
	end
	if path and (arguments.kubeconfig or arguments.context or #arguments.allow_exec > 0) then
		terminal.fail(2, "--kubeconfig, --context and --allow-exec: not together with --store and --lines")
	elseif path then
		make, options, namespace = of_file(arguments, path)
	else
		make, options, namespace = of_cluster(arguments)
	end
	options.max_age = arguments.timeout > 0 and arguments.timeout or nil
	return make, options, namespace
end

return record_target
