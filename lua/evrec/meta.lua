---@meta evrec
-- What `require "evrec"` returns, for editors and for readers. Never loaded.
-- luacheck: ignore 212 241

---Times are seconds since 1970, durations seconds. What can fail for outside reasons returns `nil, message, name`;
---`name` is stable: `"invalid"`, `"dropped"`, `"closed"`, `"memory"`, `"timeout"`, `"system"`.
---@class evrec
---@field _VERSION string
---@field sink evrec.sinks
local evrec = {}

-- ---- events, references, clocks ----

---An object reference. Other fields are ignored, and so are nil and lua-cjson's null.
---@class evrec.ReferenceTable
---@field kind string
---@field apiVersion? string
---@field name? string
---@field namespace? string
---@field uid? string
---@field resourceVersion? string
---@field fieldPath? string

---A whole Kubernetes object, as decoded from JSON.
---@class evrec.ObjectTable
---@field kind string
---@field apiVersion? string
---@field metadata { name?: string, namespace?: string, uid?: string, resourceVersion?: string }

---What was read by `evrec.reference`. Its fields can be read as those of the table.
---@class evrec.Reference: evrec.ReferenceTable

---@alias evrec.Object evrec.Reference|evrec.ReferenceTable|evrec.ObjectTable

---Reads an object once, to be recorded against many times: faster than a table. Raises on misuse.
---@param object evrec.Object
---@return evrec.Reference
function evrec.reference(object) end

---@class evrec.Metadata
---@field name? string
---@field namespace? string
---@field resourceVersion? string
---@field labels? table<string, string>
---@field annotations? table<string, string>
---@field ownerReferences? table[]

---An immutable event. Its fields are read under their core/v1 JSON names; nil where unset.
---@class evrec.Event
---@field kind "Event"
---@field apiVersion "v1"
---@field metadata evrec.Metadata
---@field involvedObject evrec.ReferenceTable?
---@field related evrec.ReferenceTable?
---@field reason string?
---@field message string?
---@field source { component?: string, host?: string }?
---@field firstTimestamp string? RFC 3339, whole seconds
---@field lastTimestamp string?
---@field eventTime string? RFC 3339, six digits of a second
---@field count integer?
---@field type "Normal"|"Warning"|nil
---@field action string?
---@field series { count: integer, lastObservedTime: string }?
---@field reportingComponent string?
---@field reportingInstance string?
local Event = {}

---The whole event as a fresh table.
---@param api? "v1"|"events.k8s.io/v1"
---@return table
function Event:to_table(api) end

---The whole event as JSON.
---@param api? "v1"|"events.k8s.io/v1"
---@return string
function Event:to_json(api) end

---An event from its fields as decoded from JSON: core/v1, or events.k8s.io/v1 where `apiVersion` says so. Raises on
---misuse, naming the field.
---@param fields table
---@return evrec.Event
function evrec.event(fields) end

---@class evrec.Clock
local Clock = {}

---@return number seconds
function Clock:now() end

---Sets a fake clock. Set back, it makes nothing wait longer, as a step of the real one does not.
---@param seconds number
function Clock:set(seconds) end

---Moves a fake clock on.
---@param seconds number
function Clock:advance(seconds) end

---The real clock.
---@return evrec.Clock
function evrec.clock() end

---A clock that stands still until it is told otherwise.
---@param seconds number
---@return evrec.Clock
function evrec.fake_clock(seconds) end

-- ---- correlator ----

---@class evrec.CorrelatorOptions
---@field lru_cache_size? integer entries in each of the three caches: 4096
---@field burst_size? integer events of one spam key at once: 25
---@field qps? number and how many more a second: 1/300
---@field max_events? integer different local keys before similar events are combined: 10
---@field max_interval_in_seconds? number a pause after which they start anew: 600
---@field key_func? fun(event: evrec.Event): string, string aggregate key, local key
---@field message_func? fun(event: evrec.Event): string the message of an aggregate
---@field spam_key_func? fun(event: evrec.Event): string the key of the rate limit

---@class evrec.StandaloneCorrelatorOptions: evrec.CorrelatorOptions
---@field clock? evrec.Clock

---@class evrec.Correlation
---@field event evrec.Event as observed: its name, count and times
---@field patch string? JSON, where the event is known already and not skipped
---@field skip boolean
---@field why "new"|"duplicate"|"aggregated"|"rate_limited"

---@class evrec.CorrelatorStats
---@field correlated integer
---@field new integer
---@field duplicate integer
---@field aggregated integer
---@field rate_limited integer
---@field callback_errors integer
---@field aggregates integer entries in the aggregator's cache
---@field observed integer in the logger's
---@field rate_limits integer in the spam filter's

---client-go's EventCorrelator.
---@class evrec.Correlator
local Correlator = {}

---@param event evrec.Event|table what `evrec.event` takes; it needs an `involvedObject.kind`
---@return evrec.Correlation? result
---@return string? message, string? name
function Correlator:correlate(event) end

---The server's answer: its name and resource version.
---@param event evrec.Event|table
---@return true? ok
---@return string? message, string? name
function Correlator:update_state(event) end

---@return evrec.CorrelatorStats
function Correlator:stats() end

---Raises on misuse, naming the option.
---@param options? evrec.StandaloneCorrelatorOptions
---@return evrec.Correlator
function evrec.correlator(options) end

-- ---- sinks ----

---Where events are written. Nothing is opened before the first write.
---@class evrec.Sink

---What may wait in memory to be written, and for how long.
---@class evrec.Limits
---@field max_pending? integer writes that wait or are under way: 10000
---@field max_pending_bytes? integer and the memory that they take: 4096 for each of `max_pending`, at least 1 MiB
---@field max_age? number seconds after its last occurrence a write is dropped: 3600; 0: never
---@field max_tries? integer tries that failed after which it is: 0, the default, for never
---@field full? "drop_newest"|"drop_oldest" what goes where there is no room, Warning events last: `"drop_newest"`

---@class evrec.KubernetesOptions: evrec.Limits
---@field server? string https://host:port; then nothing is looked up elsewhere
---@field token? string
---@field token_file? string read again when it changes, and when the server answers 401
---@field ca_file? string PEM; by default the system's authorities
---@field client_certificate? string a PEM file, with `client_key`
---@field client_key? string a PEM file
---@field insecure_skip_tls_verify? boolean
---@field kubeconfig? string
---@field context? string of the kubeconfig; by default its current one
---@field service_account? string the folder with `token` and `ca.crt`
---@field max_in_flight? integer requests at once: 32; 4 where the server has no HTTP/2
---@field timeout? number seconds for one request: 10
---@field spool? string a file that keeps, for the next process, what could not be written by the end of this one
---@field thread? boolean false: `poll()` does the I/O
---@field api? "v1"

---@class evrec.FileOptions: evrec.Limits
---@field path string `"-"` is standard output

---client-go's EventSink. Each function returns the stored event's fields, or true, or nothing; or nil, the HTTP status
---and perhaps the seconds to wait before the next try. Without `patch`, `update` gets the whole event, and without
---either `create` does.
---@class evrec.LuaSinkOptions: evrec.Limits
---@field create fun(event: evrec.Event): table|boolean|nil, integer?, number?
---@field update? fun(event: evrec.Event): table|boolean|nil, integer?, number?
---@field patch? fun(event: evrec.Event, patch: string): table|boolean|nil, integer?, number?

---@class evrec.sinks
local sinks = {}

---An API server: by default that of the pod's service account, of $KUBECONFIG, of ~/.kube/config. Raises on misuse.
---@param options? evrec.KubernetesOptions
---@return evrec.Sink
function sinks.kubernetes(options) end

---A line of JSON for every write.
---@param options evrec.FileOptions
---@return evrec.Sink
function sinks.file(options) end

---Functions, run by `poll()`.
---@param options evrec.LuaSinkOptions
---@return evrec.Sink
function sinks.lua(options) end

-- ---- broadcaster and recorder ----

---@class evrec.BroadcasterOptions
---@field clock? evrec.Clock
---@field max_message_bytes? integer 1024; 16 to 262144
---@field on_error? fun(message: string, name: string)
---@field on_drop? fun(event: evrec.Event, why: string)
---@field correlator? evrec.CorrelatorOptions of its sinks' correlators

---@class evrec.Broadcaster
local Broadcaster = {}

---Raises on misuse, naming the option.
---@param options? evrec.BroadcasterOptions
---@return evrec.Broadcaster
function evrec.broadcaster(options) end

---From now on every event goes through a correlator of its own to the sink.
---@param sink evrec.Sink
---@param options? { correlator?: evrec.CorrelatorOptions } take the place of the broadcaster's, one by one
---@return evrec.Watch? watch
---@return string? message, string? name
function Broadcaster:start_recording_to_sink(sink, options) end

---From now on the function is called for every event, in order, inside the recording call.
---@param func fun(event: evrec.Event)
---@return evrec.Watch? watch
---@return string? message, string? name
function Broadcaster:start_event_watcher(func) end

---From now on every event is queued, to be pulled by `watch:next()`; when the queue is full further ones are dropped
---for this watch alone.
---@param options? { queue_length?: integer, full?: "drop" } 1000
---@return evrec.Watch? watch
---@return string? message, string? name
function Broadcaster:watch(options) end

---Like client-go's StartLogging: `func(format, ...)`.
---@param func fun(format: string, ...: string)
---@return evrec.Watch? watch
---@return string? message, string? name
function Broadcaster:start_logging(func) end

---Like client-go's StartStructuredLogging: `func("Event occurred", { object =, fieldPath =, kind =, apiVersion =,
---type =, reason =, message = })`.
---@param func fun(message: string, fields: table<string, string>)
---@return evrec.Watch? watch
---@return string? message, string? name
function Broadcaster:start_structured_logging(func) end

---@param options? { component?: string, host?: string } what events show as their source
---@return evrec.Recorder? recorder
---@return string? message, string? name
function Broadcaster:new_recorder(options) end

---Runs what waits for the Lua thread: Lua sinks, callbacks, answers. Never blocks.
---@return true? ok
---@return string? message, string? name
function Broadcaster:poll() end

---Waits until all that was recorded is written or dropped, or the time is up; with a timeout of 0 it does what `poll`
---does. A function of a sink is not interrupted, but none is called after that.
---@param timeout? number 5
---@return boolean? ok nil from inside a callback: then message, name
---@return evrec.Stats|string stats
---@return string? name
function Broadcaster:flush(timeout) end

---Flush, then stop; what is left goes to the sink's spool, or is dropped, `closed`. Idempotent.
---@param timeout? number 5
---@return boolean? ok nil from inside a callback: then message, name
---@return evrec.Stats|string stats
---@return string? name
function Broadcaster:shutdown(timeout) end

---The same as shutdown.
---@param timeout? number 5
---@return boolean? ok
---@return evrec.Stats|string stats
---@return string? name
function Broadcaster:close(timeout) end

---@return evrec.Stats
function Broadcaster:stats() end

---Which events of an object each sink suppressed lately, by which stage and key, how often, and when the next token
---comes: the story of a CronJob that fell silent (semantics 8). `uid` and `apiVersion` count where the object has them.
---Each stage, and each cause of a drop, remembers its latest 128 of source, object, type and reason. Raises on misuse.
---@param object? evrec.Object nil: all objects
---@return evrec.Explained[]? sinks in the order in which they were started
---@return string? message, string? name
function Broadcaster:explain(object) end

---The counters in Prometheus' text format.
---@return string
function Broadcaster:metrics() end

---@class evrec.Watch
local Watch = {}

---The oldest event in the queue of `broadcaster:watch`; nil where none waits.
---@return evrec.Event?
function Watch:next() end

---No further events. What a sink has been given is still written. Idempotent.
---@return true
function Watch:stop() end

---Stops, and waits until what a sink has been given is written or dropped, or the time is up. Idempotent.
---@param timeout? number 5
---@return boolean ok
function Watch:close(timeout) end

---Of a sink, its part of the broadcaster's stats; of a queue, how many events wait in it, and were dropped.
---@return evrec.SinkStats|{ queued: integer, dropped: integer }|nil stats
---@return string? message, string? name
function Watch:stats() end

---@alias evrec.Refusal "invalid"|"dropped"|"closed"

---Recording never raises and never blocks: true, or `nil, message, name`.
---@class evrec.Recorder
local Recorder = {}

---@param object evrec.Object
---@param type "Normal"|"Warning"
---@param reason string
---@param message string
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:event(object, type, reason, message) end

---@param object evrec.Object
---@param type "Normal"|"Warning"
---@param reason string
---@param format string of string.format
---@param ... any
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:eventf(object, type, reason, format, ...) end

---@param object evrec.Object
---@param annotations table<string, string>?
---@param type "Normal"|"Warning"
---@param reason string
---@param format string
---@param ... any
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:annotated_eventf(object, annotations, type, reason, format, ...) end

---@param object evrec.Object
---@param timestamp number when it happened
---@param type "Normal"|"Warning"
---@param reason string
---@param format string
---@param ... any
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:past_eventf(object, timestamp, type, reason, format, ...) end

---@class evrec.Emit
---@field regarding evrec.Object
---@field related? evrec.Object
---@field type "Normal"|"Warning"
---@field reason string
---@field action? string
---@field note string
---@field annotations? table<string, string>
---@field labels? table<string, string>
---@field timestamp? number

---@param what evrec.Emit
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:emit(what) end

-- ---- counters ----

---Why events were dropped: all causes, also those of which there was none.
---@class evrec.Dropped
---@field queue_full integer
---@field rejected integer
---@field forbidden integer
---@field not_found integer
---@field namespace_terminating integer
---@field expired integer
---@field max_tries integer
---@field conflict integer
---@field closed integer
---@field memory integer

---An object and reason whose events a sink's rate limit suppressed lately.
---@class evrec.Suppressed
---@field kind string
---@field namespace string
---@field name string
---@field reason string
---@field count integer
---@field why "rate_limited"

---The source, object and type; of an aggregate also the reason and who reports. Fields that are empty are nil.
---@class evrec.KeyParts
---@field component? string
---@field host? string
---@field kind? string
---@field apiVersion? string
---@field namespace? string
---@field name? string
---@field uid? string
---@field type? string
---@field reason? string
---@field reportingComponent? string
---@field reportingInstance? string

---Events of one source, object, type and reason that one stage suppressed. A key is what a callback chose, a string, or
---the parts of the default one, or nil where it was forgotten since.
---@class evrec.ExplainedEvent
---@field stage "aggregated"|"rate_limited"|"dropped"
---@field cause? string of what was dropped: a name of evrec.Dropped
---@field object { kind?: string, apiVersion?: string, namespace?: string, name?: string, uid?: string }
---@field type string
---@field reason string
---@field message? string the last one's, as it was or would have been written; 200 bytes of it at most
---@field count integer occurrences
---@field first number when the first of them was suppressed
---@field last number and the last
---@field aggregate_key? string|evrec.KeyParts what similar events are known by
---@field spam_key? string|evrec.KeyParts what has tokens of its own
---@field tokens number in its bucket now
---@field next_token_in? number seconds; 0 where there is a token, nil where none will ever come

---@class evrec.Explained
---@field name string the sink's
---@field suppressed evrec.ExplainedEvent[] by stage and cause, the latest first; none once the sink was stopped

---received = rate_limited + created + patched + coalesced + pending + spooled + all of dropped, at every moment.
---@class evrec.SinkStats
---@field name string "kubernetes", "file", "lua"
---@field received integer
---@field rate_limited integer
---@field created integer
---@field patched integer
---@field coalesced integer
---@field pending integer
---@field pending_bytes integer the memory that they take
---@field spooled integer left at the end, for the next process
---@field restored integer of those received: from the spool, where an earlier process had left them
---@field pending_writes integer
---@field retries integer
---@field errors_lost integer messages that on_error did not get
---@field dropped evrec.Dropped
---@field correlator evrec.CorrelatorStats
---@field suppressed? evrec.Suppressed[] the latest first; in the broadcaster's stats

---recorded = broadcast + queued + invalid + all of refused, at every moment.
---@class evrec.Stats
---@field recorded integer
---@field broadcast integer
---@field queued integer
---@field invalid integer
---@field refused evrec.Dropped before any sink
---@field dropped evrec.Dropped before and in the sinks
---@field watch_dropped integer
---@field callback_errors integer
---@field rate_limited integer this and the following: sums over the sinks
---@field created integer
---@field patched integer
---@field coalesced integer
---@field pending integer
---@field spooled integer
---@field restored integer
---@field retries integer
---@field sinks evrec.SinkStats[]

return evrec
