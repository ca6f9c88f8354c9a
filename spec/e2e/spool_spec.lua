-- The API server is away when a broadcaster ends; the next broadcaster writes the events from the spool.
local cluster = require "cluster"
local evrec = require "evrec"

describe("a spool", function()
	if not cluster.dir then
		pending "skipped: $KUBECONFIG is a cluster that these specs may not freeze"
		return
	end

	local namespace, spool = nil, cluster.scratch .. "/spool"

	setup(function() namespace = cluster.namespace() end)
	teardown(function() cluster.delete_namespace(namespace) end)
	before_each(function()
		cluster.clear(namespace)
		os.execute("rm -rf '" .. spool .. "'")
	end)

	local function start(changes)
		local options = cluster.connection()
		options.spool = spool
		for name, value in pairs(changes or {}) do
			options[name] = value
		end
		local errors = {}
		local b = evrec.broadcaster { on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end }
		b:start_recording_to_sink(evrec.sink.kubernetes(options))
		return b, b:new_recorder { component = "spool" }, errors
	end

	local function record(r, name, times)
		for _ = 1, times do
			assert.is_true(r:event({ kind = "Pod", namespace = namespace, name = name }, "Normal", "Spooled", "m"))
		end
	end

	--- The count of each object's event in the server; every object has one event.
	local function counts()
		local list = {}
		for _, event in ipairs(cluster.events(namespace)) do
			assert.is_nil(list[event.involvedObject.name])
			list[event.involvedObject.name] = event.count
		end
		return list
	end

	it("keeps the events that a server which was down did not get", function()
		local b, r = start { server = "https://127.0.0.1:1" }
		record(r, "one", 1)
		record(r, "three", 3)
		local ok, stats = b:shutdown(0.5)
		assert.is_false(ok)
		assert.equal(4, stats.spooled)
		assert.same({}, counts())
		local errors
		b, r, errors = start()
		record(r, "new", 1)
		ok, stats = b:shutdown(20)
		assert.is_true(ok)
		assert.equal(4, stats.restored)
		assert.equal(3, stats.created)
		assert.same({}, errors)
		assert.same({ one = 1, three = 3, new = 1 }, counts())
		b = start()
		ok, stats = b:shutdown(20)
		assert.is_true(ok)
		assert.equal(0, stats.restored)
	end)

	it("makes no second event of one that a frozen server had carried out all the same", function()
		local b, r = start()
		record(r, "patched", 1)
		assert.is_true(b:flush(20))
		cluster.control "freeze"
		record(r, "patched", 2)
		for i = 1, 20 do
			record(r, "posted-" .. i, 2)
		end
		local ok, stats = b:shutdown(0.5)
		cluster.control "thaw"
		assert.is_false(ok)
		assert.equal(42, stats.spooled)
		b = start()
		ok, stats = b:shutdown(30)
		assert.is_true(ok)
		assert.equal(42, stats.restored)
		assert.equal(0, stats.dropped.conflict)
		local expected = { patched = 3 }
		for i = 1, 20 do
			expected["posted-" .. i] = 2
		end
		assert.same(expected, counts())
	end)
end)
