-- The files that `evrec record` writes to, and those that it makes beside them.
local command = require "command"
local fixtures = require "fixtures"
local tmpfiles = require "tmpfiles"

describe("evrec record and its files", function()
	local prefix, write, remove

	before_each(function()
		prefix, write, remove = tmpfiles.new()
	end)

	after_each(function()
		remove()
		os.execute(("rm -rf %s.*"):format(prefix))
	end)

	-- Runs the command in the folder of the test's files. Returns its status, and its standard error.
	local function record(...)
		local words = { ... }
		for _, word in ipairs { "Pod/a", "Normal", "R", "m" } do
			words[#words + 1] = word
		end
		local status, _, told = command.evrec("record", (table.unpack or unpack)(words)) -- luacheck: ignore 143
		return status, told
	end

	local function exists(path)
		local file = io.open(path, "rb")
		return file ~= nil and file:close() ~= nil
	end

	-- The names of the files that begin with the test's prefix, without it.
	local function files()
		local _, output = command.shell('cd "${1%/*}" && ls | sed -n "s/^${1##*/}\\.//p"', prefix)
		return (output:gsub("\n", " "))
	end

	it("refuses a state file that is also the file of the events", function()
		local folder, name = prefix:match "^(.*)/([^/]+)$"
		for _, option in ipairs { "--store", "--lines" } do
			local path = prefix .. option
			local refusal = { 2, ("evrec: --state-file: names the same file as %s\n"):format(option) }
			for _, same in ipairs { path, ("%s/./%s%s"):format(folder, name, option) } do
				assert.same(refusal, { record(option, path, "--state-file", same) })
				assert.is_false(exists(path))
			end
			assert.equal(0, (record(option, path)))
			assert.equal(0, (command.shell('ln -s "$1" "$1.link"', path)))
			local before = tmpfiles.read(path)
			for _, same in ipairs { path, path .. ".link" } do
				assert.same(refusal, { record(option, path, "--state-file", same) })
			end
			assert.equal(before, tmpfiles.read(path))
			os.execute(("rm -f %s--*"):format(prefix))
		end
	end)

	it("refuses a state file whose files are some of the store", function()
		local store = prefix .. ".db"
		for _, suffix in ipairs { "-wal", "-shm", "-journal" } do
			local path = store .. suffix
			assert.same({ 2, ("evrec: --state-file: %s is a file of --store\n"):format(path) },
				{ record("--store", store, "--state-file", path) })
			assert.is_false(exists(path))
		end
		for _, suffix in ipairs { ".lock", ".new" } do
			for _, option in ipairs { "--store", "--lines" } do
				local state = prefix .. ".counts"
				assert.same({ 2, ("evrec: --state-file: %s%s, which it has beside it, is a file of %s\n"):format(state, suffix,
					option) }, { record(option, state .. suffix, "--state-file", state) })
				assert.is_false(exists(state .. suffix))
			end
		end
		assert.equal(0, (record("--store", store, "--state-file", prefix .. ".db-walk")))
		os.execute(("rm -f %s.db-walk*"):format(prefix))
	end)

	it("makes no file, and tells of no kind, if the event is refused", function()
		for _, option in ipairs { "--store", "--lines" } do
			local status, _, told = command.evrec("record", option, prefix .. ".new", "jbo/a", "normal", "R", "m")
			assert.same({ 2, 'evrec: type: expected "Normal" or "Warning", got "normal"\n' }, { status, told })
			status, _, told = command.shell([[echo jbo/a normal R m | exec "$@"]], command.interpreter, "lua/bin/evrec",
				"record", option, prefix .. ".told", "-")
			assert.same({ 1, 'evrec: standard input: line 1: type: expected "Normal" or "Warning", got "normal"\n' },
				{ status, told })
			os.execute(("rm -f %s.told*"):format(prefix))
		end
		assert.equal("", files())
	end)

	it("refuses another SQLite file at once, also if a state file that is named is there", function()
		local other, counts = prefix .. ".sqlite", prefix .. ".counts"
		assert.equal(0, (record("--store", prefix .. ".db", "--state-file", counts)))
		assert.equal(0, (command.shell([[$1 -c 'import sqlite3, sys
sqlite3.connect(sys.argv[1]).execute("create table t (a)")' "$2"]], fixtures.python, other)))
		assert.same({ 2, ("evrec: %s is not an event store of evrec\n"):format(other) },
			{ record("--store", other, "--state-file", counts) })
	end)

	it("converts a store of version 1 that has no state file", function()
		local store = prefix .. ".db"
		assert.equal(0, (record("--store", store)))
		assert.equal(0, (command.shell([[rm "$2".state* && $1 -c 'import sqlite3, sys
sqlite3.connect(sys.argv[1]).executescript("""drop table occurrences; drop table suppressions;
pragma user_version = 1""")' "$2"]], fixtures.python, store)))
		assert.same({ 0, "" }, { record("--store", store) })
	end)

	it("starts no shell to look at its files", function()
		local script = ([[
			local evrec_command = require "evrec.cli.command"
			local called = 0
			os.execute = function() called = called + 1 return true end
			io.popen = os.execute
			local status = evrec_command.run { "record", "--lines", %q, "--state-file", %q, "Pod/a", "Normal", "R", "m" }
			io.stdout:write(status, " ", called)]]):format(prefix .. ".json", prefix .. ".counts")
		assert.same({ 0, "0 0", "" }, { command.script(script) })
	end)

	local NOT_KEPT = "evrec: file: counts are not kept for the next process: %s is not a state file of evrec; "

	it("advises to delete no file that the user has named as the state file", function()
		local lines, other = prefix .. ".json", write("other", ("notes "):rep(20))
		assert.same({ 0, NOT_KEPT:format(other) .. "name another file by --state-file\n" },
			{ record("--lines", lines, "--state-file", other) })
		write("json.state", ("notes "):rep(20))
		assert.same({ 0, NOT_KEPT:format(lines .. ".state") .. "delete it, and counts begin anew\n" },
			{ record("--lines", lines) })
	end)

	it("writes no message into a file if standard error is closed", function()
		local path = prefix .. ".json"
		assert.equal(0, (command.shell([["$@" >&- 2>&-]], command.interpreter, "lua/bin/evrec", "record", "--lines", path,
			"jbo/a", "Normal", "R", "m")))
		assert.equal("", tmpfiles.read(path .. ".state.lock"))
		local _, _, told = command.shell([["$@" >&-]], command.interpreter, "lua/bin/evrec", "events", "--lines", path)
		assert.equal("evrec: standard output: Bad file descriptor\n", told)
	end)

	it("makes no state file beside a file that is not a regular one", function()
		local in_folder = [[cd "$1" && ln -s /dev/null "$2.null" && mkfifo "$2.pipe" && cat "$2.pipe" >"$2.read" &
			sleep 0.1; wait_for() { while ! [ -e "$1" ]; do sleep 0.02; done; }; wait_for "$2.read"]]
		assert.equal(0, (command.shell(in_folder, prefix:match "^(.*)/[^/]*$", prefix)))
		assert.same({ 0, "" }, { record("--lines", prefix .. ".null") })
		assert.same({ 0, "" }, { record("--lines", prefix .. ".pipe") })
		assert.equal("null pipe read ", files())
		assert.truthy(tmpfiles.read(prefix .. ".read"):find('"reason":"R"', 1, true))
		local piped = [[p=$2.pipe; cat "$p" >"$p.read" & "$1" lua/bin/evrec record --lines "$p" --state-file "$p.counts" \
			pod/a Normal R m && wait && grep -c '"reason":"R"' "$p.read" && rm "$p".*]]
		assert.same({ 0, "1\n", "" }, { command.shell(piped, command.interpreter, prefix) })
		local stdout = [["$1" lua/bin/evrec record --lines /dev/stdout pod/a Normal R m >"$2"; ls /dev/*.state]]
		local _, output = command.shell(stdout, command.interpreter, prefix .. ".out")
		os.execute "rm -f /dev/stdout.state*"
		assert.equal("", output)
		assert.truthy(tmpfiles.read(prefix .. ".out"):find('"reason":"R"', 1, true))
		assert.same({ 0, "" }, { record("--lines", prefix .. ".json") })
		write("empty", "")
		assert.same({ 0, "" }, { record("--lines", prefix .. ".empty") })
		assert.equal("empty empty.state empty.state.lock json json.state json.state.lock null out pipe read ", files())
	end)
end)
