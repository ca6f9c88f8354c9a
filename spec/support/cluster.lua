-- The API server of the end-to-end specs, seen through kubectl.
local cjson = require "cjson"
local command = require "command"
local mime = require "mime"

local cluster = {
	--- The folder of the cluster that e2e.sh started; nil if $KUBECONFIG is the user's own.
	dir = os.getenv "EVREC_E2E_CLUSTER",
	scratch = os.getenv "EVREC_E2E_DIR" or "/tmp",
}

--- Runs a command to its end; returns what it printed, and whether it succeeded.
---@param words string[]
---@param environment? string shell assignments, put before the command
function cluster.run(words, environment)
	local line = (environment or "") .. " " .. command.line(words)
	-- Lua 5.1's close() does not tell how a command ended.
	local pipe = assert(io.popen(line .. " 2>&1; echo \" exit=$?\""))
	local output = pipe:read "*a"
	pipe:close()
	local text, code = output:match "^(.*) exit=(%d+)\n$"
	return text, code == "0"
end

--- kubectl's output; raises an error if it failed. It takes the context admin of a cluster that e2e.sh started, as the
--- current one may only record.
function cluster.kubectl(...)
	local output, ok = cluster.run { "kubectl", cluster.dir and "--context=admin" or "--v=0", ... }
	assert(ok, output)
	return output
end

--- Creates a namespace with a name that no other run uses, and returns the name.
function cluster.namespace()
	local name = ("evrec-%s-%x"):format(tostring({}):match "0x(%x+)", os.time())
	cluster.kubectl("create", "namespace", name)
	return name
end

function cluster.delete_namespace(name)
	cluster.kubectl("delete", "namespace", name, "--wait=false")
end

--- Deletes all events of a namespace. In etcd if that is ours: the API server takes some ms for each event.
function cluster.clear(namespace)
	if not cluster.dir then
		cluster.kubectl("delete", "--raw", "/api/v1/namespaces/" .. namespace .. "/events")
		return
	end
	local from = "/registry/events/" .. namespace
	local range = cjson.encode { key = mime.b64(from .. "/"), range_end = mime.b64(from .. "0") } -- 0 comes after /
	local url = cluster.read(cluster.dir .. "/etcd.url"):match "%S+"
	local output, ok = cluster.run { "curl", "-sSf", "--noproxy", "*", "-d", range, url .. "/v3/kv/deleterange" }
	assert(ok, output)
end

--- The events of a namespace, as decoded from JSON.
function cluster.events(namespace)
	return cjson.decode(cluster.kubectl("get", "events", "-n", namespace, "-o", "json")).items
end

--- The number of events in a namespace, without decoding them.
function cluster.count(namespace)
	local _, lines = cluster.kubectl("get", "events", "-n", namespace, "-o", "name", "--chunk-size=0"):gsub("\n", "")
	return lines
end

--- The number of requests of a kind that the API server has answered with that status.
function cluster.requests(resource, verb, code)
	local n = 0
	for labels, value in cluster.kubectl("get", "--raw", "/metrics"):gmatch "apiserver_request_total(%b{}) (%S+)" do
		if labels:find(('resource="%s"'):format(resource), 1, true) and labels:find(('verb="%s"'):format(verb), 1, true)
			and labels:find(('code="%d"'):format(code), 1, true) then
			n = n + tonumber(value)
		end
	end
	return n
end

--- The connection to the cluster that e2e.sh started, as options of evrec.sink.kubernetes.
---@param account? "recorder"|"admin"|"nobody" by default the recorder, which may only record
function cluster.connection(account)
	return {
		server = cjson.decode(cluster.read(cluster.dir .. "/kubeconfig.json")).clusters[1].cluster.server,
		token = cluster.read(cluster.dir .. "/" .. (account or "recorder") .. ".token"):match "%S+",
		ca_file = cluster.dir .. "/server-ca.crt",
	}
end

function cluster.read(path)
	local file = assert(io.open(path))
	local text = file:read "*a"
	file:close()
	return text
end

function cluster.write(path, text)
	local file = assert(io.open(path, "w"))
	file:write(text)
	file:close()
end

--- Runs a command of kube/cluster.sh: freeze, thaw or restart the API server; restart takes flags.
function cluster.control(verb, ...)
	local output, ok = cluster.run { "spec/support/kube/cluster.sh", verb, cluster.dir, ... }
	assert(ok, output)
end

return cluster
