local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"

local pod = fixtures.pod()

-- The example of lua/TESTING.md: a function under test, and its spec.
local function reload(recorder, path)
	local object = { kind = "ConfigMap", apiVersion = "v1", namespace = "default", name = "settings" }
	local file = io.open(path)
	if not file then
		recorder:eventf(object, "Warning", "NoSettings", "%s cannot be read", path)
		return
	end
	file:close()
	recorder:event(object, "Normal", "Reloaded", "Settings were read again")
end

describe("reload", function()
	it("warns of a file that cannot be read", function()
		local t = evrec.testing.recorder { component = "my-operator" }
		reload(t, "/nowhere")
		assert.same({ "Warning NoSettings /nowhere cannot be read" }, t:strings())
		assert.equal("settings", t.events[1].object.name)
	end)
end)

describe("evrec.testing.recorder", function()
	local t

	before_each(function() t = evrec.testing.recorder { component = "c", host = "h", labels = { team = "shop" } } end)

	it("lists events as plain tables, in order", function()
		assert.same({}, t.events)
		assert.is_true(t:emit {
			object = pod, related = { kind = "Node", name = "n" }, type = "Warning", reason = "R", action = "A", message = "m",
			annotations = { a = "1" }, labels = { tier = "web" },
		})
		assert.same({ {
			type = "Warning", reason = "R", message = "m", action = "A", object = pod, related = { kind = "Node", name = "n" },
			annotations = { a = "1" }, labels = { team = "shop", tier = "web" }, component = "c", host = "h",
			timestamp = t.clock:now(),
		} }, t.events)
		t.clock:advance(0.25)
		assert.is_true(t:past_eventf(pod, 5.5, "Normal", "Past", "%d", 7))
		assert.is_true(t:event(pod, "Normal", "Now", "x"))
		assert.equal(5.5, t.events[2].timestamp)
		assert.equal(t.clock:now(), t.events[3].timestamp)
		assert.same({ "Warning R m", "Normal Past 7", "Normal Now x" }, t:strings())
		assert.is_nil(getmetatable(t.events[1]))
	end)

	it("lists an empty message as one", function()
		assert.is_true(t:event(pod, "Normal", "Started", ""))
		assert.equal("", t.events[1].message)
		assert.same({ "Normal Started " }, t:strings())
	end)

	it("lists what is recorded by its recorder, and by other recorders of its broadcaster", function()
		t.recorder:annotated_eventf(pod, { a = "1" }, "Normal", "One", "m")
		t.broadcaster:new_recorder { component = "other" }:event(pod, "Normal", "Two", "m")
		assert.same({ "Normal One m", "Normal Two m" }, t:strings())
		assert.equal("other", t.events[2].component)
	end)

	it("begins anew after clear, and keeps a list that was taken before", function()
		t:event(pod, "Normal", "One", "m")
		local before = t.events
		t:clear()
		assert.same({}, t.events)
		t:event(pod, "Normal", "Two", "m")
		assert.same({ "Normal Two m" }, t:strings())
		assert.equal("One", before[1].reason)
	end)

	it("has the methods, the checks and the results of a recorder", function()
		local function silent() end
		t = evrec.testing.recorder { component = "c", broadcaster = { on_error = silent } }
		local real = evrec.broadcaster { clock = t.clock, on_error = silent }:new_recorder { component = "c" }
		for method in pairs { event = 1, eventf = 1, annotated_eventf = 1, past_eventf = 1, action_eventf = 1, emit = 1 } do
			for _, arguments in ipairs {
				{}, { pod, "warning", "R", "m" }, { pod, "Normal", "R", "m" }, { pod, "Normal", "R", "%d", "x" },
				{ {}, "Normal", "R", "m" }, { pod, 5, "Normal", "R", "m" }, { { object = pod, reasn = "R" } },
				{ pod, nil, "Normal", "R", "A", "m" }, { pod, pod, "Normal", "R", 5, "m" },
			} do
				local function results(recorder)
					return { recorder[method](recorder, (table.unpack or unpack)(arguments)) }
				end
				assert.same(results(real), results(t))
				assert.same({ real[method]((table.unpack or unpack)(arguments)) },
					{ t[method]((table.unpack or unpack)(arguments)) })
			end
		end
		assert.is_true(t.broadcaster:stats().invalid > 0)
		assert.is_nil(t.no_method)
		assert.equal(t.event, t.event)
		t.broadcaster:shutdown(0)
		local ok, _, name = t:event(pod, "Normal", "R", "m")
		assert.is_nil(ok)
		assert.equal("closed", name)
	end)

	it("may be recorded to from inside a callback", function()
		t.broadcaster:start_event_watcher(function(event)
			if event.reason == "Outer" then
				t:event(pod, "Normal", "Inner", "m")
			end
		end)
		t:event(pod, "Normal", "Outer", "m")
		assert.same({ "Normal Outer m", "Normal Inner m" }, t:strings())
	end)

	it("takes options of its recorder and its broadcaster", function()
		local clock = evrec.fake_clock(100)
		t = evrec.testing.recorder { annotations = { a = "1" }, broadcaster = { clock = clock, max_message_bytes = 16 } }
		t:event(pod, "Normal", "R", ("x"):rep(50))
		assert.equal(16, #t.events[1].message)
		assert.equal(100, t.events[1].timestamp)
		assert.equal(clock, t.clock)
		assert.same({ a = "1" }, t.events[1].annotations)
		assert.truthy(evrec.testing.recorder())
		assert.truthy(evrec.testing.recorder { component = cjson.null })
		for _, case in ipairs {
			{ 5, "expected a table of options, got number" },
			{ { componnet = "x" }, "unknown option 'componnet': did you mean 'component'?" },
			{ { broadcaster = 5 }, "option 'broadcaster': expected a table of options, got number" },
			{ { broadcaster = { clok = 5 } }, "unknown option 'clok': did you mean 'clock'?" },
		} do
			local ok, message = pcall(evrec.testing.recorder, case[1])
			assert.is_false(ok)
			assert.truthy(fixtures.has(message, "evrec.testing.recorder: "), message)
			assert.is_nil(message:find("lua/evrec", 1, true), message) -- no position inside of evrec
			assert.truthy(fixtures.has(message, case[2]), message)
		end
	end)

	it("is collected with its broadcaster", function()
		local weak = setmetatable({ t, t.broadcaster, t.recorder }, { __mode = "v" })
		t:event(pod, "Normal", "R", "m")
		t = nil
		for _ = 1, 4 do
			collectgarbage()
		end
		assert.is_nil(next(weak))
	end)
end)
