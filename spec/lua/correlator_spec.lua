local evrec = require "evrec"
local cjson = require "cjson"
local fixtures = require "fixtures"

local now = 1700000000

local function event(change)
	local e = {
		involvedObject = { kind = "Pod", namespace = "shop", name = "web-0", uid = "u", apiVersion = "v1" },
		source = { component = "kubelet", host = "n" },
		reason = "BackOff", message = "m", type = "Warning",
	}
	for key, value in pairs(change or {}) do
		e[key] = value
	end
	return e
end

local function setup(options)
	options = options or {}
	local clock = evrec.fake_clock(now)
	options.clock = clock
	return evrec.correlator(options), clock
end

describe("evrec.correlator", function()
	after_each(function() collectgarbage "restart" end)

	it("calls an event new, and its repetition a duplicate with a patch", function()
		local c, clock = setup()
		local first = c:correlate(event())
		assert.equal("new", first.why)
		assert.is_false(first.skip)
		assert.is_nil(first.patch)
		assert.equal(1, first.event.count)
		assert.truthy(first.event.metadata.name:find("^web%-0%.%x+$"))
		clock:advance(60)
		local second = c:correlate(event { lastTimestamp = "2023-11-14T22:14:20Z" })
		assert.equal("duplicate", second.why)
		assert.equal(2, second.event.count)
		assert.equal(first.event.metadata.name, second.event.metadata.name)
		assert.same({ count = 2, lastTimestamp = "2023-11-14T22:14:20Z", message = "m" }, cjson.decode(second.patch))
	end)

	it("treats event objects, core/v1 tables and events.k8s.io/v1 tables alike", function()
		local c = setup()
		local e = evrec.event(event())
		c:correlate(e)
		assert.equal(2, c:correlate(event()).event.count)
		assert.equal(3, c:correlate(e:to_table("events.k8s.io/v1")).event.count)
	end)

	it("combines similar events from the tenth distinct message on", function()
		local c = setup { burst_size = 100 }
		for i = 1, 9 do
			assert.equal("new", c:correlate(event { message = "m" .. i }).why)
		end
		local tenth = c:correlate(event { message = "m10" })
		assert.equal("aggregated", tenth.why)
		assert.is_nil(tenth.patch)
		assert.equal("(combined from similar events): m10", tenth.event.message)
		assert.equal(1, tenth.event.count)
		local eleventh = c:correlate(event { message = "m11" })
		assert.equal("aggregated", eleventh.why)
		assert.equal(2, eleventh.event.count)
		assert.equal(tenth.event.metadata.name, eleventh.event.metadata.name)
		assert.equal("(combined from similar events): m11", cjson.decode(eleventh.patch).message)
	end)

	it("gives a combined event the reporting controller, action, labels and annotations", function()
		local c = setup { max_events = 1 }
		local result = c:correlate(event {
			reportingComponent = "rc", reportingInstance = "ri", action = "Act",
			metadata = { namespace = "shop", labels = { l = "1" }, annotations = { a = "2" } },
		})
		assert.equal("aggregated", result.why)
		local e = result.event
		assert.equal("rc", e.reportingComponent)
		assert.equal("ri", e.reportingInstance)
		assert.equal("Act", e.action)
		assert.same({ l = "1" }, e.metadata.labels)
		assert.same({ a = "2" }, e.metadata.annotations)
	end)

	it("begins a new aggregate after more than 600 seconds, not after exactly 600", function()
		for seconds, why in pairs { [600] = "aggregated", [601] = "new" } do
			local c, clock = setup { burst_size = 100 }
			for i = 1, 9 do
				c:correlate(event { message = "m" .. i })
			end
			clock:advance(seconds)
			assert.equal(why, c:correlate(event { message = "m10" }).why)
		end
	end)

	it("allows 25 events at once, and one more every 300 seconds", function()
		local c, clock = setup()
		for i = 1, 25 do
			assert.is_false(c:correlate(event()).skip, i)
		end
		local result = c:correlate(event())
		assert.is_true(result.skip)
		assert.equal("rate_limited", result.why)
		assert.is_nil(result.patch)
		assert.equal(26, result.event.count)
		clock:advance(299)
		assert.is_true(c:correlate(event()).skip)
		clock:advance(2)
		result = c:correlate(event())
		assert.is_false(result.skip)
		assert.equal(28, cjson.decode(result.patch).count)
		assert.is_true(c:correlate(event()).skip)
	end)

	it("limits events by source and object, whatever their reason", function()
		local c = setup { burst_size = 2 }
		assert.is_false(c:correlate(event { reason = "A" }).skip)
		assert.is_false(c:correlate(event { reason = "B" }).skip)
		assert.is_true(c:correlate(event { reason = "C" }).skip)
		assert.is_false(c:correlate(event { reason = "C", source = { component = "other" } }).skip)
		assert.is_false(c:correlate(event { involvedObject = { kind = "Pod", name = "web-1" } }).skip)
		assert.is_false(c:correlate(event { type = "Normal" }).skip)
	end)

	it("forgets the least recently used of more than 4096 events", function()
		local function about(i)
			return event { involvedObject = { kind = "Pod", name = "pod-" .. i } }
		end
		local c = setup()
		for i = 1, 4096 do
			c:correlate(about(i))
		end
		assert.equal("duplicate", c:correlate(about(1)).why)
		assert.equal(4096, c:stats().observed)
		c:correlate(about(4097)) -- evicts 2
		assert.equal(4096, c:stats().observed)
		assert.equal("duplicate", c:correlate(about(1)).why)
		assert.equal("duplicate", c:correlate(about(3)).why)
		assert.equal("new", c:correlate(about(2)).why)
	end)

	it("keeps apart keys whose concatenated parts are equal", function()
		local c = setup()
		local function about(kind, namespace, name)
			return event { involvedObject = { kind = kind, namespace = namespace, name = name } }
		end
		for _, parts in ipairs { { "ab", "c", "d" }, { "a", "bc", "d" }, { "a", "b", "cd" }, { "abc", "", "d" },
			{ "abcd", "", "" }, { "a\0b", "c", "d" }, { "a", "b\0c", "d" }, { "a", "1", "d" }, { "a1", "", "d" } } do
			assert.equal("new", c:correlate(about(parts[1], parts[2], parts[3])).why, table.concat(parts, "|"))
		end
	end)

	it("takes the server's answer, but never lowers a count", function()
		local c = setup()
		local first = c:correlate(event()).event
		local answer = first:to_table()
		answer.metadata.resourceVersion = "77"
		c:correlate(event())
		assert.is_true(c:update_state(answer))
		local third = c:correlate(event()).event
		assert.equal("77", third.metadata.resourceVersion)
		assert.equal(3, third.count)
	end)

	it("passes events to its functions", function()
		local seen
		local c = setup {
			max_events = 2,
			key_func = function(e)
				seen = e.message
				return e.reason, e.message
			end,
			message_func = function(e) return "many: " .. e.message end,
			spam_key_func = function(e) return e.reason end,
			burst_size = 3,
		}
		assert.equal("new", c:correlate(event { message = "a" }).why)
		assert.equal("a", seen)
		assert.equal("many: b", c:correlate(event { message = "b" }).event.message)
		assert.equal("many: c", c:correlate(event { message = "c", involvedObject = { kind = "Node" } }).event.message)
		assert.is_true(c:correlate(event { message = "d" }).skip)
		assert.is_false(c:correlate(event { message = "d", reason = "Other" }).skip)
		assert.equal(0, c:stats().callback_errors)
	end)

	local wrong = {
		["raises"] = function() error("boo") end,
		["raises a table"] = function() error({}) end,
		["returns nothing"] = function() end,
		["returns a number"] = function() return 5, 5 end,
		["returns a table"] = function() return {}, {} end,
		["yields"] = function() coroutine.yield() end,
		["overflows the stack"] = fixtures.overflow,
	}
	for what, func in pairs(wrong) do
		for _, option in ipairs { "key_func", "message_func", "spam_key_func" } do
			it(("takes the default where a %s %s"):format(option, what), function()
				local plain = setup { max_events = 3, burst_size = 4 }
				local c = setup { max_events = 3, burst_size = 4, [option] = func }
				local run = coroutine.wrap(function()
					for i = 1, 6 do
						local expected, got = plain:correlate(event { message = "m" .. i }), c:correlate(event { message = "m" .. i })
						assert.equal(expected.why, got.why)
						assert.equal(expected.event.message, got.event.message)
						assert.equal(expected.event.count, got.event.count)
					end
				end)
				run()
				assert.is_true(c:stats().callback_errors >= 4)
			end)
		end
	end

	it("returns an error if one of its own functions calls it", function()
		local c, told
		c = setup {
			key_func = function(e)
				told = { c:correlate(e) }
				return "a", "b"
			end,
		}
		assert.equal("new", c:correlate(event()).why)
		assert.is_nil(told[1])
		assert.equal("invalid", told[3])
	end)

	it("returns nil, message, invalid for a value that is no event", function()
		local c = setup()
		local bad = { 5, "x", true, {}, { involvedObject = {} }, { involvedObject = { kind = 5 } }, { count = -1 },
			{ involvedObject = { kind = "Pod" }, message = 5 }, io.stdout, c, print,
			setmetatable({}, { __index = function() error("boo") end }) }
		bad[#bad + 1] = { involvedObject = bad }
		for i = 0, #bad do
			for _, method in ipairs { "correlate", "update_state" } do
				local result, message, name = c[method](c, bad[i])
				assert.is_nil(result)
				assert.equal("string", type(message))
				assert.equal("invalid", name)
			end
		end
		assert.equal(0, c:stats().correlated)
	end)

	it("counts events by outcome", function()
		local c = setup { burst_size = 2, max_events = 3 }
		c:correlate(event())
		c:correlate(event())
		c:correlate(event())
		local stats = c:stats()
		assert.equal(3, stats.correlated)
		assert.equal(1, stats.new)
		assert.equal(1, stats.duplicate)
		assert.equal(1, stats.rate_limited)
		assert.equal(0, stats.aggregated)
		assert.equal(1, stats.aggregates)
		assert.equal(1, stats.buckets)
	end)
end)
