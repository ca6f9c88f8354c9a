-- A real HAProxy, confined as Debian configures it, with a kubeconfig whose server has a host name. The name is in a
-- file /etc/hosts that HAProxy alone sees, and that its chroot lacks.
local cluster = require "cluster"
local host_configuration = require "host_configuration"
local quickstart = require "quickstart"

local function skip(reason)
	describe("a server's host name in HAProxy's chroot", function()
		pending("skipped: " .. reason)
	end)
end

if _VERSION ~= "Lua 5.4" then
	return skip "HAProxy brings its own Lua; the specs on Lua 5.4 start it"
elseif cluster.run { "id", "-u" } ~= "0\n" then
	return skip "not root, who alone may start HAProxy as another user"
elseif not cluster.dir then
	return skip "$KUBECONFIG is the user's own: its server's certificate may have no name"
elseif not select(2, cluster.run { "unshare", "-m", "true" }) then
	return skip "no mount namespace can be made"
end

local SCRIPT = [[
local evrec = require "evrec"
local broadcaster = evrec.broadcaster {}
broadcaster:start_recording_to_sink(evrec.sink.kubernetes { kubeconfig = %q })
local recorder = broadcaster:new_recorder { component = "chroot" }
core.register_action("tell", { "http-req" }, function(txn)
	recorder:event({ kind = "Pod", namespace = "default", name = txn.sf:path():sub(2) }, "Normal", "Named", "m")
end)
]]

local CONFINED = "user haproxy\n\tgroup haproxy\n\tchroot /var/lib/haproxy\n\tlua-load "

-- Not "localhost", which libcurl itself knows. The server's certificate has this name. Nothing listens at ::1.
local NAME = "kubernetes.default.svc"
local HOSTS = "::1 " .. NAME .. "\n127.0.0.1 " .. NAME .. "\n"

describe("a server's host name in HAProxy's chroot", function()
	local function path(name)
		local made = cluster.scratch .. "/named." .. name
		finally(function() os.remove(made) end)
		return made
	end

	before_each(function() cluster.clear "default" end)

	local function follow(mode)
		local port = quickstart.free_port()
		local hosts, mount, config, script, cfg = path "hosts", path "sh", path "kubeconfig", path "lua", path "cfg"
		local text, named = cluster.read(cluster.dir .. "/kubeconfig.json")
			:gsub("https://127%.0%.0%.1:", "https://" .. NAME .. ":")
		assert.equal(1, named)
		cluster.write(hosts, HOSTS)
		cluster.write(mount, [[mount --bind "$1" /etc/hosts && exec "${@:2}"]])
		cluster.write(config, text)
		cluster.write(script, SCRIPT:format(config))
		cluster.write(cfg, host_configuration.haproxy(port, "\thard-stop-after 10s\n\t" .. CONFINED .. script, "tell", 503))
		local stop, _, log = quickstart.start(cluster.scratch, ("haproxy %s -db -f %s"):format(mode, cfg),
			("unshare -m bash %s %s %s"):format(mount, hosts, quickstart.with_evrec "5.3"))
		quickstart.await_port(port)
		cluster.run { "curl", "-s", "-o", "/dev/null", ("http://127.0.0.1:%d/by-name"):format(port) }
		quickstart.await(function()
			local events = cluster.events "default"
			assert.is_nil(cluster.read(log):find("evrec: ", 1, true), cluster.read(log))
			return #events == 1 and events[1].involvedObject.name == "by-name"
		end)
		local said = stop "USR1"
		assert.is_nil(said:find("evrec: ", 1, true), said)
	end

	it("is known to a process", function() follow "" end)

	it("is known to a master's worker", function() follow "-W" end)
end)
