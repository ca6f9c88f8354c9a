-- A script, or a host, may set a locale whose numbers have a comma in the place of the decimal point.
local cjson = require "cjson"
local command = require "command"
local tmpfiles = require "tmpfiles"

describe("a locale with a decimal comma", function()
	local folder, remove, made

	-- Runs a script after os.setlocale. Results as of `command.script`.
	local function script(text)
		local path = folder .. "/script.lua"
		local file = assert(io.open(path, "w"))
		file:write('assert(os.setlocale "de_DE.UTF-8")\n', text)
		file:close()
		return command.shell('LOCPATH=$1 exec "$2" "$3"', folder, command.interpreter, path)
	end

	setup(function()
		local prefix, _
		prefix, _, remove = tmpfiles.new()
		folder = prefix .. ".locale"
		made = command.shell([[mkdir "$1" && localedef -i de_DE -f UTF-8 "$1/de_DE.UTF-8"]], folder) == 0
	end)

	before_each(function()
		if not made then
			pending "no locale can be made (Debian: locales)"
		end
	end)

	teardown(function()
		remove()
		os.execute(("rm -rf %s"):format(folder))
	end)

	it("does not change a trace", function()
		local path = folder .. "/a.trace"
		assert.same({ 0, "", "" }, { script(([[
			local evrec = require "evrec"
			local broadcaster = evrec.broadcaster { correlator = { qps = 0.5, max_interval_in_seconds = 1.25 } }
			broadcaster:start_trace(%q)
			local pod = { kind = "Pod", name = "a", namespace = "shop" }
			broadcaster:new_recorder({ component = "c" }):event(pod, "Normal", "Started", "m")
			assert(broadcaster:shutdown(5))]]):format(path)) })
		assert.matches('"qps":0.5,"max_events":10,"max_interval_in_seconds":1.25}', tmpfiles.read(path), 1, true)
		local status, output, told = command.evrec("replay", path)
		assert.same({ 0, "" }, { status, told })
		assert.matches("qps 1/2, max events 10, max interval 1.25 s", output, 1, true)
	end)

	it("does not change metrics", function()
		local status, output, told = script [[
			local evrec = require "evrec"
			local stats = evrec.broadcaster({}):stats()
			stats.recorded = 1.5
			print(evrec.metrics { a = stats })
			print(evrec.metrics({ a = stats }, { labels = { share = 0.5 } }))]]
		assert.same({ 0, "" }, { status, told })
		assert.matches('evrec_recorded_total{broadcaster="a"} 1.500000000\n', output, 1, true)
		assert.matches('{share="0.5",broadcaster="a"} 1.500000000\n', output, 1, true)
	end)

	it("does not change what a credential plugin is told", function()
		local status, output, told = script [[
			local plugin = { command = "x", apiVersion = "client.authentication.k8s.io/v1", provideClusterInfo = true }
			local cluster = { server = "https://x", extensions = {
				{ name = "client.authentication.k8s.io/exec", extension = { number = 1.5, small = 2 ^ -70 } },
			} }
			local fields = require "evrec.exec".plugin(plugin, "user x", function(path) return path end, { "x" }, cluster)
			print(fields.cluster_config)]]
		assert.same({ 0, "" }, { status, told })
		local extension = cjson.decode(output)
		assert.same({ 1.5, 2 ^ -70 }, { extension.number, extension.small })
	end)
end)
