-- Progress of long work: on a terminal, and only there.
local command = require "command"
local core = require "evrec.core"
local evrec = require "evrec"
local progress = require "evrec.cli.progress"
local run = require "evrec.cli.command".run
local shapes = require "event_shapes"
local terminal = require "evrec.cli.terminal"
local tmpfiles = require "tmpfiles"

local prefix, write, remove, event

setup(function()
	prefix, write, remove = tmpfiles.new()
	event = shapes.json(shapes.plain("a", "default", os.time() - 20000)) .. "\n"
	write("events", event:rep(10))
	write("many", event:rep(math.ceil(1.1 * 1048576 / #event)))
end)
teardown(function() remove() end)

describe("a counter of progress", function()
	local clock, lines, is_terminal, show, real_clock

	before_each(function()
		is_terminal, show, real_clock = core.is_terminal, core.show_progress, evrec.clock
		clock, lines = evrec.fake_clock(1700000000), {}
		core.show_progress = function(line) lines[#lines + 1] = line or "cleared" end
		core.is_terminal = function(descriptor) return descriptor == 2 end
	end)
	after_each(function() core.is_terminal, core.show_progress, evrec.clock = is_terminal, show, real_clock end)

	local function count(seconds, n)
		local counter = progress.new(clock, "MiB read", 1048576)
		for _ = 1, seconds * 8 do
			clock:advance(0.125)
			counter.add(n)
		end
		counter.clear()
		counter.clear()
	end

	it("shows itself after a second, each 0.2 s, and is cleared at the end", function()
		count(0.875, 1)
		assert.same({}, lines)
		count(1.5, 1048576)
		assert.same({ "8 MiB read, 1 s", "10 MiB read, 1 s", "12 MiB read, 1 s", "cleared" }, lines)
	end)

	it("shows nothing if standard error is no terminal", function()
		core.is_terminal = function(descriptor) return descriptor == 1 end
		count(5, 1)
		assert.same({}, lines)
	end)

	-- Runs the command by a clock that a second passes on between two looks.
	local function run_slowly(line)
		evrec.clock = function()
			return { now = function()
				clock:advance(1)
				return clock:now()
			end }
		end
		local words, print_text = {}, terminal.write
		for word in line:gsub("FILE", prefix):gmatch "%S+" do
			words[#words + 1] = word
		end
		terminal.write = function() end
		local status = run(words)
		terminal.write = print_text
		assert.equal(0, status)
	end

	for line, told in pairs {
		["lint FILE.many"] = "MiB read", ["replay FILE.many"] = "MiB read",
		["explain pod/web-0 --trace FILE.many"] = "MiB read",
		["lint spec/lua/traces/recorded.trace"] = "MiB read", ["replay spec/lua/traces/recorded.trace"] = "MiB read",
		["replay spec/lua/traces/list.json"] = "occurrences replayed", ["events --lines FILE.many"] = "events found",
	} do
		it("is shown by evrec " .. line, function()
			run_slowly(line)
			assert.truthy(table.concat(lines, "\n"):find("%d " .. told .. ", %d+ s\n"), table.concat(lines, "\n"))
			assert.equal("cleared", lines[#lines])
		end)
	end

	for _, form in ipairs { "json", "yaml", "name", "html", "wide" } do
		it("is shown by evrec events -o " .. form, function()
			run_slowly("events --lines FILE.events -o " .. form)
			assert.same({ "1 events found, 1 s", "cleared" }, { lines[1], lines[#lines] })
		end)
	end
end)

-- The commands run on a terminal of their own, by script (util-linux), and read a pipe whose writer goes on when it
-- sees the progress.
describe("progress on a terminal", function()
	-- Runs lines of bash on a terminal. There $evrec is the command, $p the beginning of the names of files, and
	-- `until_seen TEXT COMMAND...` runs the command again and again until the text is on the terminal. Returns all
	-- that came to the terminal, in which # stands for a line of progress, and ! for clearing that; and the status.
	local function on_terminal(lines)
		command.need_terminal(pending)
		local script, seen = write("sh", ([[
			p=%s seen=$p.seen evrec="env --default-signal=INT,PIPE %s lua/bin/evrec"
			until_seen() { for _ in {1..200}; do grep -q "$1" "$seen" && return; "${@:2}"; sleep 0.1; done; }
			]]):format(prefix, command.interpreter) .. lines), write("seen", "")
		local status = command.shell('exec timeout 60 script -qefc "bash $1" "$2"', script, seen)
		local text = tmpfiles.read(seen):gsub("^Script started[^\n]*\n", ""):gsub("\nScript done.*$", "")
		return text:gsub("\r%d+ %a[%a ]+, %d+ s\27%[K", "#"):gsub("\r\27%[K", "!"), status
	end

	it("is there while a file is read, and then no more", function()
		local text, status = on_terminal "until_seen MiB cat $p.many | $evrec lint -"
		assert.equal(0, status, text)
		assert.matches("^#+!$", text)
	end)

	it("is there before the first event is found, and ends before the output on the same terminal", function()
		local text, status = on_terminal "{ until_seen found; cat $p.events; } | $evrec events --lines - -o name"
		assert.equal(0, status, text)
		assert.matches("^#+!event/a\r\n$", text)
	end)

	it("has no more bytes than a line of the terminal has columns", function()
		command.need_terminal(pending)
		local script = [[stty cols 20; exec "$1" -e 'require "evrec.core".show_progress(("x"):rep(30))']]
		local _, seen = command.shell([[timeout 60 script -qefc "bash -c '$2' bash $1" /dev/null]], command.interpreter,
			(script:gsub("'", [['\'']])))
		assert.equal("\r" .. ("x"):rep(19) .. "\27[K", seen)
	end)

	it("is cleared before a message", function()
		local text, status = on_terminal "{ until_seen found; echo no JSON; } | $evrec events --lines -"
		assert.equal(1, status)
		assert.matches("^#+!evrec: standard input: line 1 is no event; [^\n]*\r\n$", text)
	end)

	it("is cleared by Ctrl-C", function()
		local text = on_terminal [[
			in_time() { for _ in {1..200}; do "$@" 2>/dev/null || return; sleep 0.1; done; }
			{ until_seen found; pid=$(cat $p.pid); kill -INT $pid; in_time kill -0 $pid; } |
				(echo $BASHPID >$p.pid; exec $evrec events --lines -)]]
		os.remove(prefix .. ".pid")
		assert.matches("^#+!$", text)
	end)

	it("is cleared if the reader of the output has gone", function()
		local different = {}
		for i = 1, 1000 do
			different[i] = event:gsub('"a"', '"a' .. i .. '"')
		end
		write("different", table.concat(different)) -- more than a pipe holds
		local text = on_terminal "{ until_seen found; cat $p.different; } | $evrec events --lines - -o json | true"
		assert.matches("^#+!$", text)
	end)
end)
