local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"

local nan, inf = 0 / 0, 1 / 0

local function fails(f, options, part)
	local ok, message = pcall(f, options)
	assert.is_false(ok)
	assert.truthy(fixtures.has(message, part), message)
end

local correlator = {
	lru_cache_size = { 0, -1, 1.5, 2 ^ 24 + 1, nan, inf, "5", {} },
	burst_size = { 0, -1, 1.5, 1e10, nan, inf, "5" },
	qps = { -1, nan, inf, -inf, 1e10, "5" },
	max_events = { 0, -1, 1.5, nan, inf, "5" },
	max_interval_in_seconds = { -1, nan, inf, 1e10, "5" },
	key_func = { 5, "x", {}, false },
	message_func = { 5, "x", {}, false },
	spam_key_func = { 5, "x", {}, false },
}

-- Options of every sink.
local sink = {
	spool = { 5, "", true },
	state_file = { 5, "", true, {} },
	full = { 5, "x", "drop_oldest\0", true },
	api = { 5, "x", "v2", "v1\0", "events.k8s.io/v1beta1", true, {} },
	correlate = { 5, "x", "", "by_api", true },
	refresh_interval = { 0, 0.5, -1, nan, inf, 1e10, "5" },
	finish_time = { 0, 0.5, -1, nan, inf, 1e10, "5" },
	max_series = { 0, -1, 1.5, 2 ^ 24 + 1, nan, inf, "5" },
	note_in_key = { 5, "true", {} },
	rate_limit = { 5, "true", {} },
}

local broadcaster = evrec.broadcaster { on_error = false }
local function recorder(options)
	return broadcaster:new_recorder(options)
end
local function watch(options)
	return broadcaster:watch(options)
end
local function start(options)
	return broadcaster:start_recording_to_sink(fixtures.server().sink, options)
end

describe("options", function()
	local cases = {
		["evrec.correlator"] = { evrec.correlator, { clock = { 5, {}, "x", io.stdout } } },
		["evrec.broadcaster"] = { evrec.broadcaster, {
			name = { 5, {}, "a\0b", "\255", ("x"):rep(1025) },
			clock = { 5, {}, io.stdout },
			max_message_bytes = { 15, 262145, 100.5, -1, nan, inf, "100" },
			on_error = { 5, {}, "x" },
			on_drop = { 5, {}, "x" },
			correlator = { 5, "x", print },
		} },
		["broadcaster:new_recorder"] = { recorder, {
			component = { 5, {}, "a\0b", "\255" },
			host = { 5, {}, "a\0b" },
			instance = { 5, {}, "a\0b", "\255", ("x"):rep(1025) },
			labels = { 5, "x", { "x" }, { a = 5 }, { [""] = "x" }, { ["\255"] = "x" }, { a = ("x"):rep(262144) } },
			annotations = { 5, "x", { "x" }, { a = 5 }, { [""] = "x" }, { ["\255"] = "x" }, { a = ("x"):rep(262144) } },
		} },
		["broadcaster:watch"] = { watch, {
			queue_length = { 0, -1, 1.5, 1e8, nan, inf, "5" },
			full = { "wait", "x", 5, "drop\0" },
		} },
		["broadcaster:start_recording_to_sink"] = { start, { correlator = { 5, "x" } } },
		["evrec.sink.file"] = { evrec.sink.file, { path = { 5, {}, "", "a\0b" } } },
		["evrec.sink.lua"] = { evrec.sink.lua, { create = { 5, "x", {} } } },
	}
	for option, values in pairs(correlator) do
		cases["evrec.correlator"][2][option] = values
	end
	for option, values in pairs(sink) do
		cases["evrec.sink.file"][2][option] = values
		cases["evrec.sink.lua"][2][option] = values
	end

	for what, case in pairs(cases) do
		local f, options = case[1], case[2]

		it("of " .. what .. " must be a table", function()
			for _, value in ipairs { 5, "x", true, print } do
				fails(f, value, what .. ": expected a table of options, got " .. type(value))
			end
		end)

		it("of " .. what .. " are refused if they are unknown", function()
			fails(f, { colour = "red" }, what .. ": unknown option 'colour'")
			fails(f, { "red" }, what .. ": options are named by strings, found number")
			fails(f, { [{}] = "red" }, what .. ": options are named by strings, found table")
			for option in pairs(options) do
				fails(f, { [option .. "s"] = 5 }, ("%s: unknown option '%ss'"):format(what, option))
				fails(f, { [option .. "\0"] = 5 }, what .. ": unknown option")
				fails(f, { [option:upper()] = 5 }, ("%s: unknown option '%s'"):format(what, option:upper()))
			end
		end)

		for option, values in pairs(options) do
			it(("of %s are checked: %s"):format(what, option), function()
				for _, value in ipairs(values) do
					fails(f, { [option] = value }, ("%s: option '%s'"):format(what, option))
				end
			end)
		end
	end

	for option, values in pairs(correlator) do
		it("of other constructors are named correlator." .. option, function()
			for _, value in ipairs(values) do
				local part = (": option 'correlator.%s': expected"):format(option)
				fails(evrec.broadcaster, { correlator = { [option] = value } }, "evrec.broadcaster" .. part)
				fails(start, { correlator = { [option] = value } }, "broadcaster:start_recording_to_sink" .. part)
			end
		end)
	end

	it("are named if they are missing", function()
		fails(evrec.sink.lua, {}, "evrec.sink.lua: option 'create' is missing")
		fails(evrec.sink.lua, nil, "evrec.sink.lua: option 'create' is missing")
		fails(evrec.sink.lua, { create = cjson.null }, "evrec.sink.lua: option 'create' is missing")
		fails(evrec.sink.file, {}, "evrec.sink.file: option 'path' is missing")
		for _, value in ipairs { 0, -1, 1.5, 1e8, nan, inf, "5" } do
			fails(evrec.sink.file, { path = "x", max_pending = value }, "evrec.sink.file: option 'max_pending'")
			fails(evrec.sink.lua, { create = print, max_pending = value }, "evrec.sink.lua: option 'max_pending'")
		end
	end)

	it("are refused with the expected type and the given value", function()
		fails(evrec.correlator, { qps = nan }, "evrec.correlator: option 'qps': expected a number >= 0, got nan")
		fails(evrec.correlator, { qps = -1 }, "got -1")
		fails(evrec.correlator, { qps = inf }, "got inf")
		fails(evrec.correlator, { burst_size = 2.5 }, "expected an integer >= 1, got 2.5")
		fails(evrec.sink.file, { path = "-", finish_time = 1e12 },
			"option 'finish_time': expected a number of seconds from 1 to 1000000000, got 1000000000000")
		fails(evrec.sink.file, { path = "-", max_tries = inf }, "expected an integer from 0 to 1000000000, got inf")
		fails(evrec.correlator, { key_func = 5 }, "option 'key_func': expected a function, got number")
		fails(evrec.correlator, { clock = 5 }, "option 'clock': expected a clock, got number")
		fails(evrec.broadcaster, { max_message_bytes = 8 }, "expected an integer from 16 to 262144, got 8")
		fails(evrec.broadcaster, { correlator = { clock = evrec.clock() } }, "unknown option 'correlator.clock'")
		fails(evrec.sink.file, { path = "-", api = "v2" },
			[[evrec.sink.file: option 'api': expected "v1", "events.k8s.io/v1" or "auto", got "v2"]])
		fails(evrec.sink.lua, { create = print, correlate = 5 },
			[[evrec.sink.lua: option 'correlate': expected "record" or "series", got number]])
		fails(evrec.sink.file, { path = "-", max_serie = 5 }, "did you mean 'max_series'?")
		fails(recorder, { instanse = "x" }, "did you mean 'instance'?")
		fails(watch, { full = "wait" }, "option 'full': \"wait\" is impossible")
	end)

	it("may be omitted, nil or null", function()
		assert.truthy(evrec.correlator())
		assert.truthy(evrec.correlator { qps = cjson.null, key_func = cjson.null, clock = cjson.null })
		assert.truthy(evrec.broadcaster { correlator = cjson.null, on_error = cjson.null })
		assert.truthy(broadcaster:new_recorder())
		assert.truthy(broadcaster:new_recorder { component = cjson.null })
		assert.truthy(broadcaster:watch { full = cjson.null })
		assert.truthy(evrec.sink.file { path = "-", api = cjson.null, correlate = cjson.null, max_series = cjson.null })
	end)

	it("of series are refused without series", function()
		local function kubernetes(options)
			options.server = "https://s"
			return evrec.sink.kubernetes(options)
		end
		local makers = {
			["evrec.sink.file"] = function(options)
				options.path = "-"
				return evrec.sink.file(options)
			end,
			["evrec.sink.lua"] = function(options)
				options.create = print
				return evrec.sink.lua(options)
			end,
			["evrec.sink.kubernetes"] = kubernetes,
		}
		for option, value in pairs {
			refresh_interval = 60, finish_time = 5, max_series = 5, note_in_key = true, rate_limit = false,
		} do
			for what, make in pairs(makers) do
				local message = ([[%s: option '%s': only with correlate = "series"]]):format(what, option)
				fails(make, { [option] = value }, message)
				fails(make, { [option] = value, api = "v1" }, message)
				fails(make, { [option] = value, api = "events.k8s.io/v1", correlate = "record" }, message)
				assert.truthy(make { [option] = value, correlate = "series" })
				assert.truthy(make { [option] = value, api = "events.k8s.io/v1" })
			end
			assert.truthy(kubernetes { [option] = value, api = "auto" })
		end
	end)

	it("may be at the ends of their ranges", function()
		assert.truthy(evrec.correlator {
			lru_cache_size = 1, burst_size = 1, qps = 0, max_events = 1, max_interval_in_seconds = 0,
		})
		assert.truthy(evrec.correlator { lru_cache_size = 2, burst_size = 1e9, qps = 1e9, max_events = 1e9 })
		for _, api in ipairs { "v1", "events.k8s.io/v1", "auto" } do
			for _, correlate in ipairs { "record", "series" } do
				assert.truthy(evrec.sink.file { path = "-", api = api, correlate = correlate })
			end
		end
		for _, value in ipairs { 1, 1e9 } do
			assert.truthy(evrec.sink.file { path = "-", correlate = "series", refresh_interval = value, finish_time = value })
		end
		for _, value in ipairs { 1, 2 ^ 24 } do
			assert.truthy(evrec.sink.lua {
				create = print, correlate = "series", max_series = value, note_in_key = true, rate_limit = false,
			})
		end
		assert.truthy(evrec.broadcaster { max_message_bytes = 16 })
		assert.truthy(evrec.broadcaster { max_message_bytes = 262144 })
	end)

	it("follow a sink, and anything else is refused", function()
		for _, value in ipairs { 5, "x", {}, io.stdout, evrec.clock() } do
			assert.has_error(function() broadcaster:start_recording_to_sink(value) end)
		end
		assert.has_error(function() broadcaster:start_recording_to_sink() end)
	end)

	it("follow a broadcaster, and anything else is refused", function()
		for _, method in ipairs { "start_recording_to_sink", "start_event_watcher", "watch", "new_recorder", "poll", "flush",
			"shutdown", "close", "stats", "start_logging", "metrics" } do
			for _, value in ipairs { 5, "x", {}, io.stdout, evrec.clock() } do
				assert.has_error(function() broadcaster[method](value) end)
			end
			assert.has_error(function() broadcaster[method]() end)
		end
	end)
end)
