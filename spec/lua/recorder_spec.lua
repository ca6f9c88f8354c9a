local evrec = require "evrec"
local cjson = require "cjson"
local fixtures = require "fixtures"

local pod = fixtures.pod()

describe("a recorder", function()
	it("stamps an event as client-go does", function()
		local s = fixtures.recording()
		assert.is_true(s.recorder:event(pod, "Normal", "Started", "Started container"))
		local e = s.last()
		assert.equal("shop", e.metadata.namespace)
		assert.truthy(e.metadata.name:find("^web%-0%.%x+$"))
		assert.same(pod, e.involvedObject)
		assert.equal("Normal", e.type)
		assert.equal("Started", e.reason)
		assert.equal("Started container", e.message)
		assert.same({ component = "spec", host = "node-1" }, e.source)
		assert.equal("spec", e.reportingComponent)
		assert.equal("node-1", e.reportingInstance)
		assert.equal(1, e.count)
		assert.equal("2023-11-14T22:13:20Z", e.firstTimestamp)
		assert.equal("2023-11-14T22:13:20Z", e.lastTimestamp)
		assert.is_nil(e.eventTime)
	end)

	it("gives its labels and annotations to every event, unless the call has the same key", function()
		local s = fixtures.recording()
		local labels, annotations = { team = "shop", tier = "web", none = cjson.null }, { why = "default" }
		local r = s.broadcaster:new_recorder { component = "c", labels = labels, annotations = annotations }
		assert.same({ team = "shop", tier = "web", none = cjson.null }, labels)
		labels.team, annotations.why = "changed later", nil
		collectgarbage()
		assert.is_true(r:event(pod, "Normal", "R", "m"))
		assert.same({ team = "shop", tier = "web" }, s.last().metadata.labels)
		assert.is_true(r:annotated_eventf(pod, { more = "x" }, "Normal", "R", "m"))
		local e = s.last()
		assert.same({ team = "shop", tier = "web" }, e.metadata.labels)
		assert.same({ why = "default", more = "x" }, e.metadata.annotations)
		assert.is_true(r:emit { regarding = pod, type = "Normal", reason = "R", note = "m",
			labels = { tier = "db", zone = "a" }, annotations = { why = "own" } })
		e = s.last()
		assert.same({ team = "shop", tier = "db", zone = "a" }, e.metadata.labels)
		assert.same({ why = "own" }, e.metadata.annotations)
		assert.is_true(r:eventf(pod, "Normal", "R", "m"))
		assert.same({ why = "default" }, s.last().metadata.annotations)
		assert.is_true(s.recorder:event(pod, "Normal", "R", "m"))
		assert.is_nil(s.last().metadata.labels)
	end)

	it("gives its labels to events that callbacks record", function()
		local s = fixtures.recording()
		local r = s.broadcaster:new_recorder { labels = { team = "shop" } }
		local inside = true
		s.broadcaster:start_event_watcher(function()
			if inside then
				inside = false
				r:emit { regarding = pod, type = "Normal", reason = "Inner", note = "m", labels = { tier = "web" } }
			end
		end)
		r:emit { regarding = pod, type = "Normal", reason = "Outer", note = "m", labels = { team = "db" } }
		local outer, inner = s.watch:next(), s.watch:next()
		assert.equal("Outer", outer.reason)
		assert.same({ team = "db" }, outer.metadata.labels)
		assert.equal("Inner", inner.reason)
		assert.same({ team = "shop", tier = "web" }, inner.metadata.labels)
	end)

	it("makes the same event of a whole object, a reference table and a prepared reference", function()
		local s = fixtures.recording()
		local metadata = { namespace = "shop", name = "web-0", uid = "uid-web-0" }
		local whole = { kind = "Pod", apiVersion = "v1", metadata = metadata }
		for _, object in ipairs { pod, whole, evrec.reference(pod), evrec.reference(whole) } do
			assert.is_true(s.recorder:event(object, "Normal", "Started", "m"))
		end
		s.broadcaster:poll()
		assert.equal(1, #s.server.writes)
		assert.equal(4, s.server.writes[1].event.count)
	end)

	it("reads fields of objects through metatables", function()
		local s = fixtures.recording()
		local class = { kind = "Pod", metadata = setmetatable({}, { __index = function(_, key) return key end }) }
		assert.is_true(s.recorder:event(setmetatable({}, { __index = class }), "Normal", "R", "m"))
		assert.equal("namespace", s.last().involvedObject.namespace)
	end)

	it("puts events of cluster-scoped objects into the namespace default", function()
		local s = fixtures.recording()
		assert.is_true(s.recorder:event({ kind = "Node", name = "n", namespace = cjson.null }, "Normal", "R", "m"))
		local e = s.last()
		assert.equal("default", e.metadata.namespace)
		assert.is_nil(e.involvedObject.namespace)
	end)

	it("formats messages", function()
		local s = fixtures.recording()
		assert.is_true(s.recorder:eventf(pod, "Normal", "R", "%s: %d of %5.1f%%", "x", 3, 2.5))
		assert.equal("x: 3 of   2.5%", s.last().message)
		assert.is_true(s.recorder:eventf(pod, "Normal", "R", "plain"))
		assert.equal("plain", s.last().message)
		assert.is_true(s.recorder:eventf(pod, "Normal", "R", "plain", "with", "more"))
		assert.equal("plain", s.last().message)
		local value = setmetatable({}, { __tostring = function() return "t" end })
		assert.is_true(s.recorder:eventf(pod, "Normal", "R", "%s", value))
	end)

	it("sets annotations", function()
		local s = fixtures.recording()
		assert.is_true(s.recorder:annotated_eventf(pod, { a = "1", b = "" }, "Normal", "R", "%s", "m"))
		assert.same({ a = "1", b = "" }, s.last().metadata.annotations)
		assert.is_true(s.recorder:annotated_eventf(pod, { a = "1", b = cjson.null }, "Normal", "R", "m"))
		assert.same({ a = "1" }, s.last().metadata.annotations)
		assert.is_true(s.recorder:annotated_eventf(pod, nil, "Normal", "R", "m"))
		assert.is_nil(s.last().metadata.annotations)
		assert.is_true(s.recorder:annotated_eventf(pod, cjson.null, "Normal", "R", "m"))
		local many = {}
		for i = 1, 3000 do
			many["key-" .. i] = "value-" .. i
		end
		assert.is_true(s.recorder:annotated_eventf(pod, many, "Normal", "R", "m"))
		assert.same(many, s.last().metadata.annotations)
	end)

	it("records events of the past", function()
		local s = fixtures.recording()
		assert.is_true(s.recorder:past_eventf(pod, 1600000000.5, "Normal", "R", "%d", 5))
		local e = s.last()
		assert.equal("2020-09-13T12:26:40Z", e.firstTimestamp)
		assert.equal("2020-09-13T12:26:40Z", e.lastTimestamp)
		assert.equal("5", e.message)
	end)

	it("sets every field by its name with emit", function()
		local s = fixtures.recording()
		assert.is_true(s.recorder:emit {
			regarding = pod, related = { kind = "Node", metadata = { name = "n" } }, type = "Warning", reason = "R",
			action = "Binding", note = "a note", annotations = { a = "1" }, labels = { l = "2" }, timestamp = 1600000000,
		})
		local e = s.last()
		assert.same({ kind = "Node", name = "n" }, e.related)
		assert.equal("Binding", e.action)
		assert.equal("a note", e.message)
		assert.same({ a = "1" }, e.metadata.annotations)
		assert.same({ l = "2" }, e.metadata.labels)
		assert.equal("2020-09-13T12:26:40Z", e.firstTimestamp)
		assert.is_true(s.recorder:emit {
			regarding = evrec.reference(pod), related = evrec.reference { kind = "Node" }, type = "Normal", reason = "R",
			note = "n", action = cjson.null, annotations = cjson.null, labels = cjson.null, timestamp = cjson.null,
		})
		assert.same({ kind = "Node" }, s.last().related)
		assert.is_true(s.recorder:emit(setmetatable({ note = "n" }, {
			__index = { regarding = pod, type = "Normal", reason = "R", timestamp = 5 },
		})))
		assert.equal("1970-01-01T00:00:05Z", s.last().firstTimestamp)
	end)

	describe("with a message of any bytes", function()
		local function message(text)
			local s = fixtures.recording()
			assert.is_true(s.recorder:event(pod, "Normal", "R", text))
			local e = s.last()
			assert.equal(e.message, cjson.decode(e:to_json()).message)
			return e.message
		end

		it("replaces invalid UTF-8", function()
			assert.equal("a\239\191\189b", message("a\255b"))
		end)

		it("keeps control bytes, and JSON escapes them", function()
			assert.equal("a\0b\nc\27[31m", message("a\0b\nc\27[31m"))
		end)

		it("cuts a long message between two characters, and appends an ellipsis", function()
			assert.equal(("x"):rep(1024), message(("x"):rep(1024)))
			assert.equal(("x"):rep(1021) .. "\226\128\166", message(("x"):rep(1025)))
			assert.equal(("\195\164"):rep(510) .. "\226\128\166", message(("\195\164"):rep(600)))
			assert.is_true(#message(("\255"):rep(1e6)) <= 1024)
		end)

		it("cuts a message to max_message_bytes", function()
			local b = evrec.broadcaster { max_message_bytes = 16, on_error = false }
			local watch = b:watch()
			b:new_recorder():event(pod, "Normal", "R", ("x"):rep(17))
			assert.equal(("x"):rep(13) .. "\226\128\166", watch:next().message)
		end)

		it("gives messages that become the same text the same key", function()
			local s = fixtures.recording()
			s.recorder:event(pod, "Normal", "R", ("x"):rep(2000))
			s.recorder:event(pod, "Normal", "R", ("x"):rep(3000))
			assert.equal(1, s.broadcaster:stats().sinks[1].correlator.duplicate)
		end)
	end)

	it("gives safe names to events of objects with strange names", function()
		for _, name in ipairs { "../../secrets/x", "a/b", "%2e", "fe80::1", "", ("x"):rep(300), "Web", "a b", "." } do
			local s = fixtures.recording()
			assert.is_true(s.recorder:event({ kind = "Pod", name = name }, "Normal", "R", "m"), name)
			local e = s.last()
			assert.truthy(e.metadata.name:find("^%x+%-%x+%-%x+%-%x+%-%x+$"), e.metadata.name)
			assert.equal(name ~= "" and name or nil, e.involvedObject.name)
		end
	end)

	describe("with invalid arguments", function()
		local cyclic = {}
		cyclic.kind, cyclic.metadata, cyclic.name = cyclic, cyclic, cyclic
		local its_own_metadata = { kind = "Pod", name = "web-0" }
		its_own_metadata.metadata = its_own_metadata
		local raising = setmetatable({}, { __index = function() error("boo") end })
		local raising_table = setmetatable({}, { __index = function() error({}) end })
		local big = {}
		for i = 1, 300 do
			big["k" .. i] = ("x"):rep(1000)
		end
		local objects = {
			false, 5, "Pod", {}, { name = "x" }, { kind = "" }, { kind = 5 }, { kind = true }, { kind = "Pod", name = {} },
			{ kind = "Pod", metadata = 5 }, { kind = "Pod", metadata = { name = 5 } }, { kind = "P\0d" }, { kind = "P\255d" },
			{ kind = "Pod", namespace = "a/b" }, { kind = ("x"):rep(1e7) }, cyclic, its_own_metadata, raising, raising_table,
			{ kind = "Pod", metadata = raising }, io.stdout, print, coroutine.create(print), evrec.clock(),
			setmetatable({}, { __index = function() return coroutine.yield() end }),
			setmetatable({}, { __metatable = false, __index = 5 }),
		}
		local not_strings = { false, 5, {}, print, io.stdout, cjson.null, setmetatable({}, {
			__tostring = function() return "x" end,
		}) }
		local types = { "Error", "normal", "", "Normal\0", " Warning" }
		local reasons = { "", "R\0", "R\255", ("R"):rep(1e7) }
		local maps = { false, 5, "x", { "x" }, { a = 1 }, { a = false }, { [1] = "x" }, { [true] = "x" }, { a = {} },
			{ [""] = "x" }, { ["a\0"] = "x" }, { ["a\255"] = "x" }, big }
		local times = { false, "5", {}, -1, 0 / 0, 1 / 0, -1 / 0, 1e300 }

		local s
		before_each(function() s = fixtures.recording() end)

		-- Every list contains nil.
		local function each(list, f)
			for i = 0, #list do
				f(list[i])
			end
		end

		local function refused(method, ...)
			local before = s.broadcaster:stats().invalid
			local ok, result, message, name = pcall(s.recorder[method], s.recorder, ...)
			assert.is_true(ok, tostring(result))
			assert.is_nil(result)
			assert.equal("string", type(message))
			assert.equal("invalid", name)
			assert.equal(before + 1, s.broadcaster:stats().invalid)
			assert.is_nil(s.last())
		end

		after_each(function()
			assert.is_true(s.recorder:event(pod, "Normal", "R", "undisturbed"))
			assert.equal("undisturbed", s.last().message)
			assert.is_nil(fixtures.fault(s.broadcaster:stats()))
		end)

		it("refuses invalid objects", function()
			each(objects, function(object)
				refused("event", object, "Normal", "R", "m")
				refused("eventf", object, "Normal", "R", "m")
				refused("emit", { regarding = object, type = "Normal", reason = "R", note = "m" })
				if object ~= nil then
					refused("emit", { regarding = pod, related = object, type = "Normal", reason = "R", note = "m" })
					refused("action_eventf", pod, object, "Normal", "R", "A", "m")
				end
			end)
		end)

		it("refuses types, reasons and messages of other types than string", function()
			each(not_strings, function(value)
				refused("event", pod, value, "R", "m")
				refused("event", pod, "Normal", value, "m")
				refused("event", pod, "Normal", "R", value)
				refused("eventf", pod, "Normal", "R", value)
				refused("past_eventf", pod, 5, "Normal", "R", value)
				refused("action_eventf", pod, nil, value, "R", "A", "m")
				refused("action_eventf", pod, nil, "Normal", value, "A", "m")
				refused("action_eventf", pod, nil, "Normal", "R", "A", value)
				refused("annotated_eventf", pod, {}, "Normal", "R", value)
				refused("emit", { regarding = pod, type = "Normal", reason = "R", note = value })
				if value ~= nil and value ~= cjson.null then
					refused("emit", { regarding = pod, type = "Normal", reason = "R", note = "m", action = value })
					refused("action_eventf", pod, nil, "Normal", "R", value, "m")
				end
			end)
		end)

		it("refuses invalid types and reasons", function()
			for _, kind in ipairs(types) do
				refused("event", pod, kind, "R", "m")
			end
			for _, reason in ipairs(reasons) do
				refused("event", pod, "Normal", reason, "m")
				if reason ~= "" then
					refused("emit", { regarding = pod, type = "Normal", reason = "R", note = "m", action = reason })
				end
			end
		end)

		it("refuses invalid formats", function()
			refused("eventf", pod, "Normal", "R", "%d", "x")
			refused("eventf", pod, "Normal", "R", "%s")
			refused("eventf", pod, "Normal", "R", "%")
			refused("eventf", pod, "Normal", "R", "%Z", 5)
			refused("eventf", pod, "Normal", "R", "%s", setmetatable({}, { __tostring = function() error("boo") end }))
			refused("eventf", pod, "Normal", "R", "%s", setmetatable({}, { __tostring = function() error({}) end }))
			refused("eventf", pod, "Normal", "R", "%s", setmetatable({}, { __tostring = function() coroutine.yield() end }))
		end)

		it("refuses invalid annotations and labels", function()
			for _, map in ipairs(maps) do
				refused("annotated_eventf", pod, map, "Normal", "R", "m")
				refused("emit", { regarding = pod, type = "Normal", reason = "R", note = "m", annotations = map })
				refused("emit", { regarding = pod, type = "Normal", reason = "R", note = "m", labels = map })
			end
		end)

		it("names the argument that was forgotten", function()
			local r = fixtures.setup().recorder
			assert.same({ nil, "annotations: expected a table of strings, got string", "invalid" },
				{ r:annotated_eventf(pod, "Normal", "R", "the disk is full") })
			assert.same({ nil, "timestamp: expected a number of seconds >= 0, got string", "invalid" },
				{ r:past_eventf(pod, "Normal", "R", "the disk is full") })
			assert.same({ nil, "timestamp: expected a number of seconds <= 9223372036, got 1795725915000", "invalid" },
				{ r:past_eventf(pod, 1795725915000, "Normal", "R", "the disk is full") })
			assert.same({ nil, "timestamp: expected a number of seconds >= 0, got nan", "invalid" },
				{ r:past_eventf(pod, 0 / 0, "Normal", "R", "the disk is full") })
		end)

		it("refuses invalid times", function()
			each(times, function(time)
				refused("past_eventf", pod, time, "Normal", "R", "m")
				if time ~= nil then
					refused("emit", { regarding = pod, type = "Normal", reason = "R", note = "m", timestamp = time })
				end
			end)
		end)

		it("refuses unknown fields of emit", function()
			each({ false, 5, "x", print }, function(value) refused("emit", value) end)
			refused("emit", {})
			refused("emit", raising)
			local what = { regarding = pod, type = "Normal", reason = "R", note = "m" }
			for _, key in ipairs { "annotation", "Note", "message", 1, 2.5, true, "regarding\0" } do
				what[key] = "x"
				refused("emit", what)
				what[key] = nil
			end
		end)

		it("refuses calls without arguments", function()
			for _, method in ipairs { "event", "eventf", "annotated_eventf", "past_eventf", "action_eventf", "emit" } do
				refused(method)
			end
		end)

		it("returns an error if self is no recorder, and cannot count it", function()
			local before = s.broadcaster:stats().recorded
			for _, method in ipairs { "event", "eventf", "annotated_eventf", "past_eventf", "action_eventf", "emit" } do
				for _, self in ipairs { false, 5, "x", {}, io.stdout, s.broadcaster, print } do
					local result, message, name = s.recorder[method](self, pod, "Normal", "R", "m")
					assert.is_nil(result)
					assert.equal("string", type(message))
					assert.equal("invalid", name)
				end
				assert.equal("invalid", select(3, s.recorder[method]()))
			end
			assert.equal(before, s.broadcaster:stats().recorded)
		end)

		it("accepts hundreds of arguments", function()
			local arguments = {}
			for i = 1, 200 do
				arguments[i] = "x"
			end
			local unpack = table.unpack or unpack
			assert.is_true(s.recorder:event(pod, "Normal", "R", "m", unpack(arguments)))
			assert.is_true(s.recorder:eventf(pod, "Normal", "R", ("%s"):rep(200), unpack(arguments)))
			assert.equal(("x"):rep(200), s.last().message)
			assert.is_true(s.recorder:action_eventf(pod, pod, "Normal", "R", "A", ("%s"):rep(200), unpack(arguments)))
			assert.equal(("x"):rep(200), s.last().message)
		end)
	end)

	it("returns closed after shutdown", function()
		local s = fixtures.recording()
		assert.is_true(s.broadcaster:shutdown(1))
		local result, message, name = s.recorder:event(pod, "Normal", "R", "m")
		assert.is_nil(result)
		assert.equal("string", type(message))
		assert.equal("closed", name)
		assert.equal("invalid", select(3, s.recorder:event(pod, "Error", "R", "m")))
		local stats = s.broadcaster:stats()
		assert.equal(1, stats.dropped.closed)
		assert.is_nil(fixtures.fault(stats))
	end)

	it("neither raises nor miscounts with random arguments", function()
		local random = fixtures.random()
		local s = fixtures.recording()
		local values = { pod, "Normal", "Warning", "R", "m", "%s", 5, -1, 1.5, {}, false, true, cjson.null, print,
			evrec.reference(pod), { kind = "Pod" }, { a = "b" }, io.stdout, 0 / 0, "\255", "" }
		local methods = { "event", "eventf", "annotated_eventf", "past_eventf", "action_eventf", "emit" }
		local keys = { "regarding", "related", "type", "reason", "action", "note", "annotations", "labels", "timestamp", "x" }
		for _ = 1, 5000 do
			local method = methods[random(#methods)]
			local ok, result, message, name
			if method == "emit" then
				local what = {}
				for _ = 1, random(8) do
					what[keys[random(#keys)]] = values[random(#values)]
				end
				ok, result, message, name = pcall(s.recorder.emit, s.recorder, what)
			else
				ok, result, message, name = pcall(s.recorder[method], s.recorder, values[random(#values)],
					values[random(#values)], values[random(#values)], values[random(#values)], values[random(#values)],
					values[random(#values)], values[random(#values)])
			end
			assert.is_true(ok, tostring(result))
			if result ~= true then
				assert.is_nil(result)
				assert.equal("string", type(message))
				assert.equal("invalid", name)
			end
		end
		local stats = s.broadcaster:stats()
		assert.equal(5000, stats.recorded)
		assert.is_nil(fixtures.fault(stats))
	end)
end)
