-- Events of all shapes as log records, which a real OpenTelemetry collector decodes: field by field, each once. Each
-- seventh event happens twice.
local collector = require "collector"
local event_shapes = require "event_shapes"
local evrec = require "evrec"

if not collector.dir then
	describe("a collector", function()
		pending("skipped: `make e2e` starts one")
	end)
	return
end

-- Of Lua 5.4; the other Luas send a tenth.
local events = tonumber(os.getenv "EVREC_OTLP_EVENTS") or 50000
if _VERSION ~= "Lua 5.4" then
	events = math.ceil(events / 10)
end

describe("a record", function()
	local severities = { Normal = 9, Warning = 13 }

	-- The record that the collector must decode: the event as a watch tells of it, at `seconds` and half a second, with
	-- the count 1.
	local function expected_of(event, seconds)
		local object = event.involvedObject
		return {
			resource = {
				["service.name"] = "spec",
				["k8s.object.kind"] = object.kind, ["k8s.object.name"] = object.name,
				["k8s.object.uid"] = object.uid, ["k8s.object.fieldpath"] = object.fieldPath,
				["k8s.object.api_version"] = object.apiVersion,
				["k8s.object.resource_version"] = object.resourceVersion,
				["k8s.namespace.name"] = object.namespace, ["k8s.node.name"] = event.source.host,
			},
			attributes = {
				["k8s.event.reason"] = event.reason, ["k8s.event.action"] = event.action,
				["k8s.event.name"] = event.metadata.name, ["k8s.event.count"] = 1,
				["k8s.event.start_time"] = event.firstTimestamp,
				reporting_controller = event.reportingComponent, reporting_instance = event.reportingInstance,
			},
			scope = "evrec",
			time = ("%d500000000"):format(seconds),
			severity = severities[event.type], severity_text = event.type, body = event.message or "",
		}
	end

	-- Emits event number i, perhaps twice; returns the records that may be received, by count: of two the second must be.
	-- Nil: a recorder refuses its shape.
	local function emit(recorder, watch, i)
		local shape, seconds = event_shapes.event(i, "shop", 1700000000), 1700000000 + i
		local object = shape.involvedObject
		object.name = ("%s-%d"):format(object.name, i)
		object.uid, object.resourceVersion = "uid-" .. i, i % 3 == 0 and tostring(i) or nil
		if object.kind == "" then
			return nil
		end
		local wanted = { told = 0 }
		for count = 1, i % 7 == 0 and 2 or 1 do
			assert(recorder:emit {
				regarding = object, related = shape.related, type = shape.type, reason = shape.reason, action = shape.action,
				note = shape.message, labels = shape.metadata.labels, annotations = shape.metadata.annotations,
				timestamp = seconds + count - 0.5,
			})
			wanted[count] = expected_of(watch:next():to_table(), seconds + count - 1)
			for _, name in ipairs { "k8s.event.name", "k8s.event.start_time" } do
				wanted[count].attributes[name] = wanted[1].attributes[name]
			end
			wanted[count].attributes["k8s.event.count"] = count
		end
		return wanted
	end

	local function differs(wanted, got, path, differences)
		for key, value in pairs(wanted) do
			if type(value) == "table" then
				differs(value, got[key], key .. ".", differences)
			elseif got[key] ~= value then
				differences[#differences + 1] = ("%s%s: %q, got %q"):format(path, key, value, tostring(got[key]))
			end
		end
		for key in pairs(got) do
			if wanted[key] == nil then
				differences[#differences + 1] = path .. key .. " is too much"
			end
		end
	end

	-- Compares the records with the expected ones by event name and count, and notes in these the count that was `told`.
	-- Returns the differences.
	local function compare(records, expected)
		local differences = {}
		for _, got in ipairs(records) do
			local name, count = got.attributes["k8s.event.name"], got.attributes["k8s.event.count"]
			local wanted = expected[name]
			if wanted and wanted[count] and count > wanted.told then
				assert.truthy(got.observed > got.time)
				got.observed, got.body = nil, got.body or ""
				differs(wanted[count], got, name .. ": ", differences)
				wanted.told = count
			else
				differences[#differences + 1] = ("%s %s is there twice, or too late, or was never recorded"):format(name, count)
			end
		end
		for name, wanted in pairs(expected) do
			if wanted.told ~= #wanted then
				differences[#differences + 1] = ("%s %d is missing"):format(name, #wanted)
			end
		end
		return table.concat(differences, "\n", 1, math.min(#differences, 10))
	end

	for _, encoding in ipairs { "protobuf", "json" } do
		for _, compression in ipairs { "gzip", "none" } do
			it(("has all fields of its event, and each comes once: %s, %s"):format(encoding, compression), function()
				local from, expected, n, errors = collector.mark(), {}, 0, {}
				local broadcaster = evrec.broadcaster {
					correlator = { burst_size = 1000000 }, on_error = function(message) errors[#errors + 1] = message end,
				}
				finally(function() broadcaster:shutdown(1) end)
				broadcaster:start_recording_to_sink(evrec.sink.otlp {
					endpoint = collector.endpoint "PLAIN", encoding = encoding, compression = compression, min_interval = 0,
					resource = { ["service.name"] = "spec" }, max_pending = events, max_pending_bytes = 1e9,
				})
				local watch = broadcaster:watch()
				local recorders = {
					broadcaster:new_recorder { component = "spec" },
					broadcaster:new_recorder { component = "spec", host = "node-1", instance = "spec-7" },
				}
				for i = 1, events do
					local wanted = emit(recorders[i % 2 + 1], watch, i)
					if wanted then
						n, expected[wanted[1].attributes["k8s.event.name"]] = n + 1, wanted
					end
				end
				assert.truthy((broadcaster:shutdown(120)))
				local records, requests = collector.received(from)
				assert.equal("", compare(records, expected))
				assert.truthy(#requests >= n / 512)
				assert.same({}, errors)
			end)
		end
	end
end)
