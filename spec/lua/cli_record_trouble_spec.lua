-- `evrec record` and trouble that ends well: a store that another process has locked, a server that restarts.
local cjson = require "cjson"
local command = require "command"
local core = require "evrec.core"
local evrec = require "evrec"
local record_session = require "evrec.cli.record_session"
local terminal = require "evrec.cli.terminal"
local fixtures = require "fixtures"
local tmpfiles = require "tmpfiles"

-- Locks a store, and lets it go once the file `.end` beside it is there. The second argument is SQLite's locking_mode:
-- if it is exclusive, nobody can read the store either.
local LOCKED = [[
import os, sqlite3, sys, time
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute("pragma locking_mode = " + sys.argv[2])
store.execute("begin immediate")
open(sys.argv[1] + ".locked", "w").close()
deadline = time.time() + 30
while time.time() < deadline and not os.path.exists(sys.argv[1] + ".end"):
	time.sleep(0.05)
]]

-- An API server that begins to listen after a second, and takes every event.
local LATE = [[
import http.server, socket, time
class Server(http.server.BaseHTTPRequestHandler):
	def do_POST(self):
		body = self.rfile.read(int(self.headers["Content-Length"]))
		self.send_response(201)
		self.send_header("Content-Type", "application/json")
		self.send_header("Content-Length", str(len(body)))
		self.end_headers()
		self.wfile.write(body)
	def log_message(self, *_): pass
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
time.sleep(1)
server = http.server.HTTPServer(s.getsockname(), Server, False)
server.socket.close()
server.socket = s
server.server_activate()
server.timeout = 30
server.handle_request()
]]

describe("evrec record in trouble", function()
	local prefix, write, remove, store

	before_each(function()
		prefix, write, remove = tmpfiles.new()
		store = prefix .. ".db"
		assert.equal(0, (command.evrec("record", "--store", store, "Pod/a", "Normal", "R", "m")))
	end)

	after_each(function()
		remove()
		os.execute(("rm -rf %s.*"):format(prefix))
	end)

	-- Runs a script while the store is locked. `release` in it lets the store go.
	local function with_lock(script, locking_mode)
		local lock = write("lock.py", LOCKED)
		return command.shell([[store=$1 python=$2 lua=$3 lock=$4 mode=$5
			record() { timeout 60 "$lua" lua/bin/evrec record --store "$store" "$@"; }
			release() { touch "$store.end"; }
			until_said() { i=0; while ! grep -q "$1" "$2" && [ $i -lt 400 ]; do sleep 0.05; i=$((i+1)); done; }
			$python "$lock" "$store" "$mode" & locker=$!
			while ! [ -e "$store.locked" ]; do sleep 0.02; done
			]] .. script, store, fixtures.python, command.interpreter, lock, locking_mode or "normal")
	end

	local function count()
		local sum = 0
		for event in assert(evrec.store({ path = store }):query {}) do
			sum = sum + event.count
		end
		return sum
	end

	it("prints no failure if a store was locked for a while", function()
		local script = [[(sleep 1.5; release) & record Pod/a Normal R m]]
		assert.same({ 0, "", "" }, { with_lock(script) })
		assert.equal(2, count())
		os.remove(store .. ".locked")
		os.remove(store .. ".end")
		assert.same({ 0, "", "" }, { with_lock([[(sleep 1.5; release) & printf 'm\nm\n' | record Pod/a Normal R -]]) })
		assert.equal(4, count())
	end)

	it("waits for a store without a state file that could not be read for a while", function()
		os.execute(("rm %s.state*"):format(store))
		assert.same({ 0, "", "" }, { with_lock([[(sleep 0.5; release) & record Pod/a Normal R m]], "exclusive") })
		assert.equal(2, count())
	end)

	it("prints no failure if a server was away for a while", function()
		local server = assert(io.popen("exec " .. fixtures.python .. write("server.py", LATE)))
		local config = write("config", cjson.encode {
			["current-context"] = "c", contexts = { { name = "c", context = { cluster = "k", user = "u" } } },
			clusters = { { name = "k", cluster = { server = "http://127.0.0.1:" .. server:read "*l" } } },
			users = { { name = "u", user = { token = "t" } } },
		})
		local result = { command.evrec("record", "--kubeconfig", config, "--state-file", prefix .. ".state", "Pod/a",
			"Normal", "R", "m") }
		server:close()
		assert.same({ 0, "", "" }, result)
	end)

	it("prints the failure if the event is lost", function()
		local status, _, told = with_lock "record --timeout 0.5 Pod/a Normal R m; status=$?; release; exit $status"
		assert.equal(1, status)
		assert.matches("evrec: store: %S+ is in use: another process is writing\nevrec: the event was not written\n$", told)
	end)

	it("tells one who sends lines of trouble while it lasts", function()
		local script = [[mkfifo "$store.pipe"; record --timeout 60 Pod/a Normal R - <"$store.pipe" 2>"$store.err" & p=$!
			exec 3>"$store.pipe"; echo one >&3; until_said 'is in use' "$store.err"; release
			exec 3>&-; wait $p; status=$?; cat "$store.err" >&2; exit $status]]
		local status, _, told = with_lock(script)
		assert.equal(0, status)
		assert.matches("^evrec: store: %S+ is in use: another process is writing\n$", told)
		assert.equal(2, count())
	end)
end)

describe("evrec record that waits for its state file", function()
	-- Another sink of the process has the state file. A SIGINT comes once the command has looked at the clock twice.
	local SCRIPT = [[
		local core, evrec = require "evrec.core", require "evrec"
		local broadcaster = evrec.broadcaster {}
		broadcaster:start_recording_to_sink(evrec.sink.file { path = "/dev/null", state_file = %q })
		broadcaster:poll()
		local monotonic, looks = core.monotonic, 0
		function core.monotonic()
			looks = looks + 1
			if looks == 3 then
				os.execute "(sleep 0.1; kill -INT $PPID) &"
			end
			return monotonic()
		end
		os.exit(require "evrec.cli.command".run { "record", "--timeout", "5", "--lines", %q, "pod/a", "Normal", "R", "m" })]]

	it("ends at Ctrl-C", function()
		local prefix, _, remove = tmpfiles.new()
		local lines = prefix .. ".json"
		local status, _, told = command.script(SCRIPT:format(lines .. ".state", lines))
		remove()
		os.execute(("rm -f %s.*"):format(prefix))
		assert.same({ 130, "" }, { status, told })
	end)
end)

describe("a session of evrec record", function()
	local new_broadcaster, monotonic, tell, pause = evrec.broadcaster, core.monotonic, terminal.tell, core.pause
	local clock, stats, on_error, session, told, on_flush

	-- Lets the time pass while an event waits; then on_flush has its turn.
	local function wait(_, seconds)
		clock:advance(stats.pending > 0 and seconds or 0)
		on_flush()
		return stats.pending == 0, stats, "1 event waits"
	end

	before_each(function()
		told, stats, on_flush = {}, { pending = 1, dropped = {} }, function() end
		clock = evrec.fake_clock(1700000000)
		core.monotonic = function() return clock:now() end
		evrec.broadcaster = function(options)
			on_error = options.on_error
			local function nothing() return true end
			return {
				start_recording_to_sink = nothing, poll = nothing, flush = wait, shutdown = wait,
				stats = function() return stats end,
				new_recorder = function() return { emit = nothing } end,
			}
		end
		terminal.tell = function(message) told[#told + 1] = ("%d %s"):format(clock:now() - 1700000000, message) end
		session = record_session.new({ timeout = 10 }, function() return {} end, {})
		session:emit {}
	end)

	after_each(function()
		evrec.broadcaster, core.monotonic, terminal.tell, core.pause = new_broadcaster, monotonic, tell, pause
	end)

	it("waits after a lost event as before it", function()
		on_error("one", "transport")
		session:tell()
		stats.dropped.too_old = 1
		session:tell()
		assert.same({ "0 one" }, told)
		on_error("two", "transport")
		session:tell()
		clock:advance(2)
		session:tell()
		assert.same({ "0 one" }, told)
		clock:advance(1)
		session:tell()
		assert.same({ "0 one", "3 two" }, told)
	end)

	it("tells an error once that came twice", function()
		on_error("one", "transport")
		on_error("one", "transport")
		session:tell()
		clock:advance(3)
		session:tell()
		assert.same({ "3 one" }, told)
	end)

	it("waits after an event that a server has refused", function()
		on_error("refused", "rejected")
		stats.dropped.rejected = 1
		session:tell()
		on_error("one", "transport")
		session:tell()
		assert.same({ "0 refused" }, told)
		stats.dropped.too_old = 1
		session:tell()
		assert.same({ "0 refused", "0 one" }, told)
	end)

	it("tells of trouble that lasts from its beginning on, also while it ends", function()
		on_error("one", "transport")
		session:tell()
		clock:advance(2)
		session:close(true)
		assert.same({ "3 one" }, told)
		assert.equal(12, clock:now() - 1700000000)
	end)

	-- Nobody sets the clock of core.monotonic; the wall clock may be set back by an hour.
	it("waits for the state file by a clock that only advances", function()
		local waits = 0
		session:close()
		stats.pending, stats.dropped = 0, {}
		function core.pause(seconds)
			waits = waits + 1
			assert(waits <= 510, "it waits for ever")
			clock:advance(seconds)
		end
		local new = evrec.broadcaster
		evrec.broadcaster = function(options)
			local broadcaster = new(options)
			broadcaster.start_recording_to_sink = function() return on_error("a.state is in use", "state") or true end
			return broadcaster
		end
		session:emit {}
		assert.is_true(waits >= 499)
	end)

	it("tells nothing of trouble that ends well while it ends", function()
		on_flush = function()
			if clock:now() - 1700000000 >= 2 then
				stats.pending = 0
			end
		end
		on_error("one", "transport")
		session:close(true)
		assert.same({}, told)
		assert.is_true(clock:now() - 1700000000 < 3)
	end)
end)
