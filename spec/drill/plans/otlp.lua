-- Events go to a collector as log records. A record that was sent again because its answer was lost may be there twice:
-- a receiver of OTLP cannot tell. Nothing may be lost.
local cluster = require "cluster"
local collector = require "collector"
local evrec = require "evrec"

local answer_lost = "a request that was carried out without an answer is sent again"

-- Where this drill's records begin.
local mark

-- Makes the function that makes the sink of a style. `endpoint` is one of the collector's, or nil: the proxy before it.
-- The records of each style have a service name of their own. `more(d)` returns further options.
local function sink(endpoint, more)
	return function(d)
		local options = d:add_options {
			endpoint = endpoint and collector.endpoint(endpoint) or d:proxy_url() .. "/v1/logs",
			ca_file = not endpoint and collector.dir .. "/server-ca.crt" or nil,
			correlate = d.style, min_interval = 0, resource = { ["service.name"] = d.style },
		}
		for key, value in pairs(more and more(d) or {}) do
			options[key] = value
		end
		return evrec.sink.otlp(options)
	end
end

local function rfc3339(ns)
	return os.date("!%Y-%m-%dT%H:%M:%SZ", tonumber(ns:sub(1, -10)))
end

-- The event that a record tells of, as the API of its style has it.
local function event_of(record)
	local event = { involvedObject = { name = record.resource["k8s.object.name"] } }
	local count, first, last = record.attributes["k8s.event.count"], record.attributes["k8s.event.start_time"],
		rfc3339(record.time)
	if record.resource["service.name"] == "record" then
		event.count, event.firstTimestamp, event.lastTimestamp = count, first, last
	else
		event.eventTime = first
		event.series = count > 1 and { count = count, lastObservedTime = last } or nil
	end
	return event
end

-- The event of each name with its highest count, and how many records are there twice. A lower count after a higher one
-- is a repeated record, or came by a request that was carried out `late`, after another that took its place.
local function events(d, late)
	local seen, highest, order, twice = {}, {}, {}, 0
	for _, record in ipairs((collector.received(mark))) do
		local name = record.resource["service.name"] .. " " .. record.attributes["k8s.event.name"]
		local count = record.attributes["k8s.event.count"]
		local key = ("%s %d"):format(name, count)
		local so_far = highest[name] and highest[name].attributes["k8s.event.count"] or 0
		d:expect(count > so_far or seen[key] or late, "a count is lower than one before it")
		twice, seen[key] = twice + (seen[key] and 1 or 0), true
		if not highest[name] then
			order[#order + 1] = name
		end
		if count > so_far then
			highest[name] = record
		end
	end
	local list = {}
	for i, name in ipairs(order) do
		list[i] = event_of(highest[name])
	end
	return list, twice
end

local function plan(fields)
	fields.receiver, fields.events = "collector", function(d) return events(d, fields.late) end
	fields.before = function() mark = collector.mark() end
	fields.sink = fields.sink or sink "PLAIN"
	return fields
end

-- The proxy in front of the collector spoils so many of the answers.
local function under(fields, kind, share, delay)
	fields.through, fields.sink, fields.late = "otlp_proxy", fields.sink or sink(), kind == "delay"
	fields.perform = fields.perform or function(d)
		d:record(2)
		d:fault(kind, share, delay and d:scaled(delay))
		d:record_until_met(10)
		d:fault()
		d:record(1)
	end
	return plan(fields)
end

-- A server is away for a time, scaled.
local function away(name, down, up, seconds, server, endpoint, more)
	return plan {
		name = name, twice = answer_lost, late = down == "freeze", sink = sink(endpoint or "PLAIN", more),
		perform = function(d)
			d:record(2)
			collector.control(down, server)
			d:record(seconds)
			collector.control(up, server)
			d:record(2)
		end,
	}
end

return {
	away("a collector frozen for 20 s", "freeze", "thaw", 20),
	away("a collector killed, and restarted after 15 s", "kill", "restart", 15),
	away("a collector killed for 15 s, min_interval = 2", "kill", "restart", 15, nil, nil,
		function() return { min_interval = 2 } end),
	away("a collector's backend dead for 15 s (503)", "kill", "restart", 15, "backend", "RELAY"),
	away("a collector's backend frozen for 15 s", "freeze", "thaw", 15, "backend", "RELAY"),
	under({ name = "a collector, 429 with Retry-After" }, "throttled", 0.5),
	under({ name = "a collector, 429 without" }, "limited", 0.5),
	under({ name = "a collector, half answers", twice = answer_lost }, "half", 0.2),
	under({ name = "a collector, answers lost", twice = answer_lost }, "reset", 0.2),
	under({ name = "a collector, a tenth of the answers 30 s late", twice = answer_lost }, "delay", 0.1, 30),
	under {
		name = "a collector, three records of a request rejected", losses = { rejected = true },
		sink = sink(nil, function() return { encoding = "json", compression = "none" } end),
		perform = function(d)
			d.doomed = d.namespace
			d:fault("partial", 1)
			for _ = 1, 5 do
				d:burst(200)
				d:calm()
			end
			d:fault()
			d:burst(200)
		end,
	},
	plan {
		name = "a collector dead at the end, its spool taken up",
		sink = sink("PLAIN", function(d) return { spool = cluster.scratch .. "/spool-otlp-" .. d.style } end),
		perform = function(d)
			d:record(2)
			d:calm() -- no answer is lost
			collector.control "kill"
			d:record(5)
			d:burst(600)
			d:expect(d:end_life(1).spooled >= 600 * #d.styles, "not all of the rest was spooled")
			collector.control "restart"
			d:begin_life()
			d:record(2)
			d:expect(d:calm().restored > 0, "nothing was in the spool")
		end,
	},
}
