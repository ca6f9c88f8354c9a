-- A real HAProxy, confined as Debian configures it, with a pod's service account. The token is renewed outside of its
-- chroot as kubelet does it: a new folder, and one rename of the link `..data` that leads to it.
local cluster = require "cluster"
local host_configuration = require "host_configuration"
local quickstart = require "quickstart"

local function skip(reason)
	describe("a token that is renewed outside of HAProxy's chroot", function()
		pending("skipped: " .. reason)
	end)
end

if _VERSION ~= "Lua 5.4" then
	return skip "HAProxy brings its own Lua; the specs on Lua 5.4 start it"
elseif cluster.run { "id", "-u" } ~= "0\n" then
	return skip "not root, who alone may start HAProxy as another user"
elseif not cluster.dir then
	return skip "$KUBECONFIG is the user's own: its server may not be at an address alone"
end

local SCRIPT = [[
local evrec = require "evrec"
local broadcaster = evrec.broadcaster {}
broadcaster:start_recording_to_sink(evrec.sink.kubernetes { service_account = %q })
local recorder = broadcaster:new_recorder { component = "chroot" }
core.register_action("tell", { "http-req" }, function(txn)
	recorder:event({ kind = "Pod", namespace = %q, name = txn.sf:path():sub(2) }, "Normal", "Renewed", "m")
end)
]]

local CONFINED = "\thard-stop-after 10s\n\tuser haproxy\n\tgroup haproxy\n\tchroot %s\n\tlua-load %s"

local ROOT = "/var/lib/haproxy"

describe("a token that is renewed outside of HAProxy's chroot", function()
	local namespace, volume, renewals

	before_each(function()
		namespace, renewals = cluster.namespace(), 0
		cluster.kubectl("create", "rolebinding", "recorder", "-n", namespace, "--clusterrole=recorder",
			"--serviceaccount=" .. namespace .. ":proxy")
		for _, account in ipairs { "proxy", "stranger" } do
			cluster.kubectl("create", "serviceaccount", account, "-n", namespace)
		end
		-- The server takes a moment to know the right, and a sink is slow to try again where it was forbidden.
		quickstart.await(function()
			return cluster.run { "kubectl", "--context=admin", "auth", "can-i", "create", "events", "-n", namespace, "--as",
				("system:serviceaccount:%s:proxy"):format(namespace) } == "yes\n"
		end)
		volume = cluster.run { "mktemp", "-d" }:match "%S+"
		cluster.run { "chmod", "755", volume }
	end)

	after_each(function()
		cluster.delete_namespace(namespace)
		cluster.run { "rm", "-rf", volume }
	end)

	local function token(account)
		return (cluster.kubectl("create", "token", account, "-n", namespace):gsub("%s", ""))
	end

	--- Replaces the token as kubelet does. The earlier folder is gone afterwards.
	local function renew(text)
		renewals = renewals + 1
		local said, ok = cluster.run { "bash", "-euc", [[
			cd "$0"; umask 022; old=$(readlink ..data || true); new=..2023_11_14_22_13_20.$1
			mkdir "$new"; printf %s "$2" >"$new/token"; cp "$3" "$new/ca.crt"
			ln -s "$new" ..data_tmp; mv -T ..data_tmp ..data
			for name in token ca.crt; do [ -L "$name" ] || ln -s "..data/$name" "$name"; done
			[ -z "$old" ] || rm -r "$old"]], volume, tostring(renewals), text, cluster.dir .. "/server-ca.crt" }
		assert(ok, said)
	end

	--- Checks that no path leads this process to the token: it is HAProxy's worker, in its chroot.
	local function check_confined(pid)
		assert.equal(ROOT .. "\n", (cluster.run { "readlink", "/proc/" .. pid .. "/root" }))
		assert.equal(cluster.run { "id", "-u", "haproxy" }, (cluster.run { "stat", "-c", "%u", "/proc/" .. pid }))
		assert.is_false(select(2, cluster.run { "test", "-e", ROOT .. volume }))
	end

	local function follow(mode)
		local port = quickstart.free_port()
		local script, path = cluster.scratch .. "/chroot.lua", cluster.scratch .. "/chroot.cfg"
		finally(function() os.remove(script) os.remove(path) end)
		renew(token "proxy")
		cluster.write(script, SCRIPT:format(volume, namespace))
		cluster.write(path, host_configuration.haproxy(port, CONFINED:format(ROOT, script), "tell", 503))
		local address, number = cluster.connection().server:match "^https://(.-):(%d+)$"
		local stop, pid, log = quickstart.start(cluster.scratch, ("haproxy %s -db -f %s"):format(mode, path),
			("env KUBERNETES_SERVICE_HOST=%s KUBERNETES_SERVICE_PORT=%s %s"):format(address, number,
				quickstart.with_evrec "5.3"))
		quickstart.await_port(port)
		check_confined(mode == "-W" and cluster.run { "pgrep", "-P", pid }:match "%d+" or pid)

		local function record(name)
			cluster.run { "curl", "-s", "-o", "/dev/null", ("http://127.0.0.1:%d/%s"):format(port, name) }
		end
		local function await_written(name)
			quickstart.await(function()
				for _, event in ipairs(cluster.events(namespace)) do
					if event.involvedObject.name == name then
						return event.count == 1
					end
				end
			end)
		end
		--- Records one event after the other until the log has the text; returns the last event's name. The first ones may
		--- be written with the token before, as the file is looked at once a second.
		local function record_until(text)
			local n = 0
			return quickstart.await(function()
				n = n + 1
				record(("%d-with-token-%d"):format(n, renewals))
				return cluster.read(log):find(text, 1, true) and ("%d-with-token-%d"):format(n, renewals)
			end)
		end

		record "with-token-1"
		await_written "with-token-1"
		renew "not-of-this-server"
		local waiting = record_until "unauthorized"
		renew(token "proxy")
		await_written(waiting)
		-- The server names the account, so the new token is in use, though the old one is good.
		renew(token "stranger")
		record_until(("system:serviceaccount:%s:stranger"):format(namespace))
		stop "USR1"
	end

	it("is used by a process", function() follow "" end)

	it("is used by a master's worker", function() follow "-W" end)
end)
