-- `evrec events` beside a real kubectl, on a real API server: 5,000 events of fifty shapes, and the same bytes.
local cjson = require "cjson"
local cluster = require "cluster"
local command = require "command"
local lyaml = require "lyaml"
local shapes = require "event_shapes"

local function skip(reason)
	describe("evrec events beside kubectl", function()
		pending("skipped: " .. reason)
	end)
end

if not cluster.dir then
	return skip "writes many odd events, and only into a cluster of its own"
elseif _VERSION == "Lua 5.3" then
	return skip "Lua 5.3 has the numbers and strings of Lua 5.4, which runs it"
end

-- Some events' ages change each second, so that tables of two commands differ unless both were made in one second.
local TRIES = 30

-- ---- writing ----

local function request(event, connection)
	return ([[
url = "%s/api/v1/namespaces/%s/events"
header = "Authorization: Bearer %s"
header = "Content-Type: application/json"
cacert = "%s"
output = "/dev/null"
write-out = "%%{http_code}\n"
no-progress-meter
data-binary = "%s"
]]):format(connection.server, event.metadata.namespace, connection.token, connection.ca_file,
		(shapes.json(event):gsub('[\\"]', "\\%0")))
end

local function write(events)
	local connection, requests, path = cluster.connection "admin", {}, cluster.scratch .. "/events.curl"
	for i, event in ipairs(events) do
		requests[i] = request(event, connection)
	end
	cluster.write(path, table.concat(requests, "next\n"))
	local output = cluster.run { "curl", "--noproxy", "*", "--parallel", "--parallel-max", "32", "--config", path }
	assert.equal(#events, select(2, output:gsub("201\n", "")), output:sub(1, 1000))
end

-- ---- comparing ----

-- A command with a line of arguments.
local function command_of(program, line)
	local list = program == "kubectl" and { "kubectl" } or { command.interpreter, "lua/bin/evrec" }
	for word in (line .. " --context=admin"):gmatch "%S+" do
		list[#list + 1] = word
	end
	return command.line(list)
end

-- Runs both commands at once, or one of them later by some seconds. Returns what they print, standard error behind
-- standard output.
local function run(kubectl_line, evrec_line, kubectl_later, evrec_later)
	local file = cluster.scratch .. "/of_kubectl"
	local status, given = command.shell(([[
		{ { sleep %g; %s; } >%s 2>&1 & } && { sleep %g; %s 2>&1; code=$?; } && wait $! && exit $code]]):format(
		kubectl_later or 0, command_of("kubectl", kubectl_line), file, evrec_later or 0,
		command_of("evrec", evrec_line or kubectl_line)))
	local expected = cluster.read(file)
	assert.equal(0, status, expected:sub(-500) .. given:sub(-500))
	return expected, given
end

local function lines_of(text)
	local lines, tied = {}, {}
	for line in text:gmatch "[^\n]*\n" do
		local list = line:find(shapes.UNSORTED, 1, true) and tied or lines
		list[#list + 1] = line
	end
	table.sort(tied)
	return lines, tied
end

-- Returns the first difference; nil if there is none. Events without a time may be in any order.
local function difference(expected, given)
	if expected == given then
		return nil
	end
	local a, a_tied = lines_of(expected)
	local b, b_tied = lines_of(given)
	for _, pair in ipairs { { a, b }, { a_tied, b_tied } } do
		for i = 1, math.max(#pair[1], #pair[2]) do
			if pair[1][i] ~= pair[2][i] then
				return ("kubectl: %s\nevrec:   %s"):format(tostring(pair[1][i]), tostring(pair[2][i]))
			end
		end
	end
end

-- On a busy machine one command may come to its table up to a second after the other each time. So the tries begin one
-- of them later.
local function compare(kubectl_line, evrec_line)
	local found
	for try = 0, TRIES - 1 do
		local later = try % 10 / 10
		found = difference(run(kubectl_line, evrec_line, try % 2 * later, (try + 1) % 2 * later))
		if not found then
			return
		end
	end
	assert(false, evrec_line .. "\n" .. found)
end

local function by_name(list)
	local index = {}
	for _, event in ipairs(list.items) do
		index[event.metadata.name] = event
	end
	return index
end

describe("evrec events beside kubectl", function()
	local old, recent, sound

	setup(function()
		old, recent, sound = cluster.namespace(), cluster.namespace(), cluster.namespace()
		local now, events = os.time(), {}
		for i = 1, 5000 do
			-- Older than 8 days, so that an age is a number of days, and lasts.
			events[i] = shapes.event(i, old, now - 700000 - math.floor(i ^ 2.2))
		end
		for i = 1, 100 do
			events[#events + 1] = shapes.event(i, recent, now - math.floor(i ^ 2.7))
		end
		-- kubectl writes no YAML of events with C1 controls.
		for i = 1, 500 do
			local event = shapes.event(i, sound, now - math.floor(i ^ 2.2))
			if not event.message:find "\194[\128-\159]" then
				events[#events + 1] = event
			end
		end
		write(events)
	end)
	teardown(function()
		cluster.delete_namespace(sound)
		cluster.delete_namespace(old)
		cluster.delete_namespace(recent)
	end)

	-- Each line for both commands; OLD and RECENT are the namespaces.
	local EVENTS = {
		"-n OLD", "-n OLD --no-headers", "-n RECENT", "-n RECENT --no-headers", "-A --for pod/a",
		"-A --for Node/a --no-headers", "-A -n RECENT --for deployment/a", "-n OLD --types=Warning", "-n OLD --types=normal",
		"-n OLD --types=Normal,Warning",
		"-n RECENT --types Warning", "-n RECENT --types=Warning --types=Normal", "-n OLD --for pod/web-0",
		"-n RECENT --for po/web-0 --types=Warning", "-n OLD --for Node/a", "-n RECENT --for pods/web-0 --no-headers",
		"-n OLD --for node/nothing", "-n RECENT --chunk-size=17", "-n none", "-A --for no/none",
	}
	local WIDE = {
		"-n OLD", "-n RECENT", "-n RECENT --no-headers", "-A --field-selector involvedObject.name=a,type=Warning",
		"-A --no-headers --field-selector=involvedObject.name=a", "-n OLD --sort-by=.metadata.name",
		"-n RECENT --sort-by .metadata.resourceVersion", "-n RECENT --sort-by={.metadata.uid}",
		"-n OLD --field-selector type=Warning", "-n OLD --field-selector type!=Warning,reason=Pulled",
	}

	local function of_here(line)
		return (line:gsub("OLD", old):gsub("RECENT", recent):gsub("SOUND", sound))
	end

	for _, line in ipairs(EVENTS) do
		it("prints the bytes of kubectl events " .. line, function()
			compare("events " .. of_here(line), "events " .. of_here(line))
		end)
	end
	for _, line in ipairs(WIDE) do
		it("prints the bytes of kubectl get events -o wide " .. line, function()
			compare("get events -o wide " .. of_here(line), "events -o wide " .. of_here(line))
		end)
	end

	it("prints the same as JSON", function()
		for _, line in ipairs { "events -n OLD -o json", "events -n RECENT --types=Warning -o json" } do
			local expected, given = run(of_here(line))
			expected, given = cjson.decode(expected), cjson.decode(given)
			assert.same(by_name(expected), by_name(given))
			expected.items, given.items = nil, nil
			assert.same(expected, given)
		end
	end)

	it("prints the same as YAML", function()
		for line, least in pairs {
			["events -n SOUND -o yaml"] = 450, ["events -n SOUND --types=Warning -o yaml"] = 150,
			["events -n RECENT --for pod/web-0 -o yaml"] = 6,
		} do
			local expected, given = run(of_here(line))
			expected, given = lyaml.load(expected), lyaml.load(given)
			assert.is_true(#expected.items >= least, line .. " " .. #expected.items)
			assert.same(by_name(expected), by_name(given))
			expected.items, given.items = nil, nil
			assert.same(expected, given)
		end
	end)

	it("prints the names of kubectl get events -o name", function()
		local expected, given = run(of_here "get events -n RECENT -o name", of_here "events -n RECENT -o name")
		expected, given = lines_of(expected), lines_of(given)
		table.sort(expected)
		table.sort(given)
		assert.same(expected, given)
	end)

	it("shows what happens in a watch", function()
		local here = cluster.namespace()
		write { shapes.plain("first", here, os.time()) }
		local second = cluster.scratch .. "/second.json"
		cluster.write(second, (shapes.json(shapes.plain("second", here, os.time()))))
		local status, output = command.shell([[
			has() { for _ in {1..200}; do [ "$(wc -l <"$out")" -ge "$1" ] && return; sleep 0.05; done; }
			out=$1 file=$2; shift 2; : >"$out"
			"$@" >"$out" & pid=$!
			has 1
			kubectl --context=admin create -f "$file" >/dev/null
			has 2
			kill -INT $pid; wait $pid; code=$?
			cat "$out"; exit $code]], cluster.scratch .. "/watched", second, "env", "--default-signal=INT",
			command.interpreter, "lua/bin/evrec", "events", "-w", "-n", here, "--context=admin", "-o", "name")
		cluster.delete_namespace(here)
		assert.same({ 130, "event/first\nevent/second\n" }, { status, output })
	end)
end)
