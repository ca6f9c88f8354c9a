-- The API server is told by its own flags to be difficult.
local cjson = require "cjson"
local cluster = require "cluster"

--- Asks the server `times` times, one after the other; returns the HTTP version, and how many connections that took.
local function probe(times)
	local connection = cluster.connection()
	-- With the token: the server closes the connection of who is anonymous after each answer.
	local output, ok = cluster.run {
		"curl", "-s", "--http2", "--cacert", connection.ca_file, "-H", "Authorization: Bearer " .. connection.token,
		"-o", "/dev/null", "-w", "%{http_version} %{num_connects}\n",
		("%s/version?[1-%d]"):format(connection.server, times),
	}
	assert(ok, output)
	local version, connects = nil, 0
	for v, n in output:gmatch "(%S+) (%d+)\n" do
		version, connects = v, connects + tonumber(n)
	end
	return version, connects
end

--- Two thousand events, scaled, as fast as the server takes them; never so many at once that evrec's tables grow.
local function burst(d)
	for _ = 1, math.max(1, d:scaled(5)) do
		d:burst(400)
		d:calm()
	end
end

local admission = cluster.scratch .. "/admission.json"

return {
	{ name = "connections given up at random (GOAWAY)", flags = { "--goaway-chance=0.02" }, perform = function(d)
		local version, connects = probe(1000)
		d:expect(version == "2" and connects > 1, "the server gave up no connection")
		d:record(15)
		burst(d)
	end },
	{ name = "HTTP/1.1 alone", flags = { "--disable-http2-serving" }, perform = function(d)
		d:expect(probe(1) == "1.1", "the server speaks HTTP/2")
		d:record(10)
		burst(d)
	end },
	{ name = "HTTP/2, then HTTP/1.1 alone, then HTTP/2", perform = function(d)
		d:expect(probe(1) == "2", "the server does not speak HTTP/2")
		d:record(3)
		d:cluster("restart", "--disable-http2-serving")
		d:expect(probe(1) == "1.1", "the server still speaks HTTP/2")
		d:record(5)
		d:cluster "restart"
		d:record(3)
	end },
	{
		name = "50 events a second admitted (EventRateLimit)",
		flags = { "--enable-admission-plugins=EventRateLimit", "--admission-control-config-file=" .. admission },
		before = function()
			cluster.write(admission, cjson.encode {
				apiVersion = "apiserver.config.k8s.io/v1", kind = "AdmissionConfiguration",
				plugins = { { name = "EventRateLimit", configuration = {
					apiVersion = "eventratelimit.admission.k8s.io/v1alpha1", kind = "Configuration",
					limits = { { type = "Server", qps = 50, burst = 50 } },
				} } },
			})
		end,
		perform = function(d)
			d:record(10)
			d:expect(cluster.requests("events", "POST", 429) > 0, "the server refused nothing")
		end,
	},
}
