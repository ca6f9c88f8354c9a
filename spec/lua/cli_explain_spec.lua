-- evrec explain --store and --share. spec/lua/cli_replay_spec.lua has evrec explain --trace.
package.path = "./examples/?.lua;" .. package.path

local command = require "command"
local evrec = require "evrec"
local silent_cronjob = require "silent_cronjob"
local tmpfiles = require "tmpfiles"

describe("an object that fell silent", function()
	local prefix, write, remove, store

	before_each(function()
		prefix, write, remove = tmpfiles.new()
		store = prefix .. ".db"
	end)
	after_each(function()
		remove()
		for _, suffix in ipairs { "", "-wal", "-shm" } do
			os.remove(store .. suffix)
		end
	end)

	-- The output of evrec explain, in which each run of white space is a blank.
	local function explain(...)
		local status, output, told = command.evrec("explain", ...)
		assert.equal(0, status, told)
		return (output:gsub("%s+", " "))
	end

	local WHY = "%s: %d occurrences were rate limited, as there was no token for them. "

	it("is explained by a store, which draws the suppressed spans", function()
		local _, _, stats = silent_cronjob.play(nil, nil, store, { suppressions = true })
		local status, output, told = command.evrec("explain", "cj/hello", "--store", store)
		local nothing = { command.evrec("explain", "cj/hello", "-n", "shop", "--store", store) }
		local _, page = command.evrec("events", "--store", store, "-A", "-o", "html")
		local _, filtered = command.evrec("events", "--store", store, "-A", "-o", "html", "--controller",
			"cronjob-controller")
		assert.equal(0, status, told)
		assert.truthy(output:find "^By the suppressions in the event store ")
		local sum = 0
		for count in output:gmatch "\nrate limited +(%d+) " do
			sum = sum + tonumber(count)
		end
		assert.equal(stats.rate_limited, sum)
		assert.truthy(output:find "rate limited +%d+ +SuccessfulDelete +Normal .*Deleted job hello%-137")
		assert.equal(1, nothing[1])
		assert.equal(("evrec: %s has no event of cj/hello in the namespace shop\n"):format(store), nothing[3])
		assert.equal(0, (command.evrec("explain", "cj/hello", "-n", "", "--store", store)))
		assert.truthy(page:find('"why":"rate limited"', 1, true))
		assert.is_nil(filtered:find('"why"', 1, true))
	end)

	it("is explained by a store with the bucket of a reason, and the reasons that share it", function()
		silent_cronjob.play(nil, nil, store, { suppressions = true })
		local output = explain("cj/hello", "--store", store)
		local bucket = "Its bucket (cronjob-controller, default CronJob/hello, Normal) is also that of "
		assert.truthy(output:find(WHY:format("SawCompletedJob", 31) .. bucket .. "SuccessfulCreate, SuccessfulDelete.", 1,
			true), output)
	end)

	it("is not explained by a store whose sink noted nothing", function()
		silent_cronjob.play(nil, nil, store)
		local status, output, told = command.evrec("explain", "cj/hello", "--store", store)
		assert.same({ 1, "" }, { status, output })
		assert.matches("^evrec: " .. store:gsub("%p", "%%%0") .. " has %d+ events of cj/hello, and no note that one was "
			.. "combined or held back%. If evrec record wrote them, or sinks with the option suppressions = true, none was%. "
			.. "Other writers leave no notes\n$", told)
		status, output, told = command.evrec("explain", ".x/hello", "--store", store)
		assert.same({ 2, "", "evrec: KIND/NAME: unknown kind '.x'\n" }, { status, output, told })
		assert.same({ 1, "", ("evrec: %s has no event of jbo/backup\nevrec: no built-in kind is called 'jbo': did you mean "
			.. "'job'?\n"):format(store) }, { command.evrec("explain", "jbo/backup", "--store", store) })
	end)

	-- Makes a store that lacks notes of the kind that the options name, as a pod had more events than find room.
	-- Returns what evrec explain tells of another pod, which had one event, and the number of lost notes.
	local function explain_beside(options)
		options.path, options.max_pending_bytes = store, 4 * 1048576
		local broadcaster = evrec.broadcaster { drive = "poll", on_error = false, on_drop = function() end }
		broadcaster:start_recording_to_sink(evrec.sink.store(options))
		local recorder = broadcaster:new_recorder { component = "spec" }
		recorder:event({ kind = "Pod", namespace = "shop", name = "quiet" }, "Normal", "Pulled", "Pulled the image")
		for _ = 1, 20000 do
			recorder:event({ kind = "Pod", namespace = "shop", name = "noisy" }, "Normal", "Pulled", "Pulled the image")
		end
		local _, stats = broadcaster:shutdown(20)
		local status, output, told = command.evrec("explain", "pod/quiet", "--store", store)
		assert.equal(1, status)
		assert.is_true(stats.sinks[1].notes_lost > 0)
		return output, told, stats.sinks[1].notes_lost
	end

	it("is not explained by a store that lacks notes of occurrences, which explain does not read", function()
		local output, told = explain_beside { occurrences = true }
		assert.same({ "", ("evrec: %s has 1 event of pod/quiet, and no note that one was combined or held back. If evrec "
			.. "record wrote them, or sinks with the option suppressions = true, none was. Other writers leave no notes\n")
			:format(store) }, { output, told })
	end)

	it("may not be explained by a store that lacks notes of suppressions", function()
		local output, told, lost = explain_beside { suppressions = true }
		assert.truthy(output:find(("The store lacks %d notes, perhaps some of this object."):format(lost), 1, true))
		assert.equal(("evrec: %s has 1 event of pod/quiet, and no note that one was combined or held back. Such a note "
			.. "may be among the lost ones\n"):format(store), told)
	end)

	it("is not explained by a damaged store, which is told without names of Lua", function()
		local PAGE = 4096
		assert.equal(0, (command.evrec("record", "--store", store, "pod/a", "Normal", "R", "m")))
		local whole, damaged, malformed = tmpfiles.read(store), prefix .. ".damaged", 0
		for start = PAGE + 1, #whole, PAGE do
			write("damaged", whole:sub(1, start - 1) .. ("\7"):rep(PAGE) .. whole:sub(start + PAGE))
			local status, _, told = command.evrec("explain", "pod/a", "--store", damaged)
			assert.equal(1, status)
			assert.matches("^evrec: " .. damaged:gsub("%p", "%%%0") .. "[: ][^\n]+\n$", told)
			malformed = malformed + (told:find("malformed", 1, true) and 1 or 0)
			local _, _, of_page = command.evrec("events", "--store", damaged, "-o", "html")
			assert.is_nil(of_page:find(".lua:", 1, true), of_page)
		end
		assert.is_true(malformed > 2)
		os.execute(("rm -f %s-* %s.*"):format(damaged, store))
	end)

	it("is explained by a store with the key that a callback chose", function()
		local broadcaster = evrec.broadcaster {
			clock = evrec.fake_clock(1700000000), on_error = false,
			correlator = { burst_size = 1, qps = 0, spam_key_func = function(event) return "key of " .. event.reason end },
		}
		broadcaster:start_recording_to_sink(evrec.sink.store { path = store, suppressions = true })
		local recorder = broadcaster:new_recorder { component = "test" }
		for i = 1, 3 do
			recorder:event({ kind = "Pod", namespace = "shop", name = "a" }, "Normal", "Started", "m" .. i)
			recorder:event({ kind = "Pod", namespace = "shop", name = "a" }, "Normal", "Pulled", "m" .. i)
		end
		broadcaster:shutdown(5)
		assert.truthy(explain("pod/a", "--store", store):find(WHY:format("Pulled", 2)
			.. "No other reason is known to take tokens from its bucket (key of Pulled).", 1, true))
	end)

	it("is explained by a store with the last message of all of its uids", function()
		local clock = evrec.fake_clock(1700000000)
		local broadcaster = evrec.broadcaster {
			clock = clock, on_error = false,
			correlator = { burst_size = 1, qps = 0, spam_key_func = function() return "all" end },
		}
		broadcaster:start_recording_to_sink(evrec.sink.store { path = store, suppressions = true })
		local recorder = broadcaster:new_recorder { component = "test" }
		for i, uid in ipairs { "old", "old", "new", "old" } do
			clock:advance(5)
			recorder:event({ kind = "Pod", namespace = "shop", name = "a", uid = uid }, "Normal", "Started", "m" .. i)
		end
		broadcaster:shutdown(5)
		assert.matches(" rate limited 3 Started Normal %S+ %S+ m4 ", explain("pod/a", "--store", store))
	end)

	-- Two components record three times about pods of one name in two namespaces, with a burst of one.
	local function record_in_two_namespaces(sink, trace)
		local broadcaster = evrec.broadcaster {
			clock = evrec.fake_clock(1700000000), on_error = false, correlator = { burst_size = 1, qps = 0 },
		}
		assert(not trace or broadcaster:start_trace(trace))
		broadcaster:start_recording_to_sink(sink)
		for _, component in ipairs { "kubelet", "proxy" } do
			local recorder = broadcaster:new_recorder { component = component }
			for _ = 1, 3 do
				recorder:event({ kind = "Pod", namespace = "a", name = "p" }, "Normal", "Started", "m")
				recorder:event({ kind = "Pod", namespace = "b", name = "p" }, "Normal", "Started", "m")
			end
		end
		broadcaster:shutdown(5)
	end

	it("is explained without an empty line at the end if nothing was rate limited", function()
		for i = 1, 11 do
			assert.equal(0, (command.evrec("record", "--store", store, "pod/a", "Normal", "R", "m" .. i)))
		end
		local status, output = command.evrec("explain", "pod/a", "--store", store)
		assert.equal(0, status)
		assert.matches("\ncombined [^\n]+\n$", output)
		os.execute(("rm -f %s.*"):format(store))
	end)

	it("is in the namespace of its events if it has none", function()
		for _ = 1, 3 do
			assert.equal(0, (command.evrec("record", "--store", store, "--burst-size", "1", "node/n1", "Warning", "R", "m")))
		end
		local status, output, told = command.evrec("explain", "node/n1", "-n", "default", "--store", store)
		assert.same({ 0, "" }, { status, told })
		assert.matches("\nrate limited +2 +R ", output)
		assert.equal(1, (command.evrec("explain", "node/n1", "-n", "shop", "--store", store)))
		os.execute(("rm -f %s.*"):format(store))
	end)

	it("is told from its namesakes in other namespaces", function()
		record_in_two_namespaces(evrec.sink.store { path = store, suppressions = true })
		local _, output = command.evrec("explain", "pod/p", "--store", store)
		assert.matches("\nNAMESPACE +COMPONENT +STAGE +CAUSE ", output)
		for _, namespace in ipairs { "a", "b" } do
			for _, component in ipairs { "kubelet", "proxy" } do
				assert.matches(("\n%s +%s +rate limited +2 +Started "):format(namespace, component), output)
				local bucket = ("(%s, %s Pod/p, Normal)"):format(component, namespace)
				assert.truthy(output:gsub("%s+", " "):find(bucket, 1, true), output)
			end
		end
		_, output = command.evrec("explain", "pod/p", "-n", "a", "--store", store)
		assert.matches("\nCOMPONENT +STAGE +CAUSE ", output)

		local trace = write("trace", "")
		record_in_two_namespaces(evrec.sink.file { path = "/dev/null" }, trace)
		_, output = command.evrec("explain", "pod/p", "--trace", trace)
		assert.matches("\nNAMESPACE +COMPONENT +REASON +TYPE ", output)
		for _, namespace in ipairs { "a", "b" } do
			for _, component in ipairs { "kubelet", "proxy" } do
				assert.matches(("\n%s +%s +Started +Normal +3 +1 "):format(namespace, component), output)
			end
		end
		_, output = command.evrec("explain", "pod/p", "-n", "a", "--trace", trace)
		assert.matches("\nCOMPONENT +REASON +TYPE ", output)
		assert.same({ 1, "", "evrec: no event of pod/p in the namespace nope was recorded\n" },
			{ command.evrec("explain", "pod/p", "-n", "nope", "--trace", trace) })
	end)

	it("is explained by the owner of a share", function()
		local file = write("lua", ([[
			local evrec = require "evrec"
			local b = evrec.broadcaster { share = "@%s", drive = "poll", correlator = { burst_size = 1, qps = 0 } }
			b:start_recording_to_sink(evrec.sink.file { path = "/dev/null" })
			return b]]):format(prefix))
		local broken = write("broken.lua", ([[
			local evrec = require "evrec"
			local b = evrec.broadcaster { share = "/nowhere/%s", on_error = false }
			b:start_recording_to_sink(evrec.sink.file { path = "/dev/null" })
			return b]]):format("socket"))
		assert.same({ 1, "", "evrec: no process that writes for this share was found within 5 s\n" },
			{ command.evrec("explain", "po/web-0", "--share", broken) })
		local nobody = { command.evrec("explain", "po/web-0", "--share", file) }
		assert.equal(1, nobody[1])
		assert.truthy(nobody[3]:find "no process writes the events of this share")
		local owner = assert(io.popen(([[%s -e '
			local b = dofile "%s"
			local r = b:new_recorder { component = "test" }
			for i = 1, 5 do
				r:event({ kind = "Pod", namespace = "shop", name = "web-0" }, "Normal", "Started", "m" .. i)
			end
			r:event({ kind = "Pod", namespace = "shop", name = "web-0" }, "Normal", "Pulled", "m")
			for _, component in ipairs { "test", "proxy" } do
				for _ = 1, 3 do
					b:new_recorder({ component = component }):event(
						{ kind = "Pod", namespace = "test", name = "web-2" }, "Normal", "Started", "m")
					b:new_recorder({ component = component }):event(
						{ kind = "Pod", namespace = "spec", name = "web-2" }, "Normal", "Started", "m")
				end
			end
			b:poll()
			io.stdout:write "ready\n"
			io.stdout:flush()
			local clock = require("evrec").clock()
			local deadline = clock:now() + 20
			while clock:now() < deadline and not io.open("%s.end") do
				b:poll()
			end
			b:shutdown(1)' ]]):format(command.interpreter, file, prefix)))
		assert.equal("ready", owner:read "*l")
		local status, output, told = command.evrec("explain", "po/web-0", "--share", file)
		local other = { command.evrec("explain", "po/web-1", "--share", file) }
		local nope = { command.evrec("explain", "po/web-0", "-n", "nope", "--share", file) }
		local several = { command.evrec("explain", "po/web-2", "--share", file) }
		write("end", "")
		owner:close()
		assert.equal(0, status, told)
		assert.truthy(output:find "file +rate limited +4 +Started +Normal")
		output = output:gsub("%s+", " ")
		assert.truthy(output:find(WHY:format("Started", 4) .. "Its bucket (test, shop Pod/web-0, Normal) is also that of "
			.. "Pulled.", 1, true), output)
		assert.equal(1, other[1])
		assert.equal("", other[2])
		assert.truthy(other[3]:find "no event of po/web%-1 was suppressed lately")
		assert.same({ 1, "", "evrec: no event of po/web-0 in the namespace nope was suppressed lately\n" }, nope)
		assert.matches("\nNAMESPACE +COMPONENT +SINK +STAGE ", several[2])
		for _, namespace in ipairs { "spec", "test" } do
			for _, component in ipairs { "proxy", "test" } do
				assert.matches(("\n%s +%s +file +rate limited +2 +Started "):format(namespace, component), several[2])
			end
		end
	end)
end)
