-- The option `share`: one recorder for the processes of a host. Processes are in unit/recorder/share_processes_test.c.
local evrec = require "evrec"

local number = 0
local function unique()
	number = number + 1
	return ("@evrec-share-spec-%s-%d"):format(tostring({}):match("0x(%x+)"), number)
end

describe("share", function()
	it("is checked", function()
		assert.has_error(function() evrec.broadcaster { share = "relative/path" } end)
		assert.has_error(function() evrec.broadcaster { share = "@" } end)
		for _, option in ipairs { "share", "name" } do
			assert.has_error(function() evrec.broadcaster { [option] = "" } end,
				("evrec.broadcaster: option '%s': expected a string that is not empty, got \"\""):format(option))
		end
	end)

	it("takes users by name and by number, and knows them", function()
		for _, users in ipairs { {}, { "root" }, { 65534, "root", "1000" } } do
			evrec.broadcaster { share = unique(), share_users = users }:close(0)
		end
		evrec.broadcaster { share = unique(), share_users = { 2 ^ 16 - 2 } }:close(0)
		assert.has_error(function() evrec.broadcaster { share_users = { "root" } } end,
			"evrec.broadcaster: option 'share_users': without the option 'share' there is nothing to share")
		local function refused(users, message)
			assert.has_error(function() evrec.broadcaster { share = unique(), share_users = users } end,
				"evrec.broadcaster: option 'share_users': " .. message)
		end
		refused({ "no-such-user" }, "there is no user 'no-such-user'")
		refused({ "root\0x" }, "has a NUL byte")
		refused({ -1 }, "there is no user '-1'")
		refused({ 4294967295 }, "there is no user '4294967295'")
		refused({ 2 ^ 40 }, "there is no user '1099511627776'")
		refused({ true }, "expected a list of strings and numbers, got boolean")
		refused({ root = true }, "expected a list of strings and numbers, got a table with other keys")
	end)

	it("has the same users in all handles of one process", function()
		local share = unique()
		local b = evrec.broadcaster { share = share, share_users = { "root" } }
		evrec.broadcaster { share = share, share_users = { 0 } }:close(0)
		local ok, message = pcall(evrec.broadcaster, { share = share, share_users = { 1 } })
		assert.is_false(ok)
		assert.matches("'share_users': another handle", message)
		b:close(0)
	end)

	it("refuses a sink in Lua and message_func", function()
		local b = evrec.broadcaster { share = unique() }
		local sink = evrec.sink.lua { create = function() end }
		local ok, message = pcall(b.start_recording_to_sink, b, sink)
		assert.is_false(ok)
		assert.matches("a sink of functions, as a sink in Lua is, cannot be shared", message)
		ok, message = pcall(b.start_recording_to_sink, b, evrec.sink.file { path = "/dev/null" },
			{ correlator = { message_func = function() return "x" end } })
		assert.is_false(ok)
		assert.matches("a sink with message_func cannot be shared", message)
		b:close(0)
	end)

	it("refuses a ninth sink, also after others were stopped", function()
		local b, sink = evrec.broadcaster { share = unique() }, evrec.sink.file { path = "/dev/null" }
		for _ = 1, 8 do
			b:start_recording_to_sink(sink):stop()
		end
		local ok, message = pcall(b.start_recording_to_sink, b, sink)
		assert.is_false(ok)
		assert.matches("option 'share': at most 8 sinks can be started, and those that were stopped count", message)
		b:close(0)
	end)

	it("gives the events of one broadcaster to another one, with the keys that its functions chose", function()
		local path, share = os.tmpname(), unique()
		local b, r = {}, {}
		for i = 1, 2 do
			b[i] = evrec.broadcaster { share = share, name = "share-" .. i, on_error = error }
			b[i]:start_recording_to_sink(evrec.sink.file { path = path }, { correlator = { burst_size = 1, qps = 0,
				spam_key_func = function(event) return event.reason end } })
			r[i] = b[i]:new_recorder { component = "c" }
			b[i]:poll()
			assert.is_true(r[i]:event({ kind = "Pod", name = "p" .. i, namespace = "n" }, "Normal", "R" .. i, "m"))
			local pod = { kind = "Pod", name = "p" .. i, namespace = "n" }
			assert.is_true(r[i]:prepare({ regarding = pod, type = "Normal", reason = "R", note = "m" }):record())
			assert.is_true((b[i]:flush(10)))
		end
		local owner, worker = b[1]:stats(), b[2]:stats()
		assert.equal(3, owner.created)
		assert.equal(1, owner.rate_limited)
		assert.equal(1, worker.forwarded)
		assert.equal(1, worker.rate_limited)
		assert.equal(2, worker.sinks[1].received)
		assert.equal(0, worker.created + worker.pending)
		assert.matches("evrec_sink_forwarded_total", b[2]:metrics())
		assert.is_true((b[2]:shutdown(10)))
		assert.is_true((b[1]:shutdown(10)))
		os.remove(path)
	end)
end)
