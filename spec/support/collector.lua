-- The collector of the end-to-end specs and drills, see otel/collector.sh: what it is told to do, and what it received.
local cjson = require "cjson"
local cluster = require "cluster"

local collector = {
	--- The folder of the collector that e2e.sh or drill.sh started.
	dir = os.getenv "EVREC_E2E_COLLECTOR",
	control_script = "spec/support/otel/collector.sh",
}

--- The path of the program, which otel/build.sh has built.
function collector.program()
	return cluster.run { "bash", "-c", ". spec/support/otel/place.sh && echo $otel_bin/collector" }:match "%S+"
end

local records = collector.dir and collector.dir .. "/records"

--- The URL of an endpoint of the collector.
---@param name "PLAIN"|"TLS"|"SMALL"|"SMALL_TLS"|"RELAY"
function collector.endpoint(name)
	return assert(cluster.read(collector.dir .. "/env"):match("EVREC_OTLP_" .. name .. "=(%S+)"))
end

--- Runs a command of collector.sh: freeze, thaw, kill or restart one of the servers.
---@param server? "collector"|"backend"
function collector.control(verb, server)
	local output, ok = cluster.run { collector.control_script, verb, collector.dir, server or "collector" }
	assert(ok, output)
end

--- A place in what was received, from which `received` reads on.
function collector.mark()
	local file = assert(io.open(records))
	local size = file:seek "end"
	file:close()
	return size
end

local function value_of(value)
	return value.intValue and tonumber(value.intValue) or value.stringValue
end

local function table_of(attributes)
	local values = {}
	for _, attribute in ipairs(attributes or {}) do
		assert(values[attribute.key] == nil, "an attribute is there twice: " .. attribute.key)
		values[attribute.key] = value_of(attribute.value)
	end
	return values
end

-- A record as the collector decoded it. Unset fields of protobuf's JSON are not there.
local function record_of(line)
	local of_resource = line.resourceLogs[1]
	local of_scope = of_resource.scopeLogs[1]
	local log = of_scope.logRecords[1]
	return {
		resource = table_of(of_resource.resource.attributes),
		attributes = table_of(log.attributes),
		scope = of_scope.scope.name,
		time = log.timeUnixNano, -- strings of ns: numbers of some Luas would be rounded
		observed = log.observedTimeUnixNano,
		severity = log.severityNumber,
		severity_text = log.severityText,
		body = log.body and log.body.stringValue,
	}
end

--- What was received since a mark: a list of records, and a list of requests with their number of records and headers.
---@param from integer
function collector.received(from)
	local file = assert(io.open(records))
	file:seek("set", from)
	local list, requests = {}, {}
	for line in file:lines() do
		local decoded = cjson.decode(line)
		if decoded.request then
			requests[#requests + 1] = decoded.request
		else
			list[#list + 1] = record_of(decoded)
		end
	end
	file:close()
	return list, requests
end

return collector
