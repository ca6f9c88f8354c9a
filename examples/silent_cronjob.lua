-- A story: a CronJob falls silent. It has three events a minute, and a rate limit of 25 tokens for all of them.
--
-- Once the tokens are gone, the bucket gains one every five minutes, and the first event of a minute takes it. Events
-- with the other reasons are counted, but never written again. evrec limits as client-go does, but stats() and
-- explain() report it, and a script can choose another key for the limit.
local evrec = require "evrec"

local silent_cronjob = { minutes = 40, started = 1700000000 }

local FIRST_JOB, KEPT = 101, 3 -- a job is deleted when three later ones have completed

local function tell(recorder, cronjob, clock, minute)
	local job = FIRST_JOB + minute - 1
	recorder:eventf(cronjob, "Normal", "SuccessfulCreate", "Created job hello-%d", job)
	clock:advance(10)
	recorder:eventf(cronjob, "Normal", "SawCompletedJob", "Saw completed job: hello-%d", job)
	clock:advance(1)
	recorder:eventf(cronjob, "Normal", "SuccessfulDelete", "Deleted job hello-%d", job - KEPT)
end

--- Plays the story under a fake clock.
---@param correlator? table options of evrec.correlator
---@param trace? string the path of a file for a trace of all that is recorded
---@param store? string the path of an event store that gets the events, too
---@param noted? { occurrences?: boolean, suppressions?: boolean } what the store keeps beside events
---@return table seen by reason: { minute =, message = } of the last write
---@return table dropped by reason: how many events on_drop got
---@return table stats of the sink
---@return table explained the result of broadcaster:explain(cronjob) for the sink
function silent_cronjob.play(correlator, trace, store, noted)
	local clock, seen, dropped = evrec.fake_clock(silent_cronjob.started), {}, {}
	local broadcaster = evrec.broadcaster {
		clock = clock,
		correlator = correlator,
		on_drop = function(event) dropped[event.reason] = (dropped[event.reason] or 0) + 1 end,
	}
	local function written(event)
		seen[event.reason] = { minute = math.floor((clock:now() - silent_cronjob.started) / 60) + 1, message = event.message }
		return true
	end
	broadcaster:start_recording_to_sink(evrec.sink.lua { create = written, update = written })
	if trace then
		broadcaster:start_trace(trace)
	end
	if store then
		noted = noted or {}
		broadcaster:start_recording_to_sink(evrec.sink.store {
			path = store, occurrences = noted.occurrences, suppressions = noted.suppressions,
		})
	end
	local recorder = broadcaster:new_recorder { component = "cronjob-controller" }
	local cronjob = { kind = "CronJob", apiVersion = "batch/v1", namespace = "default", name = "hello", uid = "c-1" }
	for minute = 1, silent_cronjob.minutes do
		clock:set(silent_cronjob.started + (minute - 1) * 60)
		tell(recorder, cronjob, clock, minute)
		broadcaster:poll()
	end
	local explained = broadcaster:explain(cronjob)[1]
	local _, stats = broadcaster:shutdown(1)
	return seen, dropped, stats.sinks[1], explained
end

--- The fields of such a key that matter here, as `evrec replay` takes them.
silent_cronjob.KEY = "involvedObject.kind,involvedObject.name,reason"

--- A spam_key_func that gives every reason of an object its own bucket of tokens. By default they share one.
---@param event table
---@return string key
function silent_cronjob.by_reason(event)
	local object = event.involvedObject
	return table.concat({ event.source.component, object.kind, object.namespace, object.name, event.reason }, "\0")
end

--- Prints the whole demonstration.
---@param store string the path of the event store
---@param trace string the path of the trace
---@param show fun(...: string) runs the command `evrec`
function silent_cronjob.main(store, trace, show)
	print("Story 2, the CronJob that fell silent: why events stop, how to see it, and what helps.")
	print(("The CronJob has three events a minute for %d minutes. An object has 25 tokens, and gets one every 5 minutes;")
		:format(silent_cronjob.minutes))
	print("each event takes one, and is held back if there is none. The store has this of the events:\n")
	silent_cronjob.started = os.time() - silent_cronjob.minutes * 60
	silent_cronjob.play(nil, trace, store)
	show("events", "--store", store, "--for", "cronjob/hello", "--group", "reason")
	print("\nWhy it fell silent:\n")
	show("explain", "cronjob/hello", "--trace", trace)
	print("\nCured, in variant 2, by tokens for each reason: LOST REASONS falls to 0. What is still rate limited is")
	print("counted by the next write about the same reason.\n")
	show("replay", trace, "--spam-key", silent_cronjob.KEY)
end

return silent_cronjob
