-- The command `evrec record`, each call a process of its own.
local cjson = require "cjson"
local command = require "command"
local evrec = require "evrec"
local fixtures = require "fixtures"
local tmpfiles = require "tmpfiles"

local interpreter = command.interpreter

describe("evrec record", function()
	local prefix, remove, lines

	before_each(function()
		local _
		prefix, _, remove = tmpfiles.new()
		lines = prefix .. ".json"
	end)

	after_each(function()
		remove()
		os.execute(("rm -rf %s.*"):format(prefix))
	end)

	-- Runs the command. Returns its status, and its standard error.
	local function record(input, ...)
		local line = ("printf '%s' | timeout 60 %s lua/bin/evrec record %s 2>%s.err; echo $? >%s.status"):format(input,
			interpreter, command.line { ... }, prefix, prefix)
		os.execute(line)
		return tonumber(tmpfiles.read(prefix .. ".status")), tmpfiles.read(prefix .. ".err")
	end

	-- Returns the events of the file in their last state, and how many lines it has.
	local function written()
		local events, by_name, count = {}, {}, 0
		for line in io.lines(lines) do
			count = count + 1
			local event = cjson.decode(line)
			if not by_name[event.metadata.name] then
				events[#events + 1] = event.metadata.name
			end
			by_name[event.metadata.name] = event
		end
		for i, name in ipairs(events) do
			events[i] = by_name[name]
		end
		return events, count
	end

	local function write(path, text)
		local file = assert(io.open(path, "wb"))
		file:write(text)
		file:close()
	end

	it("counts equal calls in one event, more than a spam filter would let through", function()
		for _ = 1, 30 do
			assert.equal(0, (record("", "--lines", lines, "job/backup", "Warning", "BackupFailed", "disk full")))
		end
		local events = written()
		assert.equal(1, #events)
		assert.equal(30, events[1].count)
		assert.equal("Job", events[1].involvedObject.kind)
		assert.equal("batch/v1", events[1].involvedObject.apiVersion)
		assert.equal("default", events[1].metadata.namespace)
	end)

	it("counts calls at the same time in one event", function()
		local calls = "for i in 1 2 3 4 5 6 7 8; do %s lua/bin/evrec record --lines %s Pod/a Normal Same m & done; wait"
		os.execute(calls:format(interpreter, lines))
		local events = written()
		assert.equal(1, #events)
		assert.equal(8, events[1].count)
	end)

	for _, processes in ipairs { 1, 2 } do
		it(("counts 30 equal calls in one event of a store, by %d processes at once"):format(processes), function()
			local store = prefix .. ".db"
			os.execute(([[for p in $(seq %d); do
				for i in $(seq %d); do %s lua/bin/evrec record --timeout 60 --store %s job/backup Warning Failed m; done &
				done 2>%s.err; wait]]):format(processes, 30 / processes, interpreter, store, prefix))
			assert.equal("", tmpfiles.read(prefix .. ".err"))
			local counts = {}
			for event in assert(evrec.store({ path = store }):query {}) do
				counts[#counts + 1] = event.involvedObject.name .. " x" .. event.count
			end
			assert.same({ "backup x30" }, counts)
		end)
	end

	it("records each line of standard input, and tells of those that it cannot read", function()
		local input = [[Pod/a Normal Started one\n\nPod/b Warning Failed two words\nPod/c Normal\n]]
		local status, told = record(input, "--lines", lines, "-")
		assert.equal(1, status)
		assert.equal("evrec: standard input: line 4: expected KIND/NAME TYPE REASON MESSAGE\n", told)
		local events = written()
		assert.equal("two words", events[2].message)
		assert.equal(2, #events)
		assert.equal(0, (record([[first\nsecond\n]], "--lines", lines, "-n", "shop", "Pod/d", "Normal", "Line", "-")))
		events = written()
		assert.equal("shop", events[4].involvedObject.namespace)
		assert.equal("second", events[4].message)
	end)

	it("takes the fields of an event from options", function()
		assert.equal(0, (record("", "--lines", lines, "--component", "cron", "--host", "n1", "--related", "node/n1",
			"--action", "Back", "Pod/a", "Normal", "R", "m")))
		local event = written()[1]
		assert.same({ component = "cron", host = "n1" }, event.source)
		assert.equal("Node", event.related.kind)
		assert.equal("Back", event.action)
	end)

	it("gives no namespace to objects of a kind that has none, whose events are in default", function()
		assert.equal(0, (record("", "--lines", lines, "node/n1", "Warning", "NotReady", "m")))
		assert.equal(0, (record("", "--lines", lines, "-n", "shop", "--related", "no/n1", "Pod/a", "Normal", "R", "m")))
		local events = written()
		assert.same({ kind = "Node", apiVersion = "v1", name = "n1" }, events[1].involvedObject)
		assert.equal("default", events[1].metadata.namespace)
		assert.same({ kind = "Node", apiVersion = "v1", name = "n1" }, events[2].related)
		assert.equal("shop", events[2].involvedObject.namespace)
		local message = "--namespace: not together with pv/x, as a PersistentVolume has no namespace; its events are in the "
			.. "namespace default\n"
		assert.same({ 2, "evrec: " .. message }, { record("", "--lines", lines, "-n", "shop", "pv/x", "Normal", "R", "m") })
		assert.same({ 1, "evrec: standard input: line 2: " .. message },
			{ record([[Pod/b Normal R m\npv/x Normal R m\n]], "--lines", lines, "-n", "shop", "-") })
	end)

	it("takes the namespace of the kubeconfig's context", function()
		local cli = require "evrec.cli.command"
		local make, namespaces = evrec.sink.kubernetes, {}
		write(prefix .. ".config", cjson.encode {
			["current-context"] = "here",
			clusters = { { name = "c", cluster = { server = "http://127.0.0.1:1" } } },
			contexts = {
				{ name = "here", context = { cluster = "c", namespace = "shop" } }, { name = "plain", context = { cluster = "c" } },
			},
		})
		evrec.sink.kubernetes = function()
			return evrec.sink.lua { create = function(event)
				namespaces[#namespaces + 1] = event.metadata.namespace .. " " .. event.involvedObject.namespace
				return true
			end }
		end
		for _, given in ipairs { {}, { "-n", "other" }, { "--context", "plain" } } do
			local words = { "record", "--kubeconfig", prefix .. ".config", "--state-file", prefix .. ".state", "Pod/a", "Normal",
				"R", "m", (table.unpack or unpack)(given) } -- luacheck: ignore 143
			assert.equal(0, cli.run(words))
		end
		evrec.sink.kubernetes = make
		assert.same({ "shop shop", "other other", "default default" }, namespaces)
	end)

	it("limits events about an object if it is told to", function()
		local input = ("again\\n"):rep(40)
		assert.equal(0, (record(input, "--lines", lines, "--burst-size", "5", "Pod/a", "Normal", "R", "-")))
		assert.is_true(written()[1].count <= 5)
	end)

	it("exits with 2 on misuse, and with 1 if the event was lost", function()
		for _, arguments in ipairs {
			{ "Pod", "Normal", "R", "m" }, { "Pod/a", "Normal", "R" }, { "Pod/a", "Odd", "R", "m" }, { "-", "Normal" },
			{ "--store", "s", "Pod/a", "Normal", "R", "m" }, { "--context", "c", "Pod/a", "Normal", "R", "m" },
			{ "--timeout", "-1", "Pod/a", "Normal", "R", "m" }, { "--related", "x", "Pod/a", "Normal", "R", "m" },
		} do
			local status, told = record("", "--lines", lines, (table.unpack or unpack)(arguments)) -- luacheck: ignore 143
			assert.equal(2, status, table.concat(arguments, " "))
			assert.truthy(told:find "^evrec: [^\n]+\n$", told)
		end
	end)

	it("says why the event was lost, also if the state file is damaged", function()
		local server = fixtures.mute_server()
		finally(server.stop)
		write(prefix .. ".config", cjson.encode {
			["current-context"] = "c", contexts = { { name = "c", context = { cluster = "k", user = "u" } } },
			clusters = { { name = "k", cluster = { server = server.url } } }, users = { { name = "u", user = { token = "t" } } },
		})
		write(prefix .. ".state", "damaged")
		local status, told = record("", "--kubeconfig", prefix .. ".config", "--state-file", prefix .. ".state", "--timeout",
			"0.3", "Pod/a", "Normal", "R", "m")
		assert.equal(1, status)
		assert.matches("^evrec: [^\n]*state file[^\n]*\nevrec: not written within 0%.3 s %(%-%-timeout%): "
			.. "1 event was not written; [^\n]*\n$", told)
	end)

	it("takes a message that begins with -, behind --", function()
		local status, told = record("", "--lines", lines, "Pod/a", "Normal", "R", "--full")
		assert.equal(2, status)
		assert.equal("evrec: unknown option '--full' (see evrec record --help; put -- before an event whose message begins "
			.. "with -)\n", told)
		assert.equal(0, (record("", "--lines", lines, "--", "Pod/a", "Normal", "R", "--full")))
		assert.equal("--full", written()[1].message)
	end)

	it("names the flag of a wrong namespace, and the words that - takes the place of", function()
		local status, told = record("", "--lines", lines, "-n", "kube_system", "Pod/a", "Normal", "R", "m")
		assert.equal(2, status)
		assert.equal("evrec: --namespace: expected a namespace's name, of at most 63 lower-case letters, digits and inner "
			.. "hyphens, got 'kube_system' (see evrec record --help)\n", told)
		status, told = record("", "--lines", lines, "-", "Warning", "X", "-")
		assert.equal(2, status)
		assert.equal("evrec: a - in the place of KIND/NAME reads KIND/NAME TYPE REASON MESSAGE from each line of standard "
			.. "input: leave out 'Warning' and what follows, or name the object\n", told)
	end)

	it("says at once that a file cannot be written, and makes nothing", function()
		local folder = prefix .. ".folder"
		assert.equal(0, (command.shell('mkdir "$1" && touch "$1/there" && chmod 555 "$1" && chmod 444 "$1/there"', folder)))
		local cases = { { "--store", "/nowhere/events.db", "No such file or directory", "m", "the event was not" },
			{ "--lines", "/nowhere/lines.json", "No such file or directory", "-", "no event was" } }
		for _, option in ipairs { "--store", "--lines" } do
			table.insert(cases, { option, folder .. "/new", "Permission denied", "m", "the event was not" })
			table.insert(cases, { option, folder .. "/there", "Permission denied", "m", "the event was not" })
		end
		-- Root may write everywhere because of a capability.
		local without_it = [[[ "$(id -u)" != 0 ] || set -- setpriv --bounding-set -dac_override,-dac_read_search "$@"
			exec timeout 5 "$@"]]
		for _, case in ipairs(cases) do
			local status, output, told = command.shell(without_it, interpreter, "lua/bin/evrec", "record", case[1], case[2],
				"Pod/a", "Normal", "R", case[4])
			assert.same({ 1, "", ("evrec: %s: %s; %s written\n"):format(case[2], case[3], case[5]) }, { status, output, told })
		end
		local _, left = command.shell('ls -A "$1"; ls -d /nowhere; chmod 755 "$1"', folder)
		assert.equal("there\n", left)
	end)

	it("tells how many lines were lost", function()
		local status, told = record([[one\ntwo\n\ntwo\n]], "--timeout", "0.3", "--lines", "/dev/full", "--state-file",
			prefix .. ".state", "Pod/a", "Normal", "R", "-")
		assert.equal(1, status)
		assert.equal("evrec: file: /dev/full: No space left on device\nevrec: standard input: 3 events were lost\n", told)
	end)

	it("keeps in a store what a burst suppressed, for evrec explain", function()
		local store = prefix .. ".db"
		for _ = 1, 3 do
			assert.equal(0, (record("", "--store", store, "--burst-size", "2", "job/backup", "Warning", "Failed", "m")))
		end
		local status, output, told = command.evrec("explain", "job/backup", "--store", store)
		assert.same({ 0, "" }, { status, told })
		assert.truthy(output:find("Failed: 1 occurrence was rate limited, as there was no token for it. ", 1, true), output)
	end)

	it("has no limit without --burst-size and --qps, also after calls that had one", function()
		for _ = 1, 2 do
			assert.equal(0, (record("", "--lines", lines, "--burst-size", "1", "--qps", "0", "Pod/a", "Normal", "R", "m")))
		end
		assert.equal(0, (record("", "--lines", lines, "Pod/a", "Normal", "R", "m")))
		assert.equal(3, written()[1].count)
	end)

	-- Starts the command on a named pipe, into which a shell writes at descriptor 3 as `script` says. The script has
	-- the command's process id in $p. Returns the command's status.
	local function record_pipe(script, ...)
		local in_shell = [[
			p_in=%s.pipe; mkfifo "$p_in" || exit; timeout 60 %s lua/bin/evrec record %s <"$p_in" 2>%s.err & p=$!
			exec 3>"$p_in"; %s
			wait $p; echo $? >%s.status]]
		local words = command.line { ... }
		os.execute(in_shell:format(prefix, interpreter, words, prefix, script:gsub("EVREC", interpreter .. " lua/bin/evrec"),
			prefix))
		return tonumber(tmpfiles.read(prefix .. ".status"))
	end

	-- A shell command that waits until the file has so many lines.
	local function until_lines(count)
		return ("i=0; while [ $(cat %s 2>/dev/null | wc -l) -lt %d ] && [ $i -lt 500 ]; do sleep 0.02; i=$((i+1)); done; ")
			:format(lines, count)
	end

	it("lets other processes count while it waits for lines", function()
		local other = ("EVREC record --timeout 5 --lines %s Pod/a Normal R same 2>%s.other; "):format(lines, prefix)
		local script = "echo same >&3; " .. until_lines(1) .. other .. "echo same >&3; " .. until_lines(3) .. "exec 3>&-"
		assert.equal(0, record_pipe(script, "--lines", lines, "Pod/a", "Normal", "R", "-"))
		assert.equal("", tmpfiles.read(prefix .. ".other"))
		local events = written()
		assert.equal(1, #events)
		assert.equal(3, events[1].count)
	end)

	it("lets other processes count while lines come without a pause", function()
		local other = "EVREC record --timeout 20 --lines %s Pod/b Normal R other 2>%s.other; kill $y; exec 3>&-"
		local script = "(while sleep 0.05; do echo same; done) >&3 & y=$!; " .. until_lines(1)
			.. other:format(lines, prefix)
		assert.equal(0, record_pipe(script, "--lines", lines, "Pod/a", "Normal", "R", "-"))
		assert.equal("", tmpfiles.read(prefix .. ".other"))
	end)

	it("records the last line on a signal, also without its end", function()
		local script = "printf 'first\\nlast' >&3; " .. until_lines(1) .. "sleep 0.1; kill -TERM $p"
		assert.equal(143, record_pipe(script, "--lines", lines, "Pod/a", "Normal", "R", "-"))
		local events = written()
		assert.equal("last", events[2] and events[2].message)
	end)

	it("reads many lines, long ones, and those that end in CR LF", function()
		local text = ("x"):rep(100000)
		assert.equal(0, (record([[one\r\n \r\n]] .. text .. [[\nend]], "--lines", lines, "Pod/a", "Normal", "R", "-")))
		local events = written()
		assert.equal(3, #events)
		assert.equal("one", events[1].message)
		assert.equal(("x"):rep(100), events[2].message:sub(1, 100))
		assert.equal("end", events[3].message)
		assert.equal(0, (record(("same\\n"):rep(5000), "--lines", lines, "Pod/b", "Normal", "R", "-")))
		events = written()
		assert.equal(5000, events[4].count)
	end)

	it("tells of a refused line once", function()
		local status, told = record([[Pod/a Odd R m\nPod/b Normal R m\n]], "--lines", lines, "-")
		assert.equal(1, status)
		assert.truthy(told:find "^evrec: standard input: line 1: type: [^\n]+\n$", told)
	end)

	local function exists(path)
		local file = io.open(path, "rb")
		return file ~= nil and file:close() ~= nil
	end

	-- A target that is refused, and left alone, with nothing beside it.
	local function refuses(option, message)
		local before = tmpfiles.read(lines)
		local status, told = record("", option, lines, "Pod/a", "Normal", "R", "m")
		assert.equal(2, status)
		assert.truthy(told:find(message), told)
		assert.equal(before, tmpfiles.read(lines))
		assert.is_false(exists(lines .. ".state"))
		assert.is_false(exists(lines .. ".state.lock"))
	end

	it("refuses a file of another kind, and leaves nothing beside it", function()
		write(lines, "root:*:20000:0:99999:7:::\n")
		refuses("--store", "is not an event store of evrec\n$")
		refuses("--lines", "is not a file of events")
		write(lines, [[{"kind":"Pod","metadata":{}}]])
		refuses("--lines", "is not a file of events")
		write(lines, "SQLite format 3\0" .. ("\0"):rep(84))
		refuses("--lines", "is an SQLite file")
		refuses("--store", lines)
		write(lines, "")
		assert.equal(0, (record("", "--lines", lines, "Pod/a", "Normal", "R", "m")))
		local file = assert(io.open(lines, "ab"))
		file:write '{"cut off' -- by a full disk
		file:close()
		assert.equal(0, (record("", "--lines", lines, "Pod/a", "Normal", "R", "m")))
	end)

	it("takes unknown kinds as they are given, and warns of a word that may be misspelt", function()
		local status, told = record([[jbo/x Normal R m\njbo/y Normal R m\nWidget/z Normal R m\n]], "--lines", lines, "-")
		assert.equal(0, status)
		assert.equal("evrec: no built-in kind is called 'jbo'; the event is recorded with it all the same: did you mean "
			.. "'job'?\n", told)
		status, told = record("", "--lines", lines, "gizmo/x", "Normal", "R", "m")
		assert.same({ 0, "evrec: no built-in kind is called 'gizmo'; the event is recorded with it all the same\n" },
			{ status, told })
		local store = prefix .. ".db"
		status, told = record("", "--store", store, "widgets.example.com/foo", "Normal", "R", "m")
		assert.equal(0, status)
		assert.equal("", told)
		local events = "%s lua/bin/evrec events --store %s --for Widgets.example.com/foo -o json"
		local pipe = io.popen(events:format(interpreter, store))
		local list = cjson.decode(pipe:read "*a")
		pipe:close()
		assert.same({ kind = "widgets", apiVersion = "example.com/", name = "foo", namespace = "default" },
			list.items[1].involvedObject)
	end)

	it("has messages without names of Lua, and advice", function()
		local home = ("HOME=%s.none KUBECONFIG= KUBERNETES_SERVICE_HOST= "):format(prefix)
		local no_server = ("evrec: no API server: not inside a cluster, and no %s.none/.kube/config; "
			.. "give --store PATH, --lines PATH or --kubeconfig PATH\n"):format(prefix)
		for arguments, expected in pairs { ["record Pod/a Normal R m"] = 2, ["events"] = 1 } do
			os.execute(("%s %s lua/bin/evrec %s 2>%s.err; echo $? >%s.status"):format(home, interpreter, arguments, prefix,
				prefix))
			assert.equal(no_server, tmpfiles.read(prefix .. ".err"))
			assert.equal(expected, tonumber(tmpfiles.read(prefix .. ".status")))
		end
		for _, arguments in ipairs { { "--store", "" }, { "--store", "s", "--state-file", "" },
			{ "--kubeconfig", prefix .. ".none" } } do
			local words = { "Pod/a", "Normal", "R", "m" }
			for i, word in ipairs(arguments) do
				table.insert(words, i, word)
			end
			local status, told = record("", (table.unpack or unpack)(words)) -- luacheck: ignore 143
			assert.equal(2, status)
			assert.falsy(told:find "%.lua" or told:find "option '" or told:find "evrec%.", told)
		end
		write(lines .. ".state", ("no state "):rep(20))
		local status, told = record("", "--lines", lines, "Pod/a", "Normal", "R", "m")
		assert.equal(0, status)
		assert.truthy(told:find("is not a state file of evrec; delete it", 1, true), told)
	end)

	it("takes --qps as a fraction, and --allow-exec", function()
		local input = ("again\\n"):rep(10)
		assert.equal(0, (record(input, "--lines", lines, "--burst-size", "2", "--qps", "1/300", "Pod/a", "Normal", "R", "-")))
		assert.is_true(written()[1].count <= 2)
		local _, told = record("", "--lines", lines, "--allow-exec", "aws", "Pod/a", "Normal", "R", "m")
		assert.truthy(told:find("not together", 1, true), told)
	end)

	it("reads no more than the end of a file, as a device may have none", function()
		local script = ([[timeout 10 %s lua/bin/evrec record --timeout 1 --state-file %s.state --lines /dev/full \
			Pod/a Normal R m 2>%s.err; echo $? >%s.status]]):format(interpreter, prefix, prefix, prefix)
		os.execute(script)
		assert.equal("evrec: file: /dev/full: No space left on device\nevrec: the event was not written\n",
			tmpfiles.read(prefix .. ".err"))
		assert.equal(1, tonumber(tmpfiles.read(prefix .. ".status")))
	end)
end)
