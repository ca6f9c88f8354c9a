-- Reads objects from the API server, by LuaSocket and LuaSec: with the pod's service account inside a cluster, and
-- through `kubectl proxy` outside of one.
local cjson = require "cjson"
local http = require "socket.http"
local https = require "ssl.https"
local ltn12 = require "ltn12"
local socket = require "socket"

http.TIMEOUT, https.TIMEOUT = 10, 10

local service_account = "/var/run/secrets/kubernetes.io/serviceaccount/"

--- The text of a file of the service account; nil outside of a cluster.
local function account(name)
	local file = io.open(service_account .. name)
	local text = file and file:read "*a"
	if file then
		file:close()
	end
	return text
end

local function contains(list, value)
	for _, item in ipairs(list or {}) do
		if item == value then
			return true
		end
	end
	return false
end

-- Makes a TLS connection. LuaSec checks that the cluster's authority has signed the server's certificate, but not for
-- whom: the authority may have signed other certificates, too.
local function verified()
	local connection = https.tcp { verify = "peer", cafile = service_account .. "ca.crt" }()
	local connect = connection.connect
	function connection:connect(host, port)
		connect(self, host, port)
		local names = self.sock:getpeercertificate():extensions()["2.5.29.17"] or {}
		return socket.try(contains(names.iPAddress, host) or contains(names.dNSName, host),
			"the server's certificate is not for " .. host)
	end
	return connection
end

local host, port = os.getenv "KUBERNETES_SERVICE_HOST", os.getenv "KUBERNETES_SERVICE_PORT"
local inside = host and account "token"
if host and host:find(":", 1, true) then
	host = "[" .. host .. "]"
end

local client = {
	--- The namespace of the pod.
	namespace = inside and account "namespace" or "default",
}

--- Lists objects, such as those of "/api/v1/namespaces/default/configmaps".
---@return table[]? objects nil if the server could not be asked, or refused
---@return string? message
function client.list(path)
	local chunks = {}
	local request = { url = "http://127.0.0.1:8001" .. path, sink = ltn12.sink.table(chunks), redirect = false }
	if inside then
		request.url, request.create = ("https://%s:%s%s"):format(host, port, path), verified
		-- Kubernetes replaces the token every hour.
		request.headers = { authorization = "Bearer " .. account "token" }
	end
	local ok, status = http.request(request)
	if not ok then
		return nil, ("%s: %s%s"):format(request.url, status, inside and "" or " (is `kubectl proxy` running?)")
	end
	local decoded, answer = pcall(cjson.decode, table.concat(chunks))
	if status ~= 200 or not decoded then
		return nil, ("%s: %d %s"):format(path, status, decoded and answer.message or "")
	end
	for _, object in ipairs(answer.items) do
		-- A list says once of which kind all its objects are.
		object.kind, object.apiVersion = answer.kind:gsub("List$", ""), answer.apiVersion
	end
	return answer.items
end

return client
