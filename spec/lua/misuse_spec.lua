-- Messages for mistakes: misspelt names, a dot for a colon, two names of one field, types in another case.
local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"

local pod = fixtures.pod()

--- Checks that the call raises an error whose message has that part.
local function raises(part, f, ...)
	local ok, message = pcall(f, ...)
	assert.is_false(ok)
	assert.truthy(fixtures.has(message, part), message)
	return message
end

describe("misuse", function()
	local s

	before_each(function() s = fixtures.setup() end)

	--- Checks that the recording call is refused as invalid with that message.
	local function refused(expected, method, ...)
		local ok, message, name = s.recorder[method](s.recorder, ...)
		assert.is_nil(ok)
		assert.equal(expected, message)
		assert.equal("invalid", name)
	end

	it("of a field's name in emit is told with the likely one", function()
		local function emit(key)
			return { regarding = pod, type = "Normal", reason = "R", note = "m", [key] = "x" }
		end
		for word, meant in pairs {
			reasn = "reason", Reason = "reason", raeson = "reason", regrading = "regarding", nte = "note",
			annotation = "annotations", lables = "labels", timestamps = "timestamp", mesage = "message", Objct = "object",
		} do
			refused(("unknown field '%s': did you mean '%s'?"):format(word, meant), "emit", emit(word))
		end
		for _, word in ipairs { "msg", "x", "", "involvedObject", ("reason"):rep(20), "reason" .. ("x"):rep(35) } do
			refused(("unknown field '%s'"):format(word:sub(1, 64)), "emit", emit(word))
		end
		refused("unknown field: a number", "emit", { "x" })
	end)

	it("of an option's name is told with the likely one", function()
		raises("evrec.broadcaster: unknown option 'on_eror': did you mean 'on_error'?", evrec.broadcaster,
			{ on_eror = print })
		raises("unknown option 'maxMessageBytes': did you mean 'max_message_bytes'?", evrec.broadcaster,
			{ maxMessageBytes = 5 })
		raises("unknown option 'correlator.bursts_ize': did you mean 'correlator.burst_size'?", evrec.broadcaster,
			{ correlator = { bursts_ize = 1 } })
		raises("broadcaster:new_recorder: unknown option 'componnet': did you mean 'component'?",
			s.broadcaster.new_recorder, s.broadcaster, { componnet = "x" })
		raises("evrec.sink.file: unknown option 'pth': did you mean 'path'?", evrec.sink.file, { pth = "x" })
		raises("evrec.sink.lua: unknown option 'max_pendin': did you mean 'max_pending'?", evrec.sink.lua,
			{ create = print, max_pendin = 5 })
		for word, meant in pairs { tokn = "token", cafile = "ca_file", Server = "server", maxAge = "max_age" } do
			raises(("evrec.sink.kubernetes: unknown option '%s': did you mean '%s'?"):format(word, meant),
				evrec.sink.kubernetes, { [word] = "x" })
		end
		for _, word in ipairs { "colour", "x", "", ("on_error"):rep(20) } do
			local message = raises("unknown option '" .. word .. "'", evrec.broadcaster, { [word] = "x" })
			assert.is_nil(message:find("did you mean", 1, true))
		end
	end)

	it("of a dot for a colon is told as such", function()
		local hint = "called with '.', use ':'"
		for _, method in ipairs { "event", "eventf", "annotated_eventf", "past_eventf", "action_eventf", "emit" } do
			local ok, message, name = s.recorder[method](pod, "Normal", "R", "m")
			assert.is_nil(ok)
			assert.equal(hint, message:sub(1, #hint))
			assert.equal("invalid", name)
		end
		for _, method in ipairs { "flush", "shutdown", "close", "poll", "stats", "explain", "metrics", "new_recorder",
			"watch", "start_recording_to_sink", "start_event_watcher", "start_logging", "start_structured_logging" } do
			raises(hint, s.broadcaster[method])
			raises(hint, s.broadcaster[method], 5)
			raises(hint, s.broadcaster[method], pod)
		end
		local correlator, event = evrec.correlator(), evrec.event { involvedObject = pod }
		raises(hint, correlator.correlate, event)
		raises(hint, correlator.update_state, {})
		raises(hint, s.clock.advance, 5)
		raises(hint, s.watch.stop)
		raises(hint, event.to_json, "v1")
	end)

	it("of a colon for a dot is told as such", function()
		local options = { path = "-", create = print, server = "http://localhost", clock = s.clock }
		for _, name in ipairs { "broadcaster", "correlator", "store", "lines", "cluster", "replay", "event", "reference",
			"fake_clock", "on_signal", "metrics" } do
			raises(("evrec.%s: called with ':', use '.'"):format(name), evrec[name], evrec, options)
		end
		for _, name in ipairs { "kubernetes", "file", "store", "otlp", "lua" } do
			raises(("evrec.sink.%s: called with ':', use '.'"):format(name), evrec.sink[name], evrec.sink, options)
		end
		raises("evrec.testing.recorder: called with ':', use '.'", evrec.testing.recorder, evrec.testing, {})
	end)

	it("of an argument is not told as a dot", function()
		local message = raises("expected evrec.sink, got number", s.broadcaster.start_recording_to_sink, s.broadcaster, 5)
		assert.is_nil(message:find("use ':'", 1, true))
	end)

	it("of a type is told with both types", function()
		refused('type: expected "Normal" or "Warning", got "warning"', "event", pod, "warning", "R", "m")
		refused('type: expected "Normal" or "Warning", got ""', "event", pod, "", "R", "m")
		for _, kind in ipairs { ("x"):rep(33), "\255", "Normal\0" } do
			refused('type: expected "Normal" or "Warning"', "event", pod, kind, "R", "m")
		end
	end)

	it("of both names of a field is told", function()
		refused("'regarding' and 'object' are the same field: give one of them", "emit",
			{ regarding = pod, object = pod, type = "Normal", reason = "R", note = "m" })
		refused("'note' and 'message' are the same field: give one of them", "emit",
			{ regarding = pod, type = "Normal", reason = "R", note = "m", message = "m" })
	end)
end)

describe("emit", function()
	local s, queue

	before_each(function()
		s = fixtures.setup()
		queue = s.broadcaster:watch()
	end)

	it("takes object for regarding, and message for note", function()
		for _, names in ipairs { { "object", "message" }, { "object", "note" }, { "regarding", "message" } } do
			local what = { type = "Normal", reason = "R", action = "A", [names[1]] = pod, [names[2]] = "m" }
			assert.is_true(s.recorder:emit(what))
			local event = queue:next()
			assert.same(pod, event.involvedObject)
			assert.equal("m", event.message)
			assert.equal("A", event.action)
		end
		assert.is_true(s.recorder:emit { object = pod, regarding = cjson.null, type = "Normal", reason = "R",
			note = cjson.null, message = "m" })
		assert.is_true(s.recorder:emit { regarding = evrec.reference(pod), object = cjson.null, type = "Normal", reason = "R",
			note = "m", message = cjson.null })
		assert.equal(5, s.broadcaster:stats().recorded)
		assert.equal(0, s.broadcaster:stats().invalid)
	end)

	it("takes either name from a metatable too, unless the table has one", function()
		local class = { __index = { type = "Normal", reason = "R", object = pod, message = "default" } }
		assert.is_true(s.recorder:emit(setmetatable({}, class)))
		assert.equal("default", queue:next().message)
		assert.is_true(s.recorder:emit(setmetatable({ note = "own", regarding = fixtures.pod "web-1" }, class)))
		local event = queue:next()
		assert.equal("own", event.message)
		assert.equal("web-1", event.involvedObject.name)
	end)
end)

describe("a message that is too long", function()
	local errors, s

	before_each(function()
		errors = {}
		s = fixtures.setup { on_error = function(message) errors[#errors + 1] = message end }
	end)

	-- Calls the function with three texts, of which each is cut at another byte of a character.
	local function each_text(check)
		for length = 0, 2 do
			check(("x"):rep(length) .. ("€"):rep(1000))
		end
	end

	local function is_whole(message)
		assert.equal("€", message:sub(-#"€"), message)
	end

	local function raiser(text)
		return function() error(text, 0) end
	end

	it("is cut between two characters, as the result of a call", function()
		each_text(function(text)
			local shy = setmetatable({}, { __index = raiser(text) })
			local shown = setmetatable({}, { __tostring = raiser(text) })
			for _, result in ipairs {
				{ s.recorder:eventf(pod, "Normal", "R", "%s", shown) },
				{ s.recorder:emit(shy) },
				{ s.recorder:event(shy, "Normal", "R", "m") },
				{ evrec.correlator():correlate(shy) },
			} do
				assert.equal("invalid", result[3])
				is_whole(result[2])
			end
			is_whole(select(2, s.recorder:emit { [text] = "x" }):match "^unknown field '(.*)'$")
			is_whole(raises("share_users", evrec.broadcaster, { share_users = { text } }):match "no user '(.*)'$")
		end)
	end)

	it("is cut between two characters, as on_error gets it", function()
		each_text(function(text)
			local watch = s.broadcaster:start_event_watcher(raiser(text))
			for _, answer in ipairs { raiser(text), function() return nil, text end } do
				s.server.answers[1] = answer
				assert.is_true(s.recorder:event(fixtures.pod(), "Normal", "R", text:sub(1, 1)))
				s.clock:advance(600)
				s.broadcaster:poll()
			end
			watch:stop()
		end)
		s.broadcaster:shutdown(0)
		assert.truthy(#errors >= 9)
		for _, message in ipairs(errors) do
			is_whole((message:gsub(" %(is retried%)$", "")))
		end
	end)
end)
