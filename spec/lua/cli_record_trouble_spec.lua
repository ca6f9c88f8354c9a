-- `evrec record` and trouble that ends well: a store that another process has locked, a server that restarts.
local cjson = require "cjson"
local command = require "command"
local evrec = require "evrec"
local fixtures = require "fixtures"
local tmpfiles = require "tmpfiles"

-- Locks a store, and lets it go once the file `.end` beside it is there.
local LOCKED = [[
import os, sqlite3, sys, time
store = sqlite3.connect(sys.argv[1], isolation_level=None)
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
	local function with_lock(script, ...)
		local lock = write("lock.py", LOCKED)
		return command.shell([[store=$1 python=$2 lua=$3 lock=$4; shift 4
			record() { timeout 60 "$lua" lua/bin/evrec record --store "$store" "$@"; }
			release() { touch "$store.end"; }
			until_said() { i=0; while ! grep -q "$1" "$2" && [ $i -lt 400 ]; do sleep 0.05; i=$((i+1)); done; }
			$python "$lock" "$store" & locker=$!
			while ! [ -e "$store.locked" ]; do sleep 0.02; done
			]] .. script, store, fixtures.python, command.interpreter, lock, ...)
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
