-- The command `evrec events` over lines, with processes of its own. spec/e2e/events_table_spec.lua compares it with
-- kubectl.
local cjson = require "cjson"
local command = require "command"
local shapes = require "event_shapes"

describe("evrec events", function()
	local path, now

	-- Writes events as lines.
	local function write(events)
		local file = assert(io.open(path, "w"))
		for _, event in ipairs(events) do
			file:write(shapes.json(event), "\n")
		end
		file:close()
	end

	local function plain(name, age, fields)
		local event = shapes.plain(name, "default", now - age)
		for key, value in pairs(fields or {}) do
			event[key] = value
		end
		return event
	end

	local function run(...)
		return command.evrec("events", "--lines", path, ...)
	end

	-- The column of names, by -o name.
	local function names(...)
		local status, output, complaints = run("-o", "name", ...)
		assert.equal(0, status, complaints)
		return (output:gsub("event/", ""):gsub("\n", " "):gsub(" $", ""))
	end

	before_each(function()
		path, now = os.tmpname(), os.time()
	end)
	after_each(function() os.remove(path) end)

	it("prints a table, the newest last", function()
		write { plain("b", 7200), plain("a", 14400), plain("c", 100000, { type = "Warning", count = 3 }) }
		local status, output, complaints = run()
		assert.equal("", complaints)
		assert.equal(0, status)
		assert.equal("LAST SEEN           TYPE      REASON    OBJECT      MESSAGE\n"
			.. "27h (x3 over 27h)   Warning   Started   Pod/web-0   Started container web\n"
			.. "4h                  Normal    Started   Pod/web-0   Started container web\n"
			.. "120m                Normal    Started   Pod/web-0   Started container web\n", output)
	end)

	it("takes kubectl's flags", function()
		local other = plain("o", 10)
		other.metadata.namespace = "other"
		write { plain("a", 30, { type = "Warning" }), plain("b", 20), other }
		assert.equal("a b", names())
		assert.equal("a b o", names "-A")
		assert.equal("o", names("-n", "other"))
		assert.equal("o", names("-nother", "--chunk-size=1"))
		assert.equal("a b", names("-n", ""))
		assert.equal("a", names("--types", "warning"))
		assert.equal("a b", names("--types=Normal,Warning"))
		assert.equal("a b", names("--types", "Normal", "--types", "Warning"))
		assert.equal("a b", names("--for", "po/web-0"))
		local _, output = run("-A", "--no-headers", "-n", "other")
		assert.matches("^default +3%ds +Warning", output)
		assert.equal(3, select(2, output:gsub("\n", "")))
	end)

	it("selects by what kubectl cannot", function()
		write {
			plain("a", 5000, { related = { kind = "Node", name = "n" }, reason = "R" }),
			plain("b", 50, { involvedObject = { kind = "Node", name = "n", namespace = "default" }, action = "A" }),
			plain("c", 5, { reportingComponent = "x", source = { component = "x" }, reportingInstance = "i" }),
		}
		assert.equal("b", names("--for", "node/n"))
		assert.equal("a b", names("--mentions", "no/n"))
		assert.equal("b c", names("--since", "10m"))
		assert.equal("a", names("--before", "10m"))
		assert.equal("a b", names("--until", tostring(now - 20)))
		assert.equal("a", names("--reason", "R"))
		assert.equal("b", names("--action", "A"))
		assert.equal("c", names("--controller", "x"))
		assert.equal("c", names("--instance", "i"))
		assert.equal("b c", names("--field-selector", "reason!=R"))
		assert.equal("b c", names("--limit", "2"))
	end)

	it("sorts by names and by paths", function()
		write { plain("b", 1, { count = 1 }), plain("c", 2, { count = 20, reason = "A" }), plain("a", 3, { count = 3 }) }
		assert.equal("a c b", names())
		assert.equal("b a c", names("--sort-by", "count"))
		assert.equal("a b c", names("--sort-by", ".metadata.name"))
		assert.equal("c a b", names("--sort-by", "reason"))
		assert.equal("a c b", names("--sort-by", "{.firstTimestamp}"))
		assert.equal("c b", names("--sort-by", "reason", "--limit", "2"))
		local status, output, complaints = run("--sort-by", ".no.such")
		assert.equal(1, status)
		assert.equal("", output)
		assert.equal('evrec: couldn\'t find any field with path "{.no.such}" in the list of objects\n', complaints)
		-- `kubectl get events` prints in the order of names.
		local _, wide = run("-o", "wide", "--no-headers")
		assert.matches("^[^\n]+ a\n[^\n]+ b\n[^\n]+ c\n$", wide)
	end)

	it("sums events by object and by reason", function()
		local function on(name, fields, age)
			fields.involvedObject = { kind = "Pod", name = name, namespace = "default" }
			return plain(name .. (fields.reason or "") .. age, age, fields)
		end
		write {
			on("x", { reason = "BackOff", count = 38, type = "Warning", message = "old" }, 100000),
			on("x", { reason = "BackOff", count = 2, type = "Warning", message = "new" }, 14400),
			on("x", { reason = "Pulled" }, 200000), on("y", { reason = "Pulled" }, 400000),
		}
		local _, output = run "--group"
		assert.equal("LAST SEEN   FIRST SEEN   EVENTS   COUNT   WARNINGS   OBJECT   REASONS\n"
			.. "4d15h       4d15h        1        1       0          Pod/y    Pulled\n"
			.. "4h          2d7h         3        41      40         Pod/x    BackOff (x40), Pulled\n", output)
		_, output = run("--group", "reason", "--sort-by", "count")
		assert.equal("LAST SEEN   FIRST SEEN   EVENTS   COUNT   TYPE      REASON    OBJECTS   MESSAGE\n"
			.. "2d7h        4d15h        2        2       Normal    Pulled    2         Started container web\n"
			.. "4h          27h          2        40      Warning   BackOff   1         new\n", output)
	end)

	it("prints lists as JSON and YAML, with fields that no API defines", function()
		write { plain("a", 5, { unknown = { list = { 1, 2 } } }), plain("b", 4) }
		local _, output = run("-o", "json")
		local list = cjson.decode(output)
		assert.equal("EventList", list.kind)
		assert.same({ 1, 2 }, list.items[1].unknown.list)
		assert.equal("b", list.items[2].metadata.name)
		_, output = run("-o=yaml")
		assert.same(list.items, require("lyaml").load(output).items)
	end)

	it("leaves metadata.managedFields out, as kubectl, unless asked", function()
		local event = plain("a", 5)
		event.metadata.managedFields = { { manager = "m" } }
		write { event }
		assert.is_nil(cjson.decode((select(2, run("-o", "json")))).items[1].metadata.managedFields)
		assert.is_table(cjson.decode((select(2, run("-o", "json", "--show-managed-fields")))).items[1].metadata.managedFields)
	end)

	it("tells on standard error that there is no event, and succeeds", function()
		write { plain("a", 5) }
		for _, output in ipairs { "table", "json", "wide", "name" } do
			local arguments = { "-n", "empty" }
			if output ~= "table" then
				arguments = { "-n", "empty", "-o", output }
			end
			local status, text, complaints = run((table.unpack or unpack)(arguments)) -- luacheck: ignore 143
			assert.same({ 0, "", "No events found in empty namespace.\n" }, { status, text, complaints })
		end
		assert.same({ 0, "", "No events found.\n" }, { run("-A", "--reason", "none") })
		assert.same({ 0, "", "No events found in empty namespace.\n" }, { run("-n", "empty", "--group") })
	end)

	it("tells of a file why it may have found none: a misspelt kind, other namespaces", function()
		write { plain("a", 5) }
		local none, all = "No events found in default namespace.\n", "evrec: -A searches all namespaces\n"
		assert.same({ 0, "", none .. all }, { run("--reason", "none") })
		assert.same({ 0, "", none .. all }, { run("--group", "--reason", "none") })
		assert.same({ 0, "", none }, { run("-n", "default", "--reason", "none") })
		assert.same({ 0, "", none .. "evrec: no built-in kind is called 'jobb': did you mean 'job'?\n" .. all },
			{ run("--for", "jobb/web-0") })
		assert.same({ 0, "", "No events found.\nevrec: no built-in kind is called 'widget'\n" },
			{ run("-A", "--mentions", "widget/web-0") })
		assert.same({ 0, "", "No events found.\n" }, { run("-A", "--mentions", "Widget/web-0") })
	end)

	it("watches: first the sorted list, then what is written, each state once", function()
		write { plain("b", 10), plain("a", 20) }
		local status, output, complaints = command.shell([[
			has() { for _ in {1..200}; do [ "$(wc -l <"$out")" -ge "$1" ] && return; sleep 0.05; done; }
			path=$1 out=$1.out line=$2; shift 2; : >"$out"
			"$@" >"$out" & pid=$!
			has 2; printf '%s\n' "$line" >>"$path"; has 3
			kill -INT $pid; wait $pid; code=$?
			cat "$out"; rm "$out"; exit $code]], path, (shapes.json(plain("c", 0))), "env", "--default-signal=INT",
			command.interpreter, "lua/bin/evrec", "events", "-w", "--lines", path, "-o", "name")
		assert.same({ 130, "event/a\nevent/b\nevent/c\n", "" }, { status, output, complaints })
	end)

	it("watches a pipe: each event as it comes", function()
		write {}
		local status, output, complaints = command.shell([[
			has() { for _ in {1..200}; do [ "$(wc -l <"$out")" -ge "$1" ] && return; sleep 0.05; done; echo "$1 is not there"; }
			out=$1.out first=$2 second=$3; shift 3; : >"$out"
			{ printf '%s\n' "$first"; has 1 >&2; printf '%s' "$second"; } | "$@" >"$out"; code=$?
			cat "$out"; rm "$out"; exit $code]], path, (shapes.json(plain("a", 2))), (shapes.json(plain("b", 9))),
			command.interpreter, "lua/bin/evrec", "events", "-w", "--lines", "-", "-o", "name")
		assert.same({ 0, "event/a\nevent/b\n", "" }, { status, output, complaints })
	end)

	it("watches a file that is standard input: first the list", function()
		write { plain("a", 2), plain("b", 9) }
		local _, output = command.shell([[path=$1; shift; timeout 1 "$@" <"$path"]], path, command.interpreter,
			"lua/bin/evrec", "events", "-w", "--lines", "-", "-o", "name")
		assert.equal("event/b\nevent/a\n", output)
	end)

	describe("shows, after the list, what a watch tells", function()
		-- The lines that -w prints if a query and a watch of the source give such events.
		local function watched(listed, told, ...)
			local evrec, terminal = require "evrec", require "evrec.cli.terminal"
			local lines, print_text, written = evrec.lines, terminal.write, {}
			local function iterator(list)
				local i = 0
				return function()
					i = i + 1
					if list[i] then
						return {}, (shapes.json(list[i])), list[i].deleted
					end
				end
			end
			evrec.lines = function()
				return { query = function() return iterator(listed) end, watch = function() return iterator(told) end }
			end
			terminal.write = function(text) written[#written + 1] = text end
			local status = require("evrec.cli.command").run { "events", "--lines", "fake", "-w", ... }
			evrec.lines, terminal.write = lines, print_text
			assert.equal(0, status)
			return table.concat(written)
		end

		-- The counts of the rows, the last ones of which the watch told.
		local function counts(listed, ...)
			local found = {}
			for count in watched({ listed }, { ... }, "--no-headers"):gmatch "%(x(%d+) over" do
				found[#found + 1] = count
			end
			return table.concat(found, " ")
		end

		local function versioned(version, count)
			return plain("a", 9, { metadata = { name = "a", namespace = "default", resourceVersion = version }, count = count })
		end

		it("but no event of the list again", function()
			local a, b, again = plain("a", 9), plain("b", 8), plain("b", 8, { count = 2 })
			assert.equal("event/a\nevent/b\nevent/b\nevent/d\n",
				watched({ a, b }, { b, again, plain("c", 7, { deleted = true }), plain("d", 6) }, "-o", "name"))
		end)

		it("but no state that is older than the list's, by the resource version", function()
			assert.equal("2986 2987 2988", counts(versioned("1002", 2986), versioned("998", 2982), versioned("1001", 2985),
				versioned("1002", 2986), versioned("1003", 2987), versioned("1004", 2988)))
			-- An event that was deleted and written again begins to count anew.
			assert.equal("7 2", counts(versioned("1002", 7), versioned("1003", 2)))
		end)

		it("whose resource versions are whole numbers of 64 bits, which no double holds", function()
			assert.equal("5 6", counts(versioned("9007199254740993", 5), versioned("9007199254740992", 4),
				versioned("9007199254740994", 6)))
			assert.equal("5 6", counts(versioned("9999999999999999999", 5), versioned("9999999999999999998", 4),
				versioned("10000000000000000000", 6)))
		end)

		it("but no state that is older than the list's, by count and last time, if there is no such version", function()
			assert.equal("4 5", counts(plain("a", 5, { count = 4 }), plain("a", 7, { count = 2 }), plain("a", 5, { count = 3 }),
				plain("a", 5, { count = 4 }), plain("a", 5, { count = 5 })))
			assert.equal("7 2", counts(plain("a", 5, { count = 7 }), plain("a", 3, { count = 2 })))
			-- A time that was given to the event may be an earlier one.
			assert.equal("7 8", counts(plain("a", 5, { count = 7 }), plain("a", 9, { count = 8 })))
		end)

		it("also of states that follow a newer one of the same event", function()
			assert.equal("4 5 2", counts(versioned("10", 4), versioned("11", 5), versioned("12", 2)))
		end)
	end)

	it("ends quietly if nobody reads, and by Ctrl-C", function()
		local events = {}
		for i = 1, 3000 do
			events[i] = plain("e" .. i, i)
		end
		write(events)
		local status, _, complaints = command.shell([["$@" | head -n 1; exit ${PIPESTATUS[0]}]], command.interpreter,
			"lua/bin/evrec", "events", "--lines", path)
		assert.same({ 141, "" }, { status, complaints })
		status, _, complaints = command.shell([[("$@" & pid=$!; sleep 0.5; kill -INT $pid; wait $pid)]],
			"env", "--default-signal=INT", command.interpreter, "lua/bin/evrec", "events", "-w", "--lines", path)
		assert.same({ 130, "" }, { status, complaints })
	end)

	it("fails with one line", function()
		write { plain("a", 1) }
		local status, _, complaints = command.shell([["$@" >/dev/full]], command.interpreter, "lua/bin/evrec", "events",
			"--lines", path)
		assert.same({ 1, "evrec: standard output: No space left on device\n" }, { status, complaints })
		status, _, complaints = command.evrec("events", "--lines", "/nonexistent\27[31m\226\128\174")
		assert.equal(1, status)
		assert.equal("evrec: /nonexistent^[[31m<U+202E>: No such file or directory\n", complaints)
		local file = assert(io.open(path, "w"))
		file:write "{ no JSON\n"
		file:close()
		status, _, complaints = run()
		assert.equal(1, status)
		assert.equal(("evrec: %s: line 1 is no event; --lines reads an event a line, as evrec.sink.file writes them\n")
			:format(path), complaints)
		file = assert(io.open(path, "w"))
		file:write '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default"}}\n'
		file:close()
		assert.same({ 1, "", complaints }, { run() })
		file = assert(io.open(path, "w"))
		file:write((shapes.json(plain("a", 1)):gsub("}$", ',"deep":' .. ("["):rep(1500) .. ("]"):rep(1500) .. "}\n")))
		file:close()
		for _, output in ipairs { "wide", "json", "html" } do
			status, _, complaints = run("-o", output)
			assert.equal(1, status)
			assert.matches("^evrec: an event cannot be shown: its JSON has more than %d+ levels\n$", complaints)
		end
		file = assert(io.open(path, "wb"))
		file:write "SQLite format 3\0"
		file:close()
		status, _, complaints = run()
		assert.same({ 2, ("evrec: %s is an event store: use --store\n"):format(path) }, { status, complaints })
	end)

	it("tells misuse in one line", function()
		write {}
		for _, arguments in ipairs {
			{ "-o", "xml" }, { "--types", "Odd" }, { "--for", "pod" }, { "--mentions", "a/b/c" }, { "--limit", "-1" },
			{ "--sort-by", "a[*]" }, { "--since", "soon" }, { "--field-selector", "a" }, { "--group", "-w" },
			{ "--group", "x" }, { "--group", "-o", "json" }, { "--group", "--sort-by", ".a" }, { "--store", "x" },
			{ "--store", "" }, { "--kubeconfig", "" }, { "--context", "c" }, { "more" }, { "--unknown" }, { "--since", "5" },
			{ "--before", "-5m" },
		} do
			local status, output, complaints = run((table.unpack or unpack)(arguments)) -- luacheck: ignore 143
			assert.equal("", output)
			assert.matches("^evrec: [^\n]+\n$", complaints)
			assert.equal(2, status, table.concat(arguments, " "))
		end
	end)

	it("names the option of a number below zero, and a time without its unit", function()
		write {}
		local _, _, told = run("--limit", "-1")
		local limit = "evrec: --limit: expected a whole number from 1 to 1000000000, got '%s' (see evrec events --help)\n"
		assert.equal(limit:format "-1", told)
		assert.equal(limit:format "0", (select(3, run("--limit", "0"))))
		for _, text in ipairs { "-5m", "5", "1600" } do
			_, _, told = run("--since", text)
			assert.truthy(told:find("--since: expected a duration such as 90m or 7d, a timestamp such as ", 1, true), told)
			assert.truthy(told:find("got '" .. text .. "'", 1, true), told)
		end
	end)

	it("orders groups of the same time by name, and cuts long reasons", function()
		local function on(name)
			return plain(name, 7200, { involvedObject = { kind = "Pod", name = name, namespace = "default" },
				reason = ("R\195\188"):rep(33) })
		end
		write { on "c", on "a", on "b" }
		local _, output = run("--group", "--no-headers")
		local cut = ("R\195\188"):rep(32) .. "\226\128\166\n"
		assert.matches("Pod/a .*Pod/b .*Pod/c ", output)
		assert.equal(cut, output:sub(-#cut))
		assert.is_nil(output:find(("R\195\188"):rep(33), 1, true))
	end)

	it("is coloured and harmless on a terminal", function()
		command.need_terminal(pending)
		write { plain("a", 14400, { type = "Warning", message = "\194\155 \226\128\174 \7 \27[2J" }) }
		local function on_terminal(environment)
			local line = ("%s %s lua/bin/evrec events --no-headers --lines %s"):format(environment, command.interpreter, path)
			local _, output = command.shell('script -qec "$1" /dev/null', line)
			return output
		end
		local cells = "   Started   Pod/web-0   <U+009B> <U+202E> ^G ^[[2J\r\n"
		assert.equal("4h    \27[33mWarning\27[0m" .. cells, on_terminal "env -u NO_COLOR TERM=xterm")
		assert.equal("4h    Warning" .. cells, on_terminal "NO_COLOR=1 TERM=xterm")
		assert.equal("4h    Warning" .. cells, on_terminal "env -u NO_COLOR TERM=dumb")
		local _, piped = run "--no-headers"
		assert.equal("4h    Warning   Started   Pod/web-0   \194\155 \226\128\174 \7 ^[[2J\n", piped)
	end)

	it("lets no text forge a row or a column on a terminal", function()
		command.need_terminal(pending)
		local forged = "fine\n0s\tWarning\tOOMKilled\tPod/db-0\tforged"
		write { plain("a", 14400, { message = forged }), plain("b", 14400, { reason = "A\tB\nC" }) }
		local cell = "fine\\n0s\\tWarning\\tOOMKilled\\tPod/db-0\\tforged"
		for _, form in ipairs { "", "-o wide", "--group", "--group reason" } do
			local line = ("NO_COLOR=1 %s lua/bin/evrec events --no-headers %s --lines %s"):format(command.interpreter,
				form, path)
			local _, output = command.shell('script -qec "$1" /dev/null', line)
			assert.equal(form == "--group" and 1 or 2, select(2, output:gsub("\n", "")), form)
			assert.truthy(output:find("A\\tB\\nC", 1, true) or form == "-o wide" and output:find("A\\tB...", 1, true), form)
			assert.truthy(form ~= "" or output:find(cell, 1, true))
		end
		-- A pipe gets kubectl's bytes, but for --group, which kubectl has not.
		local _, piped = run "--no-headers"
		assert.truthy(piped:find("Pod/web-0   fine\n0s   ", 1, true), piped)
		_, piped = run("--no-headers", "--group")
		assert.equal(1, select(2, piped:gsub("\n", "")))
		assert.truthy(piped:find("A\\tB\\nC", 1, true))
	end)

	it("explains itself", function()
		local status, output = command.evrec("events", "--help")
		assert.equal(0, status)
		for _, word in ipairs { "--all-namespaces", "--mentions KIND/NAME", "--until TIME", "--group [BY]", "Examples:" } do
			assert.truthy(output:find(word, 1, true), word)
		end
		for line in output:gmatch "[^\n]+" do
			assert.is_true(#line <= 110, line)
		end
	end)
end)
