-- A story: a CronJob falls silent. It has three events a minute, and a rate limit of 25 tokens for all of them.
--
-- Once the tokens are gone, the bucket gains one every five minutes, and the first event of a minute takes it. Events
-- with the other reasons are counted, but never written again. evrec limits as client-go does, but stats() and
-- explain() report it, and a script can choose another key for the limit.
local evrec = require "evrec"
local events_table = require "events_table"

local silent_cronjob = { minutes = 40 }

local reasons = { "SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete" }
local started = 1700000000
local width = 100 -- columns of a line

local function tell(recorder, cronjob, clock, minute)
	recorder:eventf(cronjob, "Normal", "SuccessfulCreate", "Created job hello-%d", minute)
	clock:advance(10)
	recorder:eventf(cronjob, "Normal", "SawCompletedJob", "Saw completed job: hello-%d", minute)
	clock:advance(1)
	recorder:eventf(cronjob, "Normal", "SuccessfulDelete", "Deleted job hello-%d", minute - 3)
end

--- Plays the story under a fake clock.
---@param correlator? table options of evrec.correlator
---@return table seen by reason: { minute =, message = } of the last write
---@return table dropped by reason: how many events on_drop got
---@return table stats of the sink
---@return table explained the result of broadcaster:explain(cronjob) for the sink
function silent_cronjob.play(correlator)
	local clock, seen, dropped = evrec.fake_clock(started), {}, {}
	local broadcaster = evrec.broadcaster {
		clock = clock,
		correlator = correlator,
		on_drop = function(event) dropped[event.reason] = (dropped[event.reason] or 0) + 1 end,
	}
	local function written(event)
		seen[event.reason] = { minute = math.floor((clock:now() - started) / 60) + 1, message = event.message }
		return true
	end
	broadcaster:start_recording_to_sink(evrec.sink.lua { create = written, update = written })
	local recorder = broadcaster:new_recorder { component = "cronjob-controller" }
	local cronjob = { kind = "CronJob", apiVersion = "batch/v1", namespace = "default", name = "hello", uid = "c-1" }
	for minute = 1, silent_cronjob.minutes do
		clock:set(started + (minute - 1) * 60)
		tell(recorder, cronjob, clock, minute)
		broadcaster:poll()
	end
	local explained = broadcaster:explain(cronjob)[1]
	local _, stats = broadcaster:shutdown(1)
	return seen, dropped, stats.sinks[1], explained
end

local function print_seen(seen, dropped)
	local rows = { { "REASON", "RECORDED", "SUPPRESSED", "LAST MINUTE", "AS" } }
	for _, reason in ipairs(reasons) do
		rows[#rows + 1] = {
			reason, tostring(silent_cronjob.minutes), tostring(dropped[reason] or 0),
			tostring(seen[reason].minute), seen[reason].message,
		}
	end
	print(events_table.layout(rows, width))
end

-- Prints the result of broadcaster:explain for people.
local function print_explained(explained)
	local rows = { { "REASON", "STAGE", "COUNT", "FIRST", "LAST", "NEXT TOKEN IN", "MESSAGE" } }
	local function minute(time)
		return ("minute %d"):format(math.floor((time - started) / 60) + 1)
	end
	for _, s in ipairs(explained.suppressed) do
		rows[#rows + 1] = {
			s.reason, s.stage, ("%d"):format(s.count), minute(s.first), minute(s.last),
			("%.0f s"):format(s.next_token_in), s.message,
		}
	end
	print(events_table.layout(rows, width))
	local key = explained.suppressed[1].spam_key
	print(("\nAll use one bucket: %s events of %s about %s %s/%s"):format(
		key.type, key.component, key.kind, key.namespace, key.name))
end

--- A spam_key_func that gives every reason of an object its own bucket of tokens. By default they share one.
---@param event table
---@return string key
function silent_cronjob.by_reason(event)
	local object = event.involvedObject
	return table.concat({ event.source.component, object.kind, object.namespace, object.name, event.reason }, "\0")
end

--- Prints the whole demonstration.
function silent_cronjob.main()
	print("Story 2, the CronJob that fell silent: why events stop, how to see it, and what helps.")
	print(("The CronJob has three events a minute for %d minutes.\n"):format(silent_cronjob.minutes))
	print("With the defaults of Kubernetes' own recorder:\n")
	local seen, dropped, stats, explained = silent_cronjob.play()
	print_seen(seen, dropped)

	print("\nWhat stats() says of it:\n")
	local rows = { { "KIND", "OBJECT", "REASON", "COUNT", "WHY" } }
	for _, s in ipairs(stats.suppressed) do
		rows[#rows + 1] = { s.kind, s.namespace .. "/" .. s.name, s.reason, ("%d"):format(s.count), s.why }
	end
	print(events_table.layout(rows, width))

	print("\nWhat explain(cronjob) says of it:\n")
	print_explained(explained)

	print("\nCured by a spam_key_func that adds the reason to the key:\n")
	print_seen(silent_cronjob.play { spam_key_func = silent_cronjob.by_reason })
end

if arg and arg[0] and arg[0]:find("silent_cronjob%.lua$") then
	silent_cronjob.main()
end

return silent_cronjob
