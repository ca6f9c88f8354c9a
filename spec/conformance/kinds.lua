-- The two kinds of traces: what runs them, what their steps must reach, and how they are shrunk.

return {
	-- client-go's tools/record: the decisions of its correlator
	record = {
		oracle = "oracle", runner = "trace_runner", generate = require "generate",
		counted = { "new", "duplicate", "aggregated", "rate_limited" },
		cases = { "event_evicted", "aggregate_evicted", "bucket_evicted", "event_evicted_of_4096", "at_interval",
			"just_past_interval", "interval_over", "local_key_forgotten", "aggregate_counted", "skipped_and_counted",
			"token_again", "clock_back", "late_answer", "answer_to_aggregate", "answer_by_handle", "answer_to_evicted",
			"answer_makes_entry", "key_func", "message_func", "spam_key_func" },
		start = "1700000000000000000",
		apart = 0, -- ns at least between two steps
		needed = {},
		-- The values to try for each option, the plainest first.
		plain = {
			lru_cache_size = { 4096, 1, 2, 3, 4, 8 },
			burst_size = { 1000, 1, 2, 3, 25 },
			qps = { 1.0, 1 / 300 },
			max_events = { 10, 1, 2, 3 },
			max_interval_in_seconds = { 600, 1 },
			key_func = { false }, message_func = { false }, spam_key_func = { false },
		},
		-- The fields to leave out of all events of a trace.
		everywhere = {
			{ "firstTimestamp" }, { "lastTimestamp" }, { "action" }, { "reportingComponent" }, { "reportingInstance" },
			{ "source" }, { "source", "host" }, { "source", "component" }, { "involvedObject", "uid" },
			{ "involvedObject", "fieldPath" }, { "involvedObject", "apiVersion" }, { "involvedObject", "kind" },
			{ "involvedObject", "namespace" }, { "metadata", "namespace" }, { "metadata", "resourceVersion" }, { "type" },
			{ "reason" }, { "count" },
		},
	},
	-- client-go's tools/events: the requests that its broadcaster makes
	series = {
		oracle = "oracle' 'series", runner = "series_runner", generate = require "generate_series",
		counted = { "created", "begun", "recreated" },
		cases = { "no_news", "finished_with_news", "finished_without_news", "heartbeat", "finished_at_heartbeat",
			"single_forgotten", "at_finish_time", "just_past_finish_time", "forgotten_by_server", "other_note",
			"evicted_single", "evicted_series", "flushed", "create_dropped", "created_again" },
		start = "0",
		apart = 1,
		needed = { type = true, reason = true, reportingController = true, kind = true }, -- never left out
		plain = { max_series = { 4096, 1, 2, 3 } },
		everywhere = {
			{ "action" }, { "note" }, { "reportingInstance" }, { "related" }, { "regarding", "uid" },
			{ "regarding", "fieldPath" }, { "regarding", "resourceVersion" }, { "regarding", "namespace" },
		},
	},
}
