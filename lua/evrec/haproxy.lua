-- evrec.haproxy: events about HAProxy's servers. lua/evrec/meta.lua documents it.
local evrec = require "evrec"
local options = require "evrec.options"

local NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

local function is_recorder(value)
	local ok, method = pcall(function() return value.event end)
	return ok and type(method) == "function"
end

-- A wrong namespace would end the task at the first change of a server.
local function check_namespace(namespace)
	local ok, message = pcall(evrec.reference, { kind = "Service", namespace = namespace })
	if not ok then
		options.fail("option 'namespace': %s", tostring(message):match "namespace: (.*)$" or message)
	end
end

local function checked(given)
	local set = options.checked(given, { interval = "number", object = true, namespace = "string" })
	local interval = set.interval or 1
	if not (interval >= 0.01 and interval <= 3600) then
		options.fail("option 'interval': must be 0.01 to 3600")
	end
	set.interval = interval
	check_namespace(set.namespace)
	local kind = type(set.object)
	if set.object ~= nil and kind ~= "function" then
		local ok, reference = pcall(evrec.reference, set.object)
		if not ok then
			options.fail("option 'object': expected a function or an object: %s", reference)
		end
		set.object = reference
	end
	return set
end

-- The namespace of the pod that HAProxy runs in; else "default".
local function own_namespace()
	local file = io.open(NAMESPACE_FILE)
	local name = file and file:read "*l"
	if file then
		file:close()
	end
	return name or "default"
end

-- Whether a server takes requests, or would if it were not drained.
local function is_up(status)
	return status == "no check" or status:find "^UP" ~= nil or status:find "^NOLB" ~= nil or status:find "^DRAIN" ~= nil
end

-- Why the server has its present state, as HAProxy's statistics page says it.
local function reason_of(stats)
	if stats.status and stats.status:find "^MAINT" then
		return ": " .. stats.status
	elseif not stats.check_desc or tostring(stats.check_status):find "INI$" then
		return ""
	end
	-- HAProxy puts an asterisk before the status while the next check is under way, and sets check_code to 0.
	return (": %s (%s)"):format(stats.check_desc, (tostring(stats.check_status):gsub("^%* ", "")))
end

-- Returns a function that records one change.
local function teller(host, recorder, set)
	local namespace = set.namespace or own_namespace()
	local function service(backend)
		return evrec.reference { kind = "Service", apiVersion = "v1", namespace = namespace, name = backend }
	end
	local function object_of(backend, server)
		if type(set.object) ~= "function" then
			return set.object or service(backend)
		end
		local ok, object = pcall(set.object, backend, server)
		if not ok then
			host.Warning(("evrec.haproxy: option 'object': %s"):format(tostring(object)))
			return service(backend)
		end
		return object
	end
	return function(backend, server, up, reason)
		local object = object_of(backend, server)
		if object ~= nil then
			recorder:event(object, up and "Normal" or "Warning", up and "ServerUp" or "ServerDown",
				("Server %s/%s is %s%s"):format(backend, server, up and "UP" or "DOWN", reason))
		end
	end
end

-- Compares a server's statistics with those of the last poll. HAProxy counts how often a server went down, so a poll
-- also finds changes since the last poll, and those before the first one.
local function compare(last, stats, tell)
	local up, downs = is_up(stats.status), stats.chkdown or 0
	last = last or { up = up or downs > 0, downs = 0 }
	local changes = 2 * math.max(downs - last.downs, 0) + (up and 1 or 0) - (last.up and 1 or 0)
	local state = last.up
	-- -1: the server went down, and the counters were cleared.
	for left = math.abs(changes) - 1, 0, -1 do
		state = not state
		tell(state, left == 0 and reason_of(stats) or "")
	end
	return { up = up, downs = downs }
end

local function poll(host, interval, tell)
	local known = {}
	while true do
		local seen = {}
		for backend, proxy in pairs(host.backends) do
			for name, server in pairs(proxy.servers) do
				local id = backend .. "/" .. name
				seen[id] = compare(known[id], server:get_stats(), function(up, reason)
					tell(backend, name, up, reason)
				end)
				host.yield()
			end
		end
		known = seen
		host.msleep(math.floor(interval * 1000))
	end
end

-- Why the server has its present state; "" if HAProxy does not say so: the server may have been deleted meanwhile, and
-- each call of get_stats raises in HAProxy 2.8.0.
local function present_reason(server)
	local ok, stats = pcall(function() return server:get_stats() end)
	return ok and reason_of(stats) or ""
end

local function subscribe(host, tell)
	host.event_sub({ "SERVER_UP", "SERVER_DOWN" }, function(event, data)
		tell(data.proxy_name, data.name, event == "SERVER_UP", present_reason(data.reference))
	end)
end

local haproxy = {}

function haproxy.record_servers(recorder, given)
	local host = _G.core
	if type(host) ~= "table" or not host.register_task then
		error("evrec.haproxy.record_servers: this is not HAProxy", 2)
	elseif recorder == haproxy then
		error("evrec.haproxy.record_servers: called with ':', use '.'", 2)
	elseif not is_recorder(recorder) then
		error(("evrec.haproxy.record_servers: expected a recorder, got %s"):format(type(recorder)), 2)
	end
	local ok, set = pcall(checked, given)
	if not ok then
		error("evrec.haproxy.record_servers: " .. tostring(set), 2)
	end
	-- With lua-load-per-thread each thread runs the script; one of them records.
	if (host.thread or 0) > 1 then
		return
	end
	local tell = teller(host, recorder, set)
	if host.event_sub then
		subscribe(host, tell)
	else
		host.register_task(function() poll(host, set.interval, tell) end)
	end
end

return haproxy
