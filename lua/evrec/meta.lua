---@meta evrec
-- Types and documentation of the module that `require "evrec"` returns, for editors and readers. evrec never loads it.
-- luacheck: ignore 212 241

---Times are seconds since 1970 (UTC), durations seconds; both are numbers and may have a fraction. A constructor raises
---on misuse, and its message names the option. A function that can fail for outside reasons returns `nil, message,
---name`. Scripts may rely on `name`: `"invalid"`, `"dropped"`, `"closed"`, `"memory"`, `"timeout"` or `"system"`.
---@class evrec
---@field _VERSION string
---@field sink evrec.sinks
---@field testing evrec.testing
local evrec = {}

-- ---- events, references, clocks ----

---An object reference. Recording calls ignore other fields, `evrec.reference` refuses them. nil and lua-cjson's null
---mean that a field is unset.
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

---An object reference that `evrec.reference` checked and copied. It has the fields of a table, and is read-only.
---@class evrec.Reference: evrec.ReferenceTable

---@alias evrec.Object evrec.Reference|evrec.ReferenceTable|evrec.ObjectTable

---Checks and copies an object reference once. Recording against the result is faster than against a table. Equal tables
---get the same reference, while it is among the about 1,000 that were used last. Raises on misuse: also for an
---unknown field, unless the table has `metadata`, and so is a whole object.
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

---A series of equal events: `"Ongoing"`, `"Finished"`, or `"Unknown"` for a series that an earlier process wrote. The
---state is not sent to an API server.
---@class evrec.Series
---@field count integer
---@field lastObservedTime string? RFC 3339, six fractional digits
---@field state "Ongoing"|"Finished"|"Unknown"|nil

---An immutable event. Its fields have their core/v1 JSON names, and are nil if unset. Setting one raises.
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
---@field lastTimestamp string? RFC 3339, whole seconds
---@field eventTime string? RFC 3339, six fractional digits
---@field count integer? occurrences
---@field type "Normal"|"Warning"|nil
---@field action string?
---@field series evrec.Series?
---@field reportingComponent string?
---@field reportingInstance string?
local Event = {}

---Returns the whole event as a new table, in the form of that API. Raises if the API is unknown.
---@param api? "v1"|"events.k8s.io/v1" default: `"v1"`
---@return table
function Event:to_table(api) end

---Returns the whole event as JSON, in the form of that API. Raises if the API is unknown.
---@param api? "v1"|"events.k8s.io/v1" default: `"v1"`
---@return string
function Event:to_json(api) end

---Makes an event of a table as decoded from JSON, of core/v1 or events.k8s.io/v1. Raises on misuse; the message names
---the field.
---@param fields evrec.Event|table the names of fields are those of either API; also `object`
---@return evrec.Event
function evrec.event(fields) end

---The source of time of correlators and broadcasters.
---@class evrec.Clock
local Clock = {}

---Returns the time.
---@return number seconds since 1970
function Clock:now() end

---Sets a fake clock. If it is set back, waiting writes do not wait longer, as after a step of the real clock. Raises on
---misuse, and for the real clock.
---@param seconds number since 1970
function Clock:set(seconds) end

---Moves a fake clock forward, or back. Raises on misuse, and for the real clock.
---@param seconds number negative: back
function Clock:advance(seconds) end

---Returns the real clock.
---@return evrec.Clock
function evrec.clock() end

---Makes a clock that stands still until a script sets it. Raises on misuse.
---@param seconds number since 1970
---@return evrec.Clock
function evrec.fake_clock(seconds) end

-- ---- correlator ----

---@class evrec.CorrelatorOptions
---@field lru_cache_size? integer entries in each of the three caches, 1 to 16777216; default: 4096
---@field burst_size? integer tokens of a full bucket, and so events of one spam key in a burst; default: 25
---@field qps? number tokens a second that a bucket gains; default: 1/300
---@field max_events? integer different local keys after which events of one aggregate key are combined; default: 10
---@field max_interval_in_seconds? number similar events further apart are not combined; default: 600
---@field key_func? fun(event: evrec.Event): string, string returns the aggregate key and the local key
---@field message_func? fun(event: evrec.Event): string returns the message of combined events
---@field spam_key_func? fun(event: evrec.Event): string returns the key of the event's bucket of tokens

---@class evrec.StandaloneCorrelatorOptions: evrec.CorrelatorOptions
---@field clock? evrec.Clock default: the real clock

---@class evrec.Correlation
---@field event evrec.Event with the name, count and times with which to write it
---@field patch string? JSON, if the event was written before and is not to be skipped
---@field skip boolean the rate limit suppresses the event: do not write it
---@field why "new"|"duplicate"|"aggregated"|"rate_limited"

---@class evrec.CorrelatorStats
---@field correlated integer events; the sum of the next four
---@field new integer
---@field duplicate integer
---@field aggregated integer
---@field rate_limited integer
---@field callback_errors integer functions of its options that raised, or returned no string; a sink with series
---changes only this counter
---@field aggregates integer entries in the aggregator's cache
---@field observed integer entries in the logger's cache
---@field buckets integer buckets of tokens in the spam filter's cache

---client-go's EventCorrelator, without a sink.
---@class evrec.Correlator
local Correlator = {}

---Aggregates, counts and rate limits an event: EventCorrelate of client-go.
---@param event evrec.Event|table as for `evrec.event`; it needs an `involvedObject.kind`
---@return evrec.Correlation? result
---@return string? message, string? name `"invalid"`, also from inside a callback of this correlator
function Correlator:correlate(event) end

---Takes the stored event that the server answered with: UpdateState of client-go. Never lowers a count.
---@param event evrec.Event|table as for `correlate`
---@return true? ok
---@return string? message, string? name `"invalid"`, also from inside a callback of this correlator
function Correlator:update_state(event) end

---Returns the counters and the sizes of the caches.
---@return evrec.CorrelatorStats
function Correlator:stats() end

---Makes a correlator. Raises on misuse.
---@param options? evrec.StandaloneCorrelatorOptions
---@return evrec.Correlator
function evrec.correlator(options) end

-- ---- replay ----

---Options under which recorded events are replayed.
---@class evrec.ReplayVariant: evrec.CorrelatorOptions without functions
---@field spam_key? string fields of core/v1 that make a bucket, separated by commas; default: the trace's keys
---@field correlate? "record"|"series" default: "record"
---@field refresh_interval? number of series, in seconds; default: 1800
---@field finish_time? number of series, in seconds; default: 360
---@field max_series? integer default: 4096
---@field note_in_key? boolean of series
---@field rate_limit? boolean of series

---Occurrences: created + patched + rate_limited + counted is the number of all.
---@class evrec.ReplayTally
---@field created integer
---@field patched integer
---@field aggregated integer how many of these two are a part of "(combined from similar events)"
---@field rate_limited integer
---@field counted integer occurrences of a series, to be written with the next heartbeat or the end
---@field unseen integer rate limited since the last write
---@field last_write? number seconds since 1970

---@class evrec.ReplayedVariant: evrec.ReplayTally
---@field heartbeats integer patches with the counts of series
---@field requests integer created + patched + heartbeats
---@field peak integer requests in the busiest minute
---@field peak_minute? number when that minute begins, in seconds since 1970
---@field buckets integer buckets of tokens
---@field buckets_max integer

---The events of one source, object, type and reason.
---@class evrec.ReplayedGroup
---@field kind string
---@field namespace string
---@field name string
---@field uid? string
---@field apiVersion? string
---@field component? string
---@field host? string
---@field controller? string
---@field instance? string
---@field type string
---@field reason string
---@field message string of the first event
---@field count integer occurrences
---@field first number seconds since 1970
---@field last number likewise
---@field variants evrec.ReplayTally[]

---A trace with `lost` or `malformed` above 0 is not exact.
---@class evrec.ReplayedTrace
---@field occurrences integer
---@field lost integer events that are missing in the trace
---@field gaps integer the number of gaps of such events
---@field malformed integer lines that were left out
---@field first? number seconds since 1970
---@field last? number likewise
---@field ended? "max_bytes" the trace was full, and ends there

---@class evrec.ReplayResult
---@field trace evrec.ReplayedTrace
---@field variants evrec.ReplayedVariant[]
---@field groups evrec.ReplayedGroup[] the most recent one first

---Runs recorded events through the correlators of several variants. Nothing is written. Its memory grows with the
---number of different events, not with that of occurrences.
---@class evrec.Replay
local Replay = {}

---Takes the next bytes of a file of `broadcaster:start_trace`, cut anywhere.
---@param bytes string
---@return true? ok
---@return string? message, string? name `"invalid"`: the file is not a trace; `"memory"`
function Replay:feed(bytes) end

---Takes an event instead. Times must not go back.
---@param event evrec.Event|table
---@param time number seconds since 1970
---@return true? ok
---@return string? message, string? name
function Replay:add(event, time) end

---Ends the replay, which takes no more events, and returns its results.
---@return evrec.ReplayResult? result
---@return string? message, string? name
function Replay:finish() end

---Makes a replay of 1 to 8 variants. Raises on misuse.
---@param variants evrec.ReplayVariant[]
---@return evrec.Replay
function evrec.replay(variants) end

-- ---- sinks ----

---A place that events are written to. It opens no file or connection before the first write.
---@class evrec.Sink

---A folder for events that are not written in time.
---@class evrec.SpoolOptions
---@field path string the folder; its parent must exist
---@field after? number seconds after which a waiting event is written to the folder; default: 1
---@field journal? boolean whether a process that is killed loses nothing; a recording call may then wait while the
---kernel writes a page of the journal to the disk; default: true

---Options of every sink. The limits bound the writes of one broadcaster to the sink that wait in memory. The `spool`
---keeps the events that could not be written in time, or by `shutdown`; the next sink with that spool, in this process
---or another, writes them.
---@class evrec.SinkOptions
---@field max_pending? integer writes that wait or are under way, 1 to 10000000; default: 10000
---@field max_pending_bytes? integer memory of those writes, in bytes; default: 4096 * `max_pending`, at least 1 MiB
---@field max_age? number seconds after its event's last occurrence a write is dropped, 0 for never; default: 3600
---@field max_tries? integer failed tries after which a write is dropped; default: 0, for never
---@field full? "drop_newest"|"drop_oldest" the write that a full sink drops, Warnings last; default: `"drop_newest"`
---@field spool? string|evrec.SpoolOptions a folder for events that could not be written in time; default: none, but
---with `share` and a `state_file` `<state_file>.spool`
---@field state_file? string a file that keeps counts, names and series for the next process; default: none, but with
---`share` and a `spool` one in the spool's folder
---@field name? string the sink's name in stats, metrics, `explain` and messages, at most 63 bytes; default: its kind
---@field api? "v1"|"events.k8s.io/v1"|"auto" the API that events are written to; auto: events.k8s.io/v1, or core/v1 if
---the server lacks that or forbids it; default: `"v1"`
---@field correlate? "record"|"series" how events are combined: as client-go's tools/record or tools/events; default:
---`"record"` for core/v1, else `"series"`
---@field refresh_interval? number seconds between the writes of a series that goes on, at least 1; default: 1800
---@field finish_time? number seconds, at least 1; after each such time series not seen for longer end; default: 360
---@field max_series? integer events that are remembered, 1 to 16777216; default: 4096
---@field note_in_key? boolean events with different messages are of different series; default: false
---@field rate_limit? boolean requests of series need a token of the correlator's options; default: false

---@class evrec.KubernetesOptions: evrec.SinkOptions
---@field server? string https://host:port[/prefix]; default: that of the service account or of a kubeconfig
---@field token? string a bearer token
---@field token_file? string path of a bearer token, read again if it changes and if the server answers 401
---@field ca_file? string path of PEM certificates; default: the authorities that the system trusts
---@field client_certificate? string path of a PEM file, together with `client_key`; both are read again if one changes
---and if the server answers 401
---@field client_key? string path of a PEM file
---@field insecure_skip_tls_verify? boolean default: false
---@field kubeconfig? string path; default: as for kubectl
---@field context? string a context of the kubeconfig; default: its current context
---@field allow_exec? string[] commands that the kubeconfig's `exec` may run: a name for $PATH, or a path; default: none
---@field service_account? string path of the folder with `token` and `ca.crt`
---@field max_in_flight? integer requests at once, 1 to 1000, but at most 4 without HTTP/2; default: 32
---@field timeout? number seconds for one request; default: 10
---@field resume? boolean series of earlier processes go on, if events are combined by series; default: false
---@field resume_instances? string[] reporting instances, besides the recorder's own, whose series go on; a `*` at the
---end stands for any text; default: none

---@class evrec.FileOptions: evrec.SinkOptions
---@field path string lines are appended to this file; `"-"`: standard output

---@class evrec.StoreOptions: evrec.SinkOptions
---@field path string the file, made with mode 0600 if there is none; not on a network file system
---@field keep? number seconds after its last occurrence an event is deleted, at least 1; default: 604800
---@field keep_bytes? integer the oldest events are deleted beyond this size, at least 1048576; default: no bound
---@field occurrences? boolean each time that an event's count stands for is kept; default: false
---@field suppressions? boolean keeps which occurrences were suppressed, by stage and reason; default: false

---How many records go in one request.
---@class evrec.OtlpBatch
---@field max? integer records, 1 to 65536; default: 512
---@field bytes? integer of the body before compression, 1024 to 16777216; default: 1048576
---@field delay? number seconds that a record waits for others, 0 to 3600; default: 1

---If OpenTelemetry has an environment variable for an option, the variable is its default, see OTLP.md.
---@class evrec.OtlpOptions: evrec.SinkOptions
---@field endpoint? string the whole URL, http or https; default: http://localhost:4318/v1/logs
---@field headers? table<string, string> sent with each request, at most 64; default: none
---@field encoding? "protobuf"|"json" default: `"protobuf"`
---@field compression? "gzip"|"none" default: `"gzip"`
---@field timeout? number seconds for one request, at most 3600; default: 10
---@field batch? evrec.OtlpBatch
---@field min_interval? number seconds between two records of one event, 0 for none; default: 60
---@field resource? table<string, string> attributes of the resource, such as `service.name`, at most 64; default: none
---@field ca_file? string path of PEM certificates; default: the authorities that the system trusts
---@field client_certificate? string path of a PEM file, together with `client_key`
---@field client_key? string path of a PEM file
---@field insecure_skip_tls_verify? boolean default: false

---client-go's EventSink. If a function wrote the event, it returns the stored event as a table, true or nothing. If
---not, it returns nil, the HTTP status (or a message, if there was no answer), and optionally the seconds to wait
---before the next try. A function that raises counts as status 500. Without `patch`, `update` gets the whole event;
---without both, `create` does.
---@class evrec.LuaSinkOptions: evrec.SinkOptions
---@field create fun(event: evrec.Event): table|boolean|nil, integer|string|nil, number?
---@field update? fun(event: evrec.Event): table|boolean|nil, integer|string|nil, number?
---@field patch? fun(event: evrec.Event, patch: string): table|boolean|nil, integer|string|nil, number? `patch` is JSON

---@class evrec.sinks
local sinks = {}

---Makes a sink that writes to an API server: without options that of the pod's service account, else of $KUBECONFIG,
---else of ~/.kube/config. Reads all files now; a token file and the files of a client certificate are read again when
---they change. Raises on misuse, and if it finds no server.
---@param options? evrec.KubernetesOptions
---@return evrec.Sink
function sinks.kubernetes(options) end

---Makes a sink that appends a line of JSON to a file for every write, in the form of its `api`. Raises on misuse.
---@param options evrec.FileOptions
---@return evrec.Sink
function sinks.file(options) end

---Makes a sink that keeps events in a file (SQLite), one row an event, as it is now. Several processes may write and
---read it at once. Raises on misuse.
---@param options evrec.StoreOptions
---@return evrec.Sink
function sinks.store(options) end

---Makes a sink that sends each write as a log record to a receiver of OTLP over HTTP, such as an OpenTelemetry
---collector. Reads the variables of OpenTelemetry's exporters, and all files, now. Raises on misuse, also of a
---variable.
---@param options? evrec.OtlpOptions
---@return evrec.Sink
function sinks.otlp(options) end

---Makes a sink of functions, which run inside `poll`, `flush` and `shutdown`. Raises on misuse.
---@param options evrec.LuaSinkOptions
---@return evrec.Sink
function sinks.lua(options) end

-- ---- broadcaster and recorder ----

---@class evrec.BroadcasterOptions
---@field name? string all broadcasters of this name in the process, in any Lua state, are handles of one; their
---other options must be equal. At most 1024 bytes
---@field share? string one recorder for all processes of the host that name the same socket: `"@name"`, or a path
---in a folder of mode 0700; at most 107 bytes
---@field share_users? (string|integer)[] names or uids of other users whose processes are talked to, besides the own
---one and root, at most 64; only with `share`
---@field clock? evrec.Clock default: the real clock
---@field max_message_bytes? integer longer messages are cut, 16 to 262144; default: 1024
---@field drive? "auto"|"thread"|"poll" who does the I/O of its sinks: a thread for each, or `poll`. `"auto"`: `poll`
---only if no thread can be started, which with `"thread"` is an error; default: `"auto"`
---@field on_error? false|fun(message: string, name: string) called for errors of sinks and callbacks; `name` is the
---kind. A message about a sink begins with the sink's name. Losses after the end of the broadcaster or of the script
---are printed on standard error. Without a function evrec sums up errors, lost events and refused calls in lines, one
---in 10 s for each kind, in the log of nginx or HAProxy, else on standard error. false: silence
---@field on_drop? fun(event: evrec.Event, why: string) called for each lost event; `why` is a field of evrec.Dropped or
---`"rate_limited"`
---@field correlator? evrec.CorrelatorOptions default options of the correlators of its sinks

---Gives every recorded event to its sinks, watchers and queues. Callbacks run inside its methods and those of its
---recorders, on the calling thread.
---@class evrec.Broadcaster
local Broadcaster = {}

---Makes a broadcaster. Raises on misuse.
---@param options? evrec.BroadcasterOptions
---@return evrec.Broadcaster
function evrec.broadcaster(options) end

---Writes every event that is recorded from now on to the sink, through a correlator of the sink's own. Raises on
---misuse.
---@param sink evrec.Sink
---@param options? { correlator?: evrec.CorrelatorOptions } each one set replaces the broadcaster's
---@return evrec.Watch? watch
---@return string? message, string? name `"closed"` or `"memory"`
function Broadcaster:start_recording_to_sink(sink, options) end

---Calls the function for every event that is recorded from now on, in order, inside the recording call. Raises on
---misuse.
---@param func fun(event: evrec.Event)
---@return evrec.Watch? watch
---@return string? message, string? name `"closed"` or `"memory"`
function Broadcaster:start_event_watcher(func) end

---Queues every event that is recorded from now on, for `watch:next`. A full queue drops and counts further events,
---which other watches still get. Raises on misuse.
---@param options? { queue_length?: integer, full?: "drop" } `queue_length`: events, 1 to 10000000; default: 1000
---@return evrec.Watch? watch
---@return string? message, string? name `"closed"` or `"memory"`
function Broadcaster:watch(options) end

---Writes every event that is recorded from now on to a file, before any correlator: lines of JSON, for `evrec replay`
---and `evrec.replay`. The watch is a sink named `trace`; a line in the file has the number of events that it dropped.
---The first event opens the file, which has mode 0600, and replaces an earlier trace; if that fails, on_error gets
---`trace`. Once `max_bytes` are written the trace ends. `key_func` and `spam_key_func` of the correlator are called
---with the event as it was recorded. Raises on misuse, and for a broadcaster with a `share`.
---@param path string
---@param options? { max_bytes?: integer, correlator?: evrec.CorrelatorOptions } `max_bytes`: from 4096 on; 256 MiB
---@return evrec.Watch? watch
---@return string? message, string? name `"closed"` or `"memory"`
function Broadcaster:start_trace(path, options) end

---Calls the function for every event with a format and strings, as client-go's StartLogging does. Raises on misuse.
---@param func fun(format: string, ...: string)
---@return evrec.Watch? watch
---@return string? message, string? name
function Broadcaster:start_logging(func) end

---Calls `func("Event occurred", { object =, fieldPath =, kind =, apiVersion =, type =, reason =, message = })` for
---every event, as client-go's StartStructuredLogging does. If the event tells of a series that began, ended or was
---taken over, there are also `seriesState` and `seriesCount`. Raises on misuse.
---@param func fun(message: string, fields: table<string, string>)
---@return evrec.Watch? watch
---@return string? message, string? name
function Broadcaster:start_structured_logging(func) end

---Defaults of a recorder's events. They are checked and copied when the recorder is made.
---@class evrec.RecorderOptions
---@field component? string the source of its events, at most 1024 bytes
---@field host? string likewise
---@field instance? string the reporting instance, at most 1024 bytes; default: `host`; without both, a sink that needs
---one uses `<component>-<host name of the machine>`
---@field labels? table<string, string> of all its events, at most 64; for a key that a call has too, the call's wins
---@field annotations? table<string, string> likewise

---Makes a recorder. Raises on misuse.
---@param options? evrec.RecorderOptions
---@return evrec.Recorder? recorder
---@return string? message, string? name `"closed"` or `"memory"`
function Broadcaster:new_recorder(options) end

---Runs sinks in Lua and callbacks, and takes the answers of other sinks. Does not wait for a server. Does nothing from
---inside a callback. In nginx and HAProxy evrec calls it by itself, by a timer or a task that begins with the first
---event.
---@return true? ok
---@return string? message, string? name `"closed"`
function Broadcaster:poll() end

---Waits until every recorded event is written or dropped, or the timeout has passed. Does not interrupt a function of
---a sink in Lua, but calls none after the timeout. With a timeout of 0 it works as `poll` does.
---@param timeout? number seconds; default: 5
---@return boolean? ok false: events still wait, or since the last flush events were lost or recording calls refused;
---nil, message, `"invalid"`: called from inside a callback. Rate limited events, and those that a full queue dropped,
---do not count as lost
---@return evrec.Stats|string stats
---@return string? message of false: how many, why, and an example or the last error
function Broadcaster:flush(timeout) end

---Flushes, then ends all sinks. An event that still waits goes to the spool of its sink, or is dropped, `closed`, if
---the sink has none. Recorders refuse further events. A second call returns the results of the first.
---@param timeout? number seconds; default: 5
---@return boolean? ok as of flush; false too if events were spooled, which are not lost
---@return evrec.Stats|string stats
---@return string? message as of flush
function Broadcaster:shutdown(timeout) end

---The same as shutdown.
---@param timeout? number seconds; default: 5
---@return boolean? ok
---@return evrec.Stats|string stats
---@return string? message
function Broadcaster:close(timeout) end

---Returns a copy of all counters; after the end, the last ones.
---@return evrec.Stats
function Broadcaster:stats() end

---Returns which events of an object each sink suppressed lately, by which stage and key, how often, and when the next
---token comes. Objects are compared by kind, namespace and name, and by `uid` and `apiVersion` if `object` has them.
---Each stage, and each cause of a drop, remembers its latest 128 of source, object, type and reason. Raises on misuse.
---
---With `share` the owner of the share is asked, for up to `timeout` seconds, during which the event loop is blocked.
---After `shutdown` it returns the state at that time, but in a process that was not the owner it returns `"closed"`.
---@param object? evrec.Object nil: all objects
---@param timeout? number default: 1
---@return evrec.Explained[]? sinks in the order of start, without the ended ones
---@return string? message
---@return string? name `"closed"`; `"timeout"`: no owner was found, or it did not answer; `"memory"`; `"invalid"`: in a
---callback of a process that is not the owner
function Broadcaster:explain(object, timeout) end

---@class evrec.MetricsOptions
---@field labels? table<string, string|number> added to every sample; not `sink`, `name`, `cause`,
---`api` or `broadcaster`

---Returns the counters in Prometheus' text format, version 0.0.4. Raises on misuse, also if Prometheus would refuse a
---label.
---@param options? evrec.MetricsOptions
---@return string
function Broadcaster:metrics(options) end

---@class evrec.AllMetricsOptions: evrec.MetricsOptions
---@field by? string the label that distinguishes the sources; default: `"broadcaster"`

---Returns the counters of several broadcasters as one text, with one description of each metric. Raises as
---`broadcaster:metrics` does.
---@param sources table<string|integer, evrec.Broadcaster|evrec.Stats> a key is the value of the label; instead of a
---broadcaster what its `stats` returned, which may have been JSON since
---@param options? evrec.AllMetricsOptions
---@return string
function evrec.metrics(sources, options) end

---A sink, function or queue that a broadcaster gives events to.
---@class evrec.Watch
local Watch = {}

---Takes the oldest event from a queue. Raises unless `broadcaster:watch` returned the watch.
---@return evrec.Event? event nil: the queue is empty
function Watch:next() end

---Ends the flow of events to the watch. Events that wait for a sink are still written. Once all are written or dropped,
---a `poll`, `flush` or `shutdown` forgets the sink, and adds its counters to `stats().ended`. Idempotent.
---@return true
function Watch:stop() end

---Stops the watch. If it is a sink, then flushes its broadcaster, and waits, for at most the timeout, until the sink's
---thread has ended and holds no file. Idempotent.
---@param timeout? number seconds; default: 5
---@return boolean ok as of flush
---@return string? message as of flush
function Watch:close(timeout) end

---Returns the counters of a sink, the last ones once it was forgotten; or how many events wait in a queue, and how many
---a full queue dropped.
---@return evrec.SinkStats|{ queued: integer, dropped: integer }|nil stats
---@return string? message, string? name `"closed"`, if the broadcaster was collected before it forgot the sink
function Watch:stats() end

---@alias evrec.Refusal "invalid"|"dropped"|"closed"

---Records events. Its methods never raise and never block. They return true, or `nil, message, name`: `"invalid"` if an
---argument is wrong, `"dropped"` without memory or if callbacks record without end, `"closed"` after `shutdown`.
---@class evrec.Recorder
local Recorder = {}

---Records an event.
---@param object evrec.Object
---@param type "Normal"|"Warning"
---@param reason string 1 to 1024 bytes
---@param message string any bytes; bytes of invalid UTF-8 are replaced, and it is cut to `max_message_bytes`
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:event(object, type, reason, message) end

---Records an event whose message is `string.format(format, ...)`.
---@param object evrec.Object
---@param type "Normal"|"Warning"
---@param reason string
---@param format string
---@param ... any
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:eventf(object, type, reason, format, ...) end

---Records an event with annotations.
---@param object evrec.Object
---@param annotations table<string, string>?
---@param type "Normal"|"Warning"
---@param reason string
---@param format string
---@param ... any
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:annotated_eventf(object, annotations, type, reason, format, ...) end

---Records an event that happened earlier.
---@param object evrec.Object
---@param timestamp number seconds since 1970
---@param type "Normal"|"Warning"
---@param reason string
---@param format string
---@param ... any
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:past_eventf(object, timestamp, type, reason, format, ...) end

---Records an event with a related object and an action, as Eventf of client-go's tools/events.
---@param regarding evrec.Object
---@param related evrec.Object?
---@param type "Normal"|"Warning"
---@param reason string
---@param action string? what was done, or what failed; at most 1024 bytes
---@param format string
---@param ... any
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:action_eventf(regarding, related, type, reason, action, format, ...) end

---Instead of `regarding` it may have `object`, and instead of `note` it may have `message`, but not both.
---@class evrec.EventFields
---@field regarding evrec.Object
---@field related? evrec.Object
---@field type "Normal"|"Warning"
---@field reason string
---@field action? string at most 1024 bytes
---@field note string the message
---@field annotations? table<string, string>
---@field labels? table<string, string>

---@class evrec.Emit: evrec.EventFields
---@field timestamp? number when it happened, in seconds since 1970; default: now

---Records an event by named fields. An unknown field is invalid; the message suggests a similar name.
---@param what evrec.Emit
---@return true? ok
---@return string? message, evrec.Refusal? name
function Recorder:emit(what) end

---An event that is recorded often. Its fields are checked and copied when it is made. It keeps its recorder.
---@class evrec.PreparedEvent
local PreparedEvent = {}

---Prepares an event, and records nothing yet. Raises on misuse.
---@param what evrec.EventFields
---@return evrec.PreparedEvent? prepared
---@return string? message, string? name `"closed"`, if the recorder was collected; `"memory"`
function Recorder:prepare(what) end

---Records that the event happens now. Never raises and never blocks, and returns what methods of a recorder return.
---@param message? string instead of the prepared one, for this time; such a call takes as long as `recorder:emit`
---@return true? ok
---@return string? message, evrec.Refusal? name
function PreparedEvent:record(message) end

-- ---- hosts ----

---The program that runs the script.
---@return "nginx"|"haproxy"|"lua"
function evrec.host() end

-- ---- signals ----

---@class evrec.Signals
---@field [integer] "TERM"|"INT"|"HUP"|"QUIT"|"USR1"|"USR2" with or without "SIG"
---@field timeout? number seconds, at most 86400; default: 2

---From now on, if one of the signals comes, evrec writes or spools the waiting events, which takes up to `timeout`
---seconds, and then the process dies by the signal; process 1 of a container exits with 128 + the signal's number. A
---thread does so whatever the script is doing; but a sink in Lua writes only if the script polls meanwhile. No
---finalizer and no exit handler runs. A signal that comes a second time ends the process at once. A later call adds
---signals, and sets the timeout for all. Forked children die as without this call. Replaces the handler with which the
---programs lua and luajit interrupt a script by SIGINT. Raises on misuse.
---@param signals evrec.Signals
---@return true? ok
---@return string? message, string? name `"invalid"`: in nginx and HAProxy, or if the process has a handler for a signal
---or ignores it; `"system"`: no thread can be started
function evrec.on_signal(signals) end

-- ---- testing ----

---@class evrec.testing
local testing = {}

---@class evrec.testing.Options: evrec.RecorderOptions
---@field broadcaster? evrec.BroadcasterOptions default of its `clock`: a fake clock

---An event as a recording call recorded it. A field that is unset is nil.
---@class evrec.testing.Event
---@field type "Normal"|"Warning"
---@field reason string
---@field message string
---@field action? string
---@field object evrec.ReferenceTable
---@field related? evrec.ReferenceTable
---@field labels? table<string, string>
---@field annotations? table<string, string>
---@field component? string
---@field host? string
---@field instance? string if it is not the host
---@field series? evrec.Series the event tells that a series of a sink began or ended
---@field timestamp number seconds since 1970

---A recorder that lists what was recorded to it, or to another recorder of its broadcaster.
---@class evrec.testing.Recorder: evrec.Recorder
---@field events evrec.testing.Event[] in order
---@field clock evrec.Clock a fake clock
---@field recorder evrec.Recorder
---@field broadcaster evrec.Broadcaster
local Fake = {}

---Returns the events as "type reason message", as client-go's FakeRecorder does. An event that tells that a series
---began or ended is "type reason message (series Ongoing, 2)".
---@return string[]
function Fake:strings() end

---Begins a new list of events.
function Fake:clear() end

---Makes a recorder of a new broadcaster without a sink. Raises on misuse.
---@param options? evrec.testing.Options
---@return evrec.testing.Recorder
function testing.recorder(options) end

-- ---- counters ----

---Dropped events, counted by cause. Every cause has a field, 0 if it never occurred.
---@class evrec.Dropped
---@field queue_full integer the sink's limits were reached, or callbacks recorded without end
---@field rejected integer the server answered 400, 413, 422 or another status that stays
---@field forbidden integer 403
---@field not_found integer the namespace does not exist
---@field namespace_terminating integer the namespace is being deleted
---@field expired integer older than `max_age`
---@field max_tries integer failed as often as `max_tries` allows
---@field conflict integer the event's name existed, and so did the name of the second try
---@field closed integer recorded after `shutdown`, or not written by its end
---@field unfit integer the sink's API cannot take such an event
---@field memory integer there was no memory

---An object and reason whose events a sink's rate limit suppressed lately. Unset strings are "".
---@class evrec.Suppressed
---@field kind string
---@field namespace string
---@field name string
---@field reason string
---@field count integer occurrences
---@field why "rate_limited"

---The parts of a default key: source, object and type; of an aggregate key also the reason, the reporting component and
---the reporting instance. Empty parts are nil.
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

---Events of one source, object, type and reason that one stage suppressed. A key is the string that a callback
---returned, or the parts of the default key, or nil if evrec has forgotten it since.
---@class evrec.ExplainedEvent
---@field stage "aggregated"|"rate_limited"|"dropped"|"merged"|"finished" merged: its series has the message of a later
---event; finished: nothing was suppressed, a series has ended
---@field cause? string of the stage `dropped`: the name of a field of evrec.Dropped
---@field why string the word that `on_drop` gets: `"rate_limited"` or the cause; else the stage
---@field object { kind?: string, apiVersion?: string, namespace?: string, name?: string, uid?: string }
---@field type string
---@field reason string
---@field message? string of the last occurrence, as it was or would have been written; at most 200 bytes
---@field count integer occurrences
---@field first number seconds since 1970: when the first of them was suppressed
---@field last number seconds since 1970: when the last of them was suppressed
---@field aggregate_key? string|evrec.KeyParts events with this key are combined
---@field spam_key? string|evrec.KeyParts events with this key share a bucket of tokens; not of merged and finished ones
---@field tokens? number in that bucket now; not of merged and finished ones
---@field next_token_in? number seconds; 0: there is a token; nil: none will ever come, or of merged and finished ones

---@class evrec.Explained
---@field name string of the sink
---@field number integer of the sink, as in stats()
---@field suppressed evrec.ExplainedEvent[] by stage and cause, the latest first

---How the server's answers slow a sink down. After a 429 or 503 the whole sink pauses: for the seconds that the server
---asked for, or for a pause that grows.
---@class evrec.Throttle
---@field window integer requests that may be under way at once; 0: paused
---@field rate number requests a second that may start; 0: no limit
---@field paused_for number seconds until the next request may start; 0: not paused
---@field refused integer requests that the server answered with 429 or 503, or not in time

---The series of a sink with `correlate = "series"`; else all are 0.
---@class evrec.SeriesStats
---@field series integer events that are remembered: single ones, and series
---@field ongoing integer how many of these are series
---@field begun integer series since the sink's start
---@field finished integer series that have ended, the evicted ones included
---@field evicted integer series that ended early, to make room for a new event
---@field evicted_singles integer single events that were forgotten early, for the same reason
---@field notes integer different messages, beyond the first of each series, that were merged; at most 16 of each series

---received = rate_limited + created + patched + coalesced + counted + pending + spooled + forwarded + the sum of
---dropped, at every moment. All of these count occurrences: a write that carries n of them counts one as created or
---patched, and n - 1 as coalesced.
---@class evrec.SinkCounters
---@field received integer events broadcast since the sink's start, and those restored
---@field rate_limited integer suppressed by the rate limit
---@field created integer written as a new event
---@field patched integer written as a change of an event
---@field coalesced integer carried by the write of another occurrence
---@field counted integer to be written later: with a heartbeat or the end of a series, or after a `min_interval`
---@field pending integer waiting to be written, or under way
---@field spooled integer left in the spool for the next process
---@field forwarded integer written by another process of the host, or left to it (`share`)
---@field restored integer taken up from the spool
---@field dropped evrec.Dropped
---@field pending_writes integer requests to be made, or under way
---@field pending_bytes integer memory that those requests take
---@field retries integer requests sent again
---@field errors_lost integer messages that `on_error` did not get
---@field notes_lost integer notes of occurrences and suppressions that were lost
---@field throttle evrec.Throttle
---@field correlator evrec.CorrelatorStats
---@field series evrec.SeriesStats

---@class evrec.SinkStats: evrec.SinkCounters
---@field name string the option `name`, else "kubernetes", "file" or "lua"
---@field number integer from 1 in the order of start; no other sink of the broadcaster ever has it
---@field api "v1"|"events.k8s.io/v1" by which events are written; with `api = "auto"` the present one
---@field suppressed? evrec.Suppressed[] the latest first; only in `broadcaster:stats`

---The numbers of different reasons and actions of a recorder. 101: more than 100, of which `on_error` is told once.
---@class evrec.RecorderStats
---@field component? string
---@field host? string
---@field instance? string default: the host
---@field reasons integer
---@field actions integer unset ones are not counted

---recorded = broadcast + queued + invalid + the sum of refused, at every moment.
---@class evrec.Stats
---@field recorded integer recording calls
---@field broadcast integer events given to the watches
---@field queued integer events recorded inside a callback, and not yet broadcast
---@field invalid integer recording calls with an invalid argument
---@field refused evrec.Dropped events dropped before any sink
---@field dropped evrec.Dropped events dropped before or in the sinks
---@field watch_dropped integer events dropped by full queues
---@field callback_errors integer callbacks that raised, yielded, or returned a wrong type
---@field untold integer refused calls, lost events and errors that were not printed, as standard error had no room
---@field rate_limited integer this and the next nine: sums over all sinks, the ended ones too
---@field created integer
---@field patched integer
---@field coalesced integer
---@field counted integer
---@field pending integer
---@field spooled integer
---@field forwarded integer
---@field restored integer
---@field retries integer
---@field sinks evrec.SinkStats[] in the order of start, without the ended ones
---@field recorders evrec.RecorderStats[] in the order in which they were made, without the collected ones
---@field share? "seeking"|"worker"|"owner"|"silent" with the option `share`, the part of this process; `"silent"`:
---a worker whose owner does not answer
---@field share_silent_for? number if `share` is `"silent"`, the seconds since the owner's last message
---@field components integer different components of its recorders, the collected ones too; 101: more than 100
---@field ended evrec.SinkCounters sums over the forgotten sinks: stopped, and all their events written or dropped

-- ---- reading events ----

---A source of events: `evrec.store`, `evrec.cluster` or `evrec.lines`. All three answer the same query with the same
---events. Reading waits for files and servers: not for the event loop of nginx or HAProxy.
---@class evrec.Source
local source = {}

---An object by "KIND/NAME", such as "pod/web-0", "po/web-0" or "deployment.apps/web"; or a table, whose kind is
---compared without case. Kinds have kubectl's names: those of built-in kinds are known, a cluster is asked for others.
---Without a cluster an unknown kind is compared as it is, without its group: "widgets.example.com/foo" matches the kind
---"widgets" of any group. The apiVersion counts if the group is given, and for an unknown kind if the version is, as
---recorders may leave it out.
---@alias evrec.ObjectFilter string|evrec.ObjectFilterTable

---@class evrec.ObjectFilterTable
---@field kind? string
---@field api_version? string
---@field namespace? string
---@field name? string
---@field uid? string

---Seconds since 1970; a duration before now, of weeks, days, hours, minutes and seconds ("90m", "2h30m", "7d"); or RFC
---3339, in UTC if the offset is missing, from midnight on if the time of day is.
---@alias evrec.Time number|string

---An event must match all given filters.
---@class evrec.Filters
---@field namespace? string of the event
---@field for_object? evrec.ObjectFilter the object of the event
---@field mentions? evrec.ObjectFilter the object of the event, or its related one
---@field controller? string the reporting component, or if that is unset the source's component
---@field instance? string the reporting instance, or if that is unset the source's host
---@field types? string[] any of these: "Normal", "Warning"
---@field reason? string
---@field action? string
---@field since? evrec.Time the event occurred last at or after this time
---@field before? evrec.Time the event occurred last before this time
---@field field_selector? string as of the Kubernetes API: "type!=Normal,reason=Killing"

---@class evrec.Query: evrec.Filters
---@field order? "newest"|"oldest" by the last occurrence; default: `"newest"`
---@field limit? integer the maximum number of events; default: all

---@class evrec.WatchQuery: evrec.Filters
---@field timeout? number seconds of silence after which the watch ends; default: never

---An iterator of events: `for event, json, deleted in assert(source:query {}) do`. `json` is the text as the source has
---it, with all fields. `deleted` is true, in a watch, if the event was deleted, or expired.
---@alias evrec.Events fun(): evrec.Event?, string?, boolean?

---Returns an iterator of the events that match now. Raises on misuse; the message names the filter. Returns nil,
---message, name if it cannot begin. A later error is raised by the iterator, at the level of the loop. The events are
---read one by one. The matching events of a cluster, at most `limit`, are kept in memory, as they must be sorted; for
---lines an index of them is kept.
---@param query? evrec.Query
---@return evrec.Events?, string? message, string? name
function source:query(query) end

---Returns an iterator of the changes of matching events, from now on: no write after this function has returned is
---missed. Raises and returns as `query`. A watch of a cluster is resumed after disconnections. While it waits, Lua's
---hooks run every 0.2 s, so that Ctrl-C ends it.
---@param query? evrec.WatchQuery
---@return evrec.Events?, string? message, string? name
function source:watch(query) end

---@class evrec.SuppressionQuery
---@field for_object? evrec.ObjectFilter
---@field since? evrec.Time suppressed last at or after this time
---@field before? evrec.Time suppressed first before this time
---@field limit? integer the maximum number of suppressions; default: all

---Occurrences of one reporter, object, type, reason, stage and key that were suppressed within a minute. The stage and
---the cause are those of `explain`; or the stage is "lost": so many notes are missing, perhaps notes of the queried
---object.
---@class evrec.StoredSuppression
---@field object { kind: string, apiVersion: string, namespace: string, name: string, uid: string }
---@field type string
---@field reason string
---@field stage "aggregated"|"rate_limited"|"dropped"|"merged"|"lost"
---@field cause string of "dropped"; of "lost" the kind of the missing notes, "occurrence" or "suppression", which an
---earlier evrec left out; else empty
---@field key string that a callback chose; else empty
---@field component string the source's component; empty if it is unset, or an earlier evrec wrote the note
---@field host string the source's host, likewise
---@field message string of the last occurrence, at most 200 bytes
---@field count integer
---@field first number seconds since 1970
---@field last number

---The suppressions that a store's sink noted, if it has the option `suppressions`, those that began last come first:
---`for s in assert(source:suppressions {}) do`. Raises on misuse, and if the source is no store. Returns nil, message,
---name if it cannot begin.
---@param query? evrec.SuppressionQuery
---@return (fun(): evrec.StoredSuppression?)?, string? message, string? name
function source:suppressions(query) end

---When an event occurred, in the order of time, if the store's sink has the option `occurrences`. `count` occurrences
---have the same `time`, in seconds since 1970. Raises and returns as `suppressions`.
---@param event { namespace: string, name: string } the event's own, not those of its object
---@return (fun(): { namespace: string, name: string, time: number, count: integer }?)?, string? message, string? name
function source:occurrences(event) end

---The events in the file that a store sink writes. Raises on misuse.
---@param options { path: string }
---@return evrec.Source
function evrec.store(options) end

---The events of a cluster, found and reached as by `evrec.sink.kubernetes`. The account needs the verb list on events,
---and watch for a watch. Raises on misuse, and if no API server is found.
---@param options? evrec.KubernetesOptions
---@return evrec.Source
function evrec.cluster(options) end

---The events in a file that a file sink wrote; `path = "-"` is standard input, read once. Empty lines, and lines that a
---full disk cut short, are skipped; any other line that is no event is an error. A watch also follows a file that was
---rotated or truncated. Raises on misuse.
---@param options { path: string }
---@return evrec.Source
function evrec.lines(options) end

-- ---- evrec.haproxy ----

---The module `evrec.haproxy`.
---@class evrec.HAProxy
local haproxy = {}

---@class evrec.RecordServersOptions
---@field object? evrec.Object | fun(backend: string, server: string): evrec.Object? default: the Service that has the
---backend's name. If a function returns nil, no event is recorded; if it raises, the default is used
---@field namespace? string of these Services; default: that of HAProxy's pod, else "default"
---@field interval? number 0.01 to 3600, default 1; seconds between two polls, if HAProxy has no `core.event_sub` (2.8)

---Records an event each time a server goes down (Warning, ServerDown) or comes up (Normal, ServerUp). Call it once, as
---HAProxy loads the script. With lua-load-per-thread only the first thread records. Raises on misuse.
---@param recorder evrec.Recorder
---@param options? evrec.RecordServersOptions
function haproxy.record_servers(recorder, options) end

return evrec
