-- api = "auto" against a real API server: the API that the account may use.
local cluster = require "cluster"
local evrec = require "evrec"

describe('api = "auto"', function()
	local namespace, errors

	if not cluster.dir then
		pending "skipped: $KUBECONFIG is a cluster with accounts that these specs do not know"
		return
	end

	-- The account "nobody" may do this with events of the API group, in the namespace.
	local function permit(name, verbs, resource)
		cluster.kubectl("create", "role", name, "-n", namespace, "--verb=" .. verbs, "--resource=" .. resource)
		cluster.kubectl("create", "rolebinding", name, "-n", namespace, "--role=" .. name, "--user=nobody")
	end

	-- Records three events about each of so many pods, by that account; returns the stats.
	local function record(n)
		local options = cluster.connection "nobody"
		options.api = "auto"
		errors = {}
		local b = evrec.broadcaster { on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end }
		b:start_recording_to_sink(evrec.sink.kubernetes(options))
		local r = b:new_recorder { component = "auto", host = "here" }
		for i = 1, n do
			for _ = 1, 3 do
				assert.is_true(r:event({ kind = "Pod", namespace = namespace, name = "pod-" .. i }, "Normal", "Auto", "m"))
				if i == 1 then
					assert.is_true(b:flush(10))
				end
			end
		end
		local ok, stats, message = b:shutdown(10)
		assert.is_true(ok, message)
		assert.equal(n, stats.created)
		for _, event in ipairs(cluster.events(namespace)) do
			assert.equal(3, event.series.count)
		end
		assert.equal(n, cluster.count(namespace))
		return stats
	end

	-- The requests of events that the server has served, by API group and verb.
	local function served()
		local n = {}
		for labels, value in cluster.kubectl("get", "--raw", "/metrics"):gmatch "apiserver_request_total(%b{}) (%S+)" do
			if labels:find('resource="events"', 1, true) and labels:find('code="20', 1, true) then
				local key = labels:match 'group="(.-)"' .. " " .. labels:match 'verb="(.-)"'
				n[key] = (n[key] or 0) + tonumber(value)
			end
		end
		return function(key) return n[key] or 0 end
	end

	before_each(function() namespace = cluster.namespace() end)
	after_each(function() cluster.delete_namespace(namespace) end)

	it("is events.k8s.io/v1 for an account that may use it", function()
		permit("both", "create,patch", "events,events.events.k8s.io")
		local before = served()
		record(5)
		assert.same({}, errors)
		local after = served()
		assert.equal(5, after "events.k8s.io POST" - before "events.k8s.io POST")
		assert.equal(0, after " POST" - before " POST")
		assert.equal(0, after " PATCH" - before " PATCH")
	end)

	it("is core/v1 for an account that may not, which is said once", function()
		permit("core", "create,patch", "events")
		local before = served()
		record(5)
		assert.equal(1, #errors)
		assert.matches("create events%.events%.k8s%.io", errors[1])
		assert.matches("core/v1", errors[1])
		local after = served()
		assert.equal(0, after "events.k8s.io POST" - before "events.k8s.io POST")
		assert.equal(5, after " POST" - before " POST")
	end)

	it("is events.k8s.io/v1 for an account that may use nothing else", function()
		permit("new", "create,patch", "events.events.k8s.io")
		record(5)
		assert.same({}, errors)
	end)
end)
