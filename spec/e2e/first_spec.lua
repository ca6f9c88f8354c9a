-- examples/first.lua against a real API server: it ends well, or says what is wrong and how many events that cost.
local cjson = require "cjson"
local cluster = require "cluster"

describe("the first script", function()
	if not cluster.dir then
		pending "skipped: needs the accounts of a cluster that e2e.sh started"
		return
	end

	--- Runs the script, with replacements in its text and a kubeconfig that `change` has changed. Returns what it printed,
	--- on standard output and standard error, and whether its exit code was 0.
	local function run(replacements, change)
		local text = cluster.read "examples/first.lua"
		for from, to in pairs(replacements) do
			local replaced, n = text:gsub(from, to)
			assert.equal(1, n)
			text = replaced
		end
		local config = cjson.decode(cluster.read(cluster.dir .. "/kubeconfig.json"))
		local script, path, out = cluster.scratch .. "/first.lua", cluster.scratch .. "/first.json",
			cluster.scratch .. "/first.out"
		change(config)
		cluster.write(script, text)
		cluster.write(path, cjson.encode(config))
		local lua = _G.jit and "luajit" or ("lua" .. _VERSION:match "%d%.%d")
		local errors, ok = cluster.run({ "bash", "-c", ("exec %s %s >%s"):format(lua, script, out) },
			"env KUBECONFIG=" .. path)
		for _, user in ipairs(config.users) do
			if user.user.token then
				assert.is_nil(errors:find(user.user.token, 1, true))
			end
		end
		return cluster.read(out), errors, ok
	end

	local function unchanged() end

	before_each(function() cluster.clear "default" end)

	it("writes two events, and says so", function()
		local output, errors, ok = run({}, unchanged)
		assert.equal("", errors)
		assert.equal("written\n", output)
		assert.is_true(ok)
		assert.equal(2, cluster.count "default")
	end)

	--- The lines of a failure, each a pattern. Either event may be the example: the server answers in any order.
	local function fails(replacements, change, ...)
		local output, errors, ok = run(replacements, change)
		assert.is_false(ok)
		assert.equal("", output)
		for _, pattern in ipairs { ... } do
			assert.matches(pattern, errors)
		end
		local _, count = errors:gsub("\n", "")
		assert.equal(select("#", ...), count, errors)
	end

	it("has not the right to record", function()
		fails({}, function(config) config["current-context"] = "nobody" end,
			"^evrec: 2 events were not written: forbidden: POST: 403: events is forbidden: User \"nobody\" cannot create "
			.. "resource \"events\" in API group \"\" in the namespace \"default\"; e.g. %u%l+ %a+ about ConfigMap "
			.. "default/settings: [^\n]+\n$")
	end)

	it("has a wrong token", function()
		fails({}, function(config)
			for _, user in ipairs(config.users) do
				user.user = { token = "a-wrong-token" }
			end
		end, "^evrec: the sink kubernetes: unauthorized: POST: 401: Unauthorized %(is retried%)\n",
			"\nevrec: 2 events were not written: closed; e.g. %u%l+ %a+ about [^\n]+; the last error was "
			.. "unauthorized: POST: 401: Unauthorized\n$")
	end)

	it("has the certificate of another authority", function()
		fails({}, function(config)
			for _, entry in ipairs(config.clusters) do
				entry.cluster["certificate-authority-data"] = nil
				entry.cluster["certificate-authority"] = cluster.dir .. "/client.crt"
			end
		end, "^evrec: the sink kubernetes: transport: POST: [^\n]*certificate[^\n]* %(is retried%)\n",
			"\nevrec: 2 events were not written: closed; [^\n]+; the last error was transport: POST: [^\n]*certificate")
	end)

	it("finds no server", function()
		fails({}, function(config)
			for _, entry in ipairs(config.clusters) do
				entry.cluster.server = "https://127.0.0.1:1"
			end
		end, "^evrec: the sink kubernetes: transport: POST: Failed to connect to 127.0.0.1 port 1 [^\n]* %(is retried%)\n",
			"\nevrec: 2 events were not written: closed; [^\n]+; the last error was transport: POST: Failed to connect")
	end)

	it("records in a namespace that does not exist", function()
		fails({ ['namespace = "default"'] = 'namespace = "missing"' }, unchanged,
			"^evrec: 2 events were not written: not_found: POST: 404: namespaces \"missing\" not found; e.g. %u%l+ %a+ "
			.. "about ConfigMap missing/settings: [^\n]+\n$")
	end)

	it("writes \"warning\" for \"Warning\"", function()
		fails({ ['"Warning"'] = '"warning"' }, unchanged,
			'^evrec: 1 recording call was refused: invalid: type: expected "Normal" or "Warning", got "warning" '
				.. "%(%S+/first%.lua:16%)\n$")
		assert.equal(1, cluster.count "default")
	end)
end)
