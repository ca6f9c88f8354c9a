-- evrec replay, explain and lint: the story of the CronJob, traces of every form, hostile text and misuse.
--
-- spec/lua/traces has one story in four forms: evrec's own trace, and what kubectl 1.36.3 and the audit log of
-- kube-apiserver 1.36.3 made of the events that evrec wrote meanwhile.
package.path = "./examples/?.lua;" .. package.path

local cjson = require "cjson"
local evrec = require "evrec"
local silent_cronjob = require "silent_cronjob"

local interpreter = require("command").interpreter
local TRACES = "spec/lua/traces/"
local BY_REASON = "source.component,involvedObject.kind,involvedObject.namespace,involvedObject.name,reason"

describe("replaying", function()
	local path

	-- Runs the command. Returns its output, what it printed on standard error, and its status.
	local function run(...)
		local words = { interpreter, "lua/bin/evrec", ... }
		for i, word in ipairs(words) do
			words[i] = "'" .. tostring(word):gsub("'", [['\'']]) .. "'"
		end
		local pipe = assert(io.popen(("%s 2>%s.err; echo \" status=$?\""):format(table.concat(words, " "), path)))
		local output, status = pipe:read("*a"):match "^(.*) status=(%d+)\n$"
		pipe:close()
		local file = assert(io.open(path .. ".err"))
		local told = file:read "*a"
		file:close()
		return output, told, tonumber(status)
	end

	local function write(text)
		local file = assert(io.open(path, "wb"))
		file:write(text)
		file:close()
	end

	-- The result of evrec replay -o json.
	local function replay(...)
		local output, told, status = run("replay", "-o", "json", ...)
		assert.equal(0, status, told)
		return cjson.decode(output)
	end

	before_each(function()
		path = os.tmpname()
		os.remove(path)
	end)
	after_each(function()
		os.remove(path)
		os.remove(path .. ".err")
	end)

	describe("the CronJob that fell silent", function()
		it("names the reasons that are lost, and the variant that cures it", function()
			silent_cronjob.play(nil, path)
			local output, told, status = run("replay", path, "--spam-key", BY_REASON)
			assert.equal(0, status, told)
			assert.truthy(output:find("120 occurrences of 3 reasons of 1 object in 39m\nexact\n", 1, true))
			for line in output:gmatch "[^\n]+" do
				assert.is_true(#line <= 100 or not line:find "of default", line)
			end
			output = output:gsub("%s+", " ")
			assert.truthy(output:find("SawCompletedJob of default CronJob/hello: 31 of 40 occurrences lost, "
				.. "last written 8m after its first occurrence; shown by variant 2 ", 1, true))
			assert.truthy(output:find "SuccessfulDelete of default CronJob/hello: .*shown by variant 2 ")
			assert.is_nil(output:find("SuccessfulCreate of default", 1, true))
		end)

		it("counts as the live correlator did", function()
			local _, dropped, stats = silent_cronjob.play(nil, path)
			local result = replay(path)
			local variant = result.variants[1]
			assert.equal(stats.rate_limited, variant.rate_limited)
			assert.equal(stats.received, result.trace.occurrences)
			assert.equal(stats.received - stats.rate_limited, variant.created + variant.patched)
			for _, group in ipairs(result.groups) do
				assert.equal(dropped[group.reason], group.variants[1].rate_limited)
			end
		end)

		it("replays the keys of its own spam_key_func", function()
			local _, dropped = silent_cronjob.play({ spam_key_func = silent_cronjob.by_reason }, path)
			local result = replay(path, "--burst-size", "1")
			for _, group in ipairs(result.groups) do
				assert.equal(dropped[group.reason] or 0, group.variants[1].rate_limited)
			end
			assert.same({}, result.lost)
			assert.equal(3, result.variants[1].buckets)
		end)

		it("is explained", function()
			silent_cronjob.play(nil, path)
			local output, told, status = run("explain", "cj/hello", "-n", "default", "--trace", path)
			assert.equal(0, status, told)
			assert.truthy(output:find "^By [^\n]*, a trace of evrec: exact%.\n")
			assert.truthy(output:find("SawCompletedJob: 31 of 40 occurrences are lost", 1, true))
			output = output:gsub("\n", " ")
			assert.truthy(output:find("also that of SuccessfulCreate, SuccessfulDelete. A spam_key_func that adds the reason "
				.. "shows it.", 1, true))
			output, told, status = run("explain", "pod/hello", "--trace", path)
			assert.equal(1, status)
			assert.equal("", output)
			assert.truthy(told:find "no event of pod/hello")
		end)
	end)

	describe("a random trace", function()
		local function play(seed)
			math.randomseed(seed)
			local clock = evrec.fake_clock(1700000000)
			local options = {
				burst_size = math.random(20), qps = math.random(0, 10) / 100, max_events = math.random(12),
				lru_cache_size = math.random(30),
			}
			local b = evrec.broadcaster { clock = clock, drive = "poll", correlator = options, on_error = false }
			local watch = b:start_recording_to_sink(evrec.sink.lua { create = function() return true end })
			b:start_trace(path)
			local r = b:new_recorder { component = "test" }
			for _ = 1, 500 do
				clock:advance(math.random(0, 30))
				r:event({ kind = "Pod", name = "p" .. math.random(15) }, "Normal", "R" .. math.random(4), "m" .. math.random(20))
			end
			b:flush(5)
			local stats = watch:stats()
			b:shutdown(1)
			return stats
		end

		it("is decided as the live correlator decided", function()
			local seed = tonumber(os.getenv "EVREC_SEED") or os.time()
			print("# EVREC_SEED=" .. seed)
			for i = 1, 5 do
				local stats = play(seed + i)
				local replayed = replay(path).variants[1]
				local message = "seed " .. seed + i
				assert.equal(stats.correlator.rate_limited, replayed.rate_limited, message)
				assert.equal(stats.correlator.aggregated, replayed.aggregated, message)
				assert.equal(stats.correlator.new + stats.correlator.duplicate + stats.correlator.aggregated,
					replayed.created + replayed.patched, message)
				os.remove(path)
			end
		end)
	end)

	describe("the forms of a trace", function()
		it("are exact only if evrec wrote it", function()
			local result = replay(TRACES .. "recorded.trace")
			assert.is_true(result.trace.exact)
			assert.equal("trace", result.trace.form)
			assert.equal(73, result.trace.occurrences)
			assert.equal("SawCompletedJob", result.lost[1].reason)
		end)

		for file, form in pairs { ["watch.json"] = "watch", ["list.json"] = "list", ["audit.jsonl"] = "audit" } do
			it("are recognised: " .. form, function()
				local result = replay(TRACES .. file)
				assert.equal(form, result.trace.form)
				assert.is_true(result.trace.lower_bound)
				assert.is_false(result.trace.exact)
				assert.equal(57, result.trace.occurrences)
				assert.equal(3, #result.groups)
				for _, group in ipairs(result.groups) do
					assert.is_nil(group.message:find("combined", 1, true))
				end
				local output = run("replay", TRACES .. file)
				assert.truthy(output:find("lower bounds", 1, true))
			end)
		end

		it("include the lines of a file sink", function()
			local b = evrec.broadcaster { clock = evrec.fake_clock(1700000000) }
			b:start_recording_to_sink(evrec.sink.file { path = path })
			local r = b:new_recorder { component = "test" }
			for _ = 1, 9 do
				r:event({ kind = "Pod", name = "a" }, "Normal", "Started", "m")
			end
			b:shutdown(2)
			local result = replay(path)
			assert.equal("lines", result.trace.form)
			assert.equal(9, result.trace.occurrences)
		end)

		it("expand a jump of the count", function()
			local function line(type, count, last)
				return cjson.encode { type = type, object = {
					kind = "Event", metadata = { name = "e", namespace = "n" }, involvedObject = { kind = "Pod", name = "a" },
					type = "Normal", reason = "R", message = "m", count = count,
					firstTimestamp = "2023-11-14T22:13:20Z", lastTimestamp = last,
				} }
			end
			write(line("ADDED", 1, "2023-11-14T22:13:20Z") .. "\n" .. line("MODIFIED", 5, "2023-11-14T22:14:00Z")
				.. line("MODIFIED", 5, "2023-11-14T22:14:00Z") .. line("DELETED", 5, "2023-11-14T22:14:00Z"))
			local result = replay(path)
			assert.equal(5, result.trace.occurrences)
			assert.equal(3, result.trace.reconstructed)
			assert.equal(1700000040, result.trace.last)
		end)

		it("tell what a trace lacks", function()
			write('{"evrec_trace":1}\n{"id":1,"t":1,"event":{"involvedObject":{"kind":"Pod","name":"a"},"reason":"R"}}\n'
				.. '{"lost":7,"from":1,"to":2}\n{"end":"max_bytes","t":3}\n')
			local output = run("replay", path)
			assert.truthy(output:find("not exact: 7 events are missing in 1 gap; it ends at max_bytes", 1, true))
			assert.is_false(replay(path).trace.exact)
		end)
	end)

	it("compares variants side by side", function()
		local result = replay(TRACES .. "recorded.trace", "--burst-size", "50", "--qps", "1/60", "--against",
			"--correlate", "series")
		assert.equal(3, #result.variants)
		assert.equal("burst 50, qps 1/60", result.variants[2].name)
		assert.equal("series", result.variants[3].name)
		assert.same({ 2, 3 }, result.lost[1].cured_by)
		assert.is_true(result.variants[3].requests < result.variants[1].requests)
		assert.equal(25, result.variants[1].options.burst_size)
	end)

	it("keeps hostile text from the terminal", function()
		local b = evrec.broadcaster { clock = evrec.fake_clock(1700000000) }
		b:start_trace(path)
		local r = b:new_recorder { component = "c\27[2J" }
		for i = 1, 40 do
			r:event({ kind = "Pod", name = "a\27]0;x\7\226\128\174" }, "Normal", "R\r\27[31m", "m" .. i)
		end
		b:shutdown(2)
		for _, arguments in ipairs { { "replay", path }, { "lint", path }, { "replay", "-o", "json", path },
			{ "explain", "Pod/a\27]0;x\7\226\128\174", "--trace", path } } do
			local output, told = run((table.unpack or unpack)(arguments)) -- luacheck: ignore
			assert.is_nil((output .. told):find "[\27\7\r]")
			assert.is_nil((output .. told):find("\226\128\174", 1, true))
			assert.truthy(#output > 100)
		end
	end)

	describe("evrec lint", function()
		local function record(...)
			local b = evrec.broadcaster { clock = evrec.fake_clock(1700000000), on_error = false, max_message_bytes = 4096 }
			b:start_trace(path)
			local r = b:new_recorder { component = "test" }
			for _, event in ipairs { ... } do
				r:event({ kind = "Pod", name = "a" }, "Normal", event[1], event[2])
			end
			b:shutdown(2)
		end

		it("is silent about good events", function()
			record({ "Started", "m" }, { "BackOff2", "m" })
			local output, told, status = run("lint", "--trace", path)
			assert.same({ "", "", 0 }, { output, told, status })
		end)

		it("finds reasons, messages, and data in reasons", function()
			local events = { { "not camel", "m" }, { "Long", ("m"):rep(1025) }, { "Cut", ("m"):rep(1021) .. "\226\128\166" },
				{ ("R"):rep(129), "m" } }
			for i = 1, 101 do
				events[#events + 1] = { "Job" .. i, "m" }
			end
			record((table.unpack or unpack)(events)) -- luacheck: ignore
			local output, _, status = run("lint", path)
			assert.equal(1, status)
			assert.truthy(output:find "not camel +1 +the reason is not in CamelCase\n")
			assert.truthy(output:find "Long +1 +the message has more than 1024 bytes")
			assert.truthy(output:find "Cut +1 +the message was cut at 1024 bytes")
			assert.truthy(output:find "reason has more than 128 bytes, which events.k8s.io/v1 refuses")
			assert.truthy(output:find "more than 100 different reasons: data in them makes each event a new one")
		end)

		it("counts an event once that was written several times", function()
			local lines = {}
			for i, name in ipairs { "a", "b", "a", "a" } do
				lines[i] = cjson.encode { metadata = { name = name, namespace = "n" }, reason = "not camel", type = "Normal",
					involvedObject = { kind = "Pod", name = "p" }, message = "m" .. i, count = i }
			end
			write(table.concat(lines, "\n"))
			assert.matches("\n +not camel +2 +the reason is not in CamelCase\n$", (run("lint", path)))
			for i, line in ipairs(lines) do
				lines[i] = '{"type":"MODIFIED","object":' .. line .. "}"
			end
			write(table.concat(lines, "\n"))
			assert.matches("\n +not camel +2 +the reason is not in CamelCase\n$", (run("lint", path)))
		end)

		it("reads every form", function()
			for _, file in ipairs { "recorded.trace", "watch.json", "list.json", "audit.jsonl" } do
				local output, told, status = run("lint", TRACES .. file)
				assert.same({ "", "", 0 }, { output, told, status })
			end
		end)
	end)

	it("passes over what is no event behind the beginning", function()
		local header = '{"evrec_trace":1,"evrec":"0.1.0","clock":"fake","correlator":{}}\n'
		for _, text in ipairs {
			'{"items":[]}\n{"b":1}', '{"items":[]}\n{"items":[1,{}]}', header .. '{"id":1,"t":1,"event":3}\n',
			header .. [[{"id":1,"t":1,"b":"\"event\":"}]] .. "\n",
		} do
			write(text)
			for _, subcommand in ipairs { "lint", "replay" } do
				local _, told, status = run(subcommand, path)
				local unread = subcommand == "lint" and text:sub(1, #header) == header
					and ("evrec: %s: 1 line cannot be read\n"):format(path) or "" -- replay says so on standard output
				assert.same({ unread .. ("evrec: %s: there is no event in it\n"):format(path), 0 }, { told, status },
					subcommand .. " " .. text)
			end
		end
	end)

	it("tells the line of what is no JSON, and passes over lines that are cut", function()
		local cut = "1 value is left out, as the JSON is cut"
		local event = cjson.encode { metadata = { name = "e", namespace = "n" }, reason = "not camel",
			involvedObject = { kind = "Pod", name = "a" }, type = "Normal", lastTimestamp = "2023-11-14T22:13:20Z" }
		for _, subcommand in ipairs { "lint", "replay" } do
			write(event .. "\n\n{'a':1}\n" .. event)
			assert.same({ "", ("evrec: %s: the value that begins in line 3 is no JSON\n"):format(path), 1 },
				{ run(subcommand, path) })
			write('{"a":1,\n')
			assert.same({ "", ("evrec: %s: it ends inside of a JSON value, which begins in line 1\n"):format(path), 1 },
				{ run(subcommand, path) })
			write(event .. "\n" .. event:sub(1, 20) .. "\n" .. event .. "\n" .. event)
			local output, told = run(subcommand, path)
			assert.truthy(output:find(subcommand == "lint" and "not camel +1 +the reason" or "1 occurrence"), output)
			assert.truthy(subcommand == "lint" or output:gsub("%s+", " "):find("; " .. cut, 1, true), output)
			assert.equal(subcommand == "lint" and ("evrec: %s: %s\n"):format(path, cut) or "", told)
		end
	end)

	it("names an event that is none", function()
		write(cjson.encode { metadata = { name = "e", namespace = "n" }, involvedObject = { kind = "Pod", name = "a" },
			reason = { 1 }, type = "Normal", lastTimestamp = "2023-11-14T22:13:20Z" })
		assert.same({ "", ("evrec: %s: event n/e: field 'reason': expected a string, got table\n"):format(path), 1 },
			{ run("replay", path) })
	end)

	it("says that no event has a time", function()
		local event = { metadata = { name = "e", namespace = "n" }, involvedObject = { kind = "Pod", name = "a" } }
		for _, text in ipairs { cjson.encode { items = { event } }, cjson.encode(event) } do
			write(text)
			local _, told, status = run("replay", path)
			assert.same({ ("evrec: %s: no event in it has a time\n"):format(path), 0 }, { told, status })
		end
	end)

	it("counts in the singular, too", function()
		write(cjson.encode { items = { {
			metadata = { name = "e", namespace = "n" }, involvedObject = { kind = "Pod", name = "a" }, type = "Normal",
			reason = "R", message = "m", count = 3, firstTimestamp = "2023-11-14T22:13:20Z",
			lastTimestamp = "2023-11-14T22:14:00Z",
		} } })
		local output = run("replay", path)
		assert.truthy(output:find("3 occurrences of 1 reason of 1 object in 40s", 1, true), output)
		assert.truthy(output:find "; the time of 1 occurrence is%sreconstructed\n", output)
	end)

	it("takes durations of several units", function()
		local options = replay(TRACES .. "list.json", "--max-interval", "1h30m", "--against", "--max-interval", "90",
			"--against", "--max-interval", "1w").variants
		assert.equal(5400, options[2].options.max_interval_in_seconds)
		assert.equal(90, options[3].options.max_interval_in_seconds)
		assert.equal(604800, options[4].options.max_interval_in_seconds)
		local _, told, status = run("replay", "--silent-after", "1x", TRACES .. "list.json")
		assert.equal(2, status)
		assert.truthy(told:find("--silent-after: expected a duration such as 90s, 15m, 2h or 7d, got '1x'", 1, true), told)
		for _, option in ipairs { "--silent-after", "--max-interval" } do
			_, told, status = run("replay", option, "99999999999999999999d", TRACES .. "list.json")
			assert.same({ 2, ("evrec: %s: '99999999999999999999d' is more than 1000000000 seconds (see evrec replay --help)\n")
				:format(option) }, { status, told })
		end
	end)

	it("is checked by lint as far as it can be read, and refused alike in a newer version", function()
		local file = assert(io.open(TRACES .. "recorded.trace"))
		local text = file:read "*a"
		file:close()
		local header, rest = text:gsub('"reason":"%w+"', '"reason":"no camel"', 1):match "^([^\n]*\n)(.*)$"
		write(header .. rest)
		local findings = run("lint", path)
		write(header .. '{"event":{"cut off\n' .. rest .. '[1,2\n')
		assert.truthy(findings:find("the reason is not in CamelCase", 1, true))
		assert.same({ findings, ("evrec: %s: 2 lines cannot be read\n"):format(path), 1 }, { run("lint", path) })
		assert.truthy(run("replay", path):find("not exact: 2 lines cannot be read", 1, true))
		write((header:gsub('"evrec_trace":1', '"evrec_trace":99')) .. rest)
		local message = ("evrec: %s: trace: has version 99, and this evrec reads version 1\n"):format(path)
		assert.same({ "", message, 1 }, { run("lint", path) })
		assert.same({ "", message, 1 }, { run("replay", path) })
	end)

	it("tells what a file is that holds no trace", function()
		for _, case in ipairs {
			{ "", 1, path .. ": is empty" }, { "no JSON\n", 1, path .. ": holds no JSON" },
		} do
			write(case[1])
			for _, arguments in ipairs { { "replay", path }, { "lint", path }, { "explain", "pod/a", "--trace", path } } do
				local output, told, status = run((table.unpack or unpack)(arguments)) -- luacheck: ignore
				assert.same({ "", "evrec: " .. case[3] .. "\n", case[2] }, { output, told, status })
			end
		end
		write "SQLite format 3\0\n{}"
		for advice, arguments in pairs {
			["evrec events --store PATH -A -o json | evrec replay -"] = { "replay", path },
			["evrec events --store PATH -A -o json | evrec lint -"] = { "lint", path },
			["--store PATH in place of --trace"] = { "explain", "pod/a", "--trace", path },
		} do
			local output, told, status = run((table.unpack or unpack)(arguments)) -- luacheck: ignore
			assert.same({ "", ("evrec: %s is an event store: use %s\n"):format(path, (advice:gsub("PATH", path))), 2 },
				{ output, told, status })
		end
		local _, told, status = run("replay", "/tmp")
		assert.same({ "evrec: /tmp: is a directory\n", 1 }, { told, status })
	end)

	it("ends misuse and bad input with one line", function()
		write '{"a":1}'
		local cases = {
			{ 2, "^evrec: %-%-spam%-key: an event of core/v1 has no text 'reasons'; fields are such as source.component, ",
				"replay", TRACES .. "list.json", "--spam-key", "reasons" },
			{ 2, "^evrec: %-%-against: .* equals the one before it\n$", "replay", TRACES .. "list.json", "--against" },
			{ 2, "equals the one before it", "replay", TRACES .. "list.json", "--qps", "1", "--against" },
			{ 2, "equals the one before it", "replay", TRACES .. "list.json", "--against", "--against", "--qps", "1" },
			{ 2, "%-%-qps", "replay", TRACES .. "list.json", "--qps", "fast" },
			{ 2, "%-%-trace, %-%-share or %-%-store", "explain", "pod/a" },
			{ 2, "%-%-silent%-after: only together with %-%-trace", "explain", "pod/a", "--store", "s", "--silent-after", "1m" },
			{ 1, "No such file", "explain", "pod/a", "--store", path .. ".none" },
			{ 2, "KIND/NAME", "explain", "pod", "--trace", path },
			{ 2, "FILE", "lint" },
			{ 1, "holds no events", "replay", path },
			{ 1, "No such file", "replay", path .. ".none" },
			{ 1, "No such file", "lint", path .. ".none" },
		}
		for _, case in ipairs(cases) do
			local output, told, status = run((table.unpack or unpack)(case, 3)) -- luacheck: ignore
			assert.equal(case[1], status, told)
			assert.equal("", output)
			assert.truthy(told:find "^evrec: [^\n]+\n$", told)
			assert.truthy(told:find(case[2]), told)
		end
	end)
end)
