-- The quick start of the operator, followed as its README tells; and its Deployment's command as process 1, with the
-- service account that operator.yaml makes.
local cjson = require "cjson"
local cluster = require "cluster"
local lyaml = require "lyaml"
local quickstart = require "quickstart"

local function skip(reason)
	describe("the operator", function()
		pending("skipped: " .. reason)
	end)
end

if _VERSION ~= "Lua 5.4" then
	return skip "its Deployment names Lua 5.4"
elseif not cluster.dir then
	return skip "it writes into the namespace default, and $KUBECONFIG is the user's own"
end

local folder = cluster.scratch .. "/operator"
local readme = folder .. "/examples/operator/README.md"

--- The sum of the counts of the operator's events with that reason and message.
local function occurrences(reason, message)
	return quickstart.occurrences("number-operator", function(event)
		return event.reason == reason and event.message == message and event.involvedObject.name == "settings"
			and event.involvedObject.kind == "ConfigMap"
	end)
end

-- The README shows this message.
local MESSAGE = "timeout: expected a number, got 'soon'"

local function bad() return occurrences("BadValue", MESSAGE) end
local function good() return occurrences("Reconciled", "All values are numbers") end

--- Runs one of the README's commands for kubectl as the cluster's administrator.
local function kubectl(beginning, more)
	local text, ok = quickstart.run(folder, quickstart.command(readme, "kubectl " .. beginning) .. " --context=admin "
		.. (more or ""))
	assert(ok, text)
	return text
end

--- Runs the README's command for kubectl inside the text, which mends the value.
local function mend()
	local command = cluster.read(readme):match "\n`(kubectl patch [^`]*)`"
	local text, ok = quickstart.run(folder, command .. " --context=admin")
	assert(ok, text)
end

describe("the operator", function()
	local port
	setup(function()
		port = quickstart.copy(folder, "operator", {}, { 8001 })[8001]
		local text, ok = quickstart.run(quickstart.here, "make -s install DESTDIR=" .. folder .. "/pod")
		assert(ok, text)
	end)
	before_each(function()
		cluster.clear "default"
		kubectl "apply -f examples/operator/settings.yaml"
	end)

	it("is accepted by an API server, and keeps the strictest of its standards for pods", function()
		cluster.kubectl("label", "--overwrite", "namespace", "default", "pod-security.kubernetes.io/warn=restricted")
		finally(function()
			cluster.kubectl("label", "namespace", "default", "pod-security.kubernetes.io/warn-")
		end)
		local said = kubectl("apply -f examples/operator/operator.yaml", "--dry-run=server")
		local taken = {}
		for name, more in said:gmatch "(%S+) %l+ %(server dry run%)([^\n]*)\n" do
			taken[#taken + 1] = name .. more
		end
		table.sort(taken)
		assert.same({ "deployment.apps/number-operator", "role.rbac.authorization.k8s.io/number-operator",
			"rolebinding.rbac.authorization.k8s.io/number-operator", "serviceaccount/number-operator" }, taken)
		assert.is_nil(said:find("Warning", 1, true), said)
	end)

	it("outside of a cluster reads through kubectl proxy", function()
		local config = folder .. "/admin.yaml"
		cluster.write(config, cluster.kubectl("config", "view", "--raw", "--flatten", "--minify"))
		local stop_proxy = quickstart.start(folder, quickstart.command(readme, "kubectl proxy "):gsub(" &$", ""),
			"env KUBECONFIG=" .. config)
		quickstart.await_port(port)
		local change, command = quickstart.command(readme, "cd "):match "^cd (%S+) && (.*)$"
		local stop = quickstart.start(folder .. "/" .. change, command, ("%s KUBECONFIG=%s INTERVAL=0.2"):format(
			quickstart.with_evrec "5.4", config))
		local ok, why = pcall(quickstart.await, function() return bad() > 0 end)
		local said = stop "INT"
		stop_proxy "TERM"
		assert.is_true(ok, tostring(why) .. said)
		assert.equal("", said)
		assert.truthy(cluster.read(readme):find("Warning   BadValue   configmap/settings   " .. MESSAGE, 1, true))
	end)

	describe("in a pod", function()
		if not select(2, cluster.run { "unshare", "--mount", "--pid", "--fork", "true" }) then
			return pending "skipped: no right to make a process 1 (unshare --pid)"
		end

		local documents, container, spec
		setup(function()
			documents = lyaml.load(cluster.read(folder .. "/examples/operator/operator.yaml"), { all = true })
			for _, document in ipairs(documents) do
				if document.kind == "Deployment" then
					spec = document.spec.template.spec
					container = spec.containers[1]
				else
					local path = folder .. "/document.json"
					cluster.write(path, cjson.encode(document))
					cluster.kubectl("apply", "-f", path)
				end
			end
			local account = folder .. "/pod/var/run/secrets/kubernetes.io/serviceaccount"
			local user = spec.securityContext.runAsUser
			local text, ok = cluster.run { "bash", "-euc", [[mkdir -p "$0" "$1$2" "$1$3"
				cp "$4"/*.lua "$1$2"; cp "$5" "$0/ca.crt"; chown "$6:$6" "$1$3"; chmod -R go+rX "$1"]],
				account, folder .. "/pod", container.workingDir, container.volumeMounts[1].mountPath,
				folder .. "/examples/operator", cluster.dir .. "/server-ca.crt", user }
			assert(ok, text)
			cluster.write(account .. "/namespace", "default")
			cluster.write(account .. "/token", (cluster.kubectl("create", "token", spec.serviceAccountName):gsub("%s", "")))
			cluster.run { "chmod", "-R", "go+rX", folder .. "/pod/var/run" }
		end)

		--- Starts the container; returns what quickstart.start returns, with process 1 as the process that is stopped.
		---@param other_host? string another name of the server than its certificate has
		local function start(other_host)
			local host, port_of_server = cluster.connection().server:match "^https://([^:]+):(%d+)$"
			local words = { quickstart.here .. "/spec/support/pod.sh", folder .. "/pod", spec.securityContext.runAsUser,
				container.workingDir, "KUBERNETES_SERVICE_HOST=" .. (other_host or host),
				"KUBERNETES_SERVICE_PORT=" .. port_of_server, "INTERVAL=0.2" }
			for _, variable in ipairs(container.env) do
				words[#words + 1] = variable.name .. "=" .. variable.value
			end
			for _, word in ipairs(container.command) do
				words[#words + 1] = word
			end
			local stop, outer = quickstart.start(folder, table.concat(words, " "))
			return function(signal)
				return stop(signal, (cluster.run { "pgrep", "-P", outer }):match "%d+")
			end
		end

		it("reads and records with its own rights, and ends on SIGTERM in order", function()
			local stop = start()
			local ok, why = pcall(function()
				quickstart.await(function() return bad() >= 3 end)
				mend()
				quickstart.await(function() return good() == 1 end)
				kubectl "apply -f examples/operator/settings.yaml"
			end)
			local said, code = stop "TERM"
			assert.is_true(ok, tostring(why) .. said)
			assert.equal("", said)
			assert.equal("143", code) -- 128 + SIGTERM, as process 1 cannot die by a signal of its own
		end)

		it("asks no server whose certificate names another host", function()
			local stop = start "127.1" -- 127.0.0.1, under a name that the certificate does not have
			cluster.run { "sleep", "1" }
			local said = stop "TERM"
			assert.matches("operator: .*the server's certificate is not for 127%.1\n", said)
		end)
	end)
end)
