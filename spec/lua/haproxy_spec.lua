-- evrec.haproxy with a stand-in for HAProxy: e2e/haproxy_servers_spec.lua starts a real one.
local evrec = require "evrec"
local haproxy = require "evrec.haproxy"

describe("evrec.haproxy.record_servers", function()
	local t, host, task, servers, warnings

	-- Sets what a server's get_stats() returns.
	local function set(name, stats)
		servers[name] = servers[name] or { get_stats = function(self) return self.stats end }
		servers[name].stats = stats
	end

	local function down(chkdown)
		return { status = "DOWN", check_status = "L7STS", check_desc = "Layer7 wrong status",
			chkdown = chkdown }
	end

	local function up(chkdown)
		return { status = "UP", check_status = "* L7OK", check_desc = "Layer7 check passed",
			chkdown = chkdown }
	end

	-- Runs the task until it sleeps.
	local function poll()
		repeat
			local ok, what = coroutine.resume(task)
			assert(ok, what)
		until what == "sleep"
	end

	before_each(function()
		t, servers, task, warnings = evrec.testing.recorder { component = "haproxy" }, {}, nil, {}
		host = {
			thread = 0,
			backends = { shop = { servers = servers } },
			register_task = function(f) task = coroutine.create(f) end,
			yield = function() coroutine.yield "yield" end,
			msleep = function(ms) host.slept = ms coroutine.yield "sleep" end,
			Warning = function(line) warnings[#warnings + 1] = line end,
		}
		_G.core = host
	end)

	after_each(function() _G.core = nil end)

	local DOWN = "Warning ServerDown Server shop/s1 is DOWN: Layer7 wrong status (L7STS)"
	local UP = "Normal ServerUp Server shop/s1 is UP: Layer7 check passed (L7OK)"

	it("records each change once, about the Service that has the backend's name", function()
		haproxy.record_servers(t, { interval = 0.25, namespace = "web" })
		set("s1", up(0))
		poll()
		assert.equal(250, host.slept)
		poll()
		assert.same({}, t:strings())
		set("s1", down(1))
		poll()
		poll()
		assert.same({ DOWN }, t:strings())
		assert.same({ "Service", "web", "shop" },
			{ t.events[1].object.kind, t.events[1].object.namespace, t.events[1].object.name })
		set("s1", up(1))
		poll()
		poll()
		assert.same({ DOWN, UP }, t:strings())
	end)

	it("records the changes between two polls, too", function()
		haproxy.record_servers(t)
		set("s1", up(0))
		poll()
		set("s1", up(2))
		poll()
		local down_between, up_between = "Warning ServerDown Server shop/s1 is DOWN", "Normal ServerUp Server shop/s1 is UP"
		assert.same({ down_between, up_between, down_between, UP }, t:strings())
		t:clear()
		set("s1", down(4))
		poll()
		assert.same({ down_between, up_between, DOWN }, t:strings())
		t:clear()
		set("s1", up(0)) -- somebody cleared the counters
		poll()
		set("s1", down(0))
		poll()
		assert.same({ UP, DOWN }, t:strings())
	end)

	it("records what happened before the first poll", function()
		haproxy.record_servers(t)
		set("s1", down(1))
		poll()
		assert.same({ DOWN }, t:strings())
		t:clear()
		-- Down or in maintenance from the start, as a state file or the configuration says.
		set("s2", { status = "DOWN", chkdown = 0 })
		set("s3", { status = "MAINT", chkdown = 0 })
		poll()
		assert.same({}, t:strings())
	end)

	it("knows the states that a server serves in, and maintenance", function()
		haproxy.record_servers(t)
		set("s1", { status = "no check" })
		poll()
		for _, status in ipairs { "UP 1/3", "NOLB", "DRAIN", "UP" } do
			set("s1", { status = status, chkdown = 0 })
			poll()
		end
		assert.same({}, t:strings())
		set("s1", { status = "MAINT (resolution)", chkdown = 1 })
		poll()
		assert.same({ "Warning ServerDown Server shop/s1 is DOWN: MAINT (resolution)" }, t:strings())
		set("s1", { status = "DOWN 1/2", chkdown = 1 })
		poll()
		assert.equal(1, #t.events)
	end)

	it("subscribes if HAProxy has events", function()
		local events, handler
		host.event_sub = function(names, f) events, handler = names, f end
		haproxy.record_servers(t)
		assert.is_nil(task)
		assert.same({ "SERVER_UP", "SERVER_DOWN" }, events)
		set("s1", down(1))
		handler("SERVER_DOWN", { proxy_name = "shop", name = "s1", reference = servers.s1 })
		handler("SERVER_UP", { proxy_name = "shop", name = "s1" })
		assert.same({ DOWN, "Normal ServerUp Server shop/s1 is UP" }, t:strings())
	end)

	it("records a change whose reason HAProxy fails to tell", function()
		local handler
		host.event_sub = function(_, f) handler = f end
		haproxy.record_servers(t)
		local function get_stats() error "table index is nil" end
		handler("SERVER_DOWN", { proxy_name = "shop", name = "s1", reference = { get_stats = get_stats } })
		assert.same({ "Warning ServerDown Server shop/s1 is DOWN" }, t:strings())
	end)

	it("asks a function for the object, and takes the default if that raises", function()
		local answers = {
			s1 = function() return { kind = "Pod", namespace = "web", name = "shop-1" } end,
			s2 = function() error "boo" end,
			s3 = function() return nil end,
		}
		haproxy.record_servers(t, { object = function(backend, server)
			assert(backend == "shop")
			return answers[server]()
		end })
		for name in pairs(answers) do
			set(name, up(0))
		end
		poll()
		for name in pairs(answers) do
			set(name, down(1))
		end
		poll()
		local names = {}
		for _, event in ipairs(t.events) do
			names[event.object.name] = event.object.kind
		end
		assert.same({ shop = "Service", ["shop-1"] = "Pod" }, names)
		assert.equal(1, #warnings)
		assert.matches("option 'object': .*boo", warnings[1])
	end)

	it("takes one object for all", function()
		haproxy.record_servers(t, { object = { kind = "Pod", namespace = "web", name = "haproxy-0" } })
		set("s1", up(0))
		poll()
		set("s1", down(1))
		poll()
		assert.equal("haproxy-0", t.events[1].object.name)
	end)

	it("runs on one thread only", function()
		host.thread = 2
		haproxy.record_servers(t)
		assert.is_nil(task)
		host.thread = 1
		haproxy.record_servers(t)
		assert.is_not_nil(task)
	end)

	it("refuses misuse", function()
		local function refused(pattern, ...)
			local ok, message = pcall(haproxy.record_servers, ...)
			assert.is_false(ok)
			assert.matches(pattern, message)
		end
		refused("called with ':', use '%.'", haproxy, t)
		refused("expected a recorder, got nil", nil)
		refused("expected a recorder, got table", {})
		refused("expected a recorder, got userdata", t.broadcaster)
		refused("option 'namespace': not a namespace's name", t, { namespace = "My_Shop" })
		refused("option 'namespace': not a namespace's name", t, { namespace = ("x"):rep(300) })
		refused("unknown option 'intervall'", t, { intervall = 1 })
		refused("option 'interval': must be", t, { interval = 0 })
		refused("option 'interval': must be", t, { interval = 0 / 0 })
		refused("option 'object': expected a function or an object", t, { object = 5 })
		_G.core = nil
		refused("not HAProxy", t)
	end)
end)
