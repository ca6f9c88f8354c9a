-- Which options the core gets, for the options of a script and its environment.
local cjson = require "cjson"
local evrec = require "evrec"
local fixtures = require "fixtures"
local tmpfiles = require "tmpfiles"

local pem = "-----BEGIN CERTIFICATE-----\n"

describe("evrec.sink.kubernetes", function()
	local environment, given, sink, folder, write, remove, getenv

	-- Loads the module with a function in place of the core's that keeps its argument.
	before_each(function()
		folder, write, remove = tmpfiles.new()
		environment = {}
		getenv = os.getenv
		os.getenv = function(name) return environment[name] end -- luacheck: ignore 122
		local core = package.loaded["evrec.core"]
		package.loaded["evrec.core"] = {
			null = core.null, suggest = core.suggest, sink_kubernetes = function(options) given = options end,
		}
		package.loaded["evrec.kubernetes"] = nil
		sink = require("evrec.kubernetes").sink
		package.loaded["evrec.core"], package.loaded["evrec.kubernetes"] = core, nil
	end)
	after_each(function()
		os.getenv = getenv -- luacheck: ignore 122
		remove()
	end)

	local function fails(part, options)
		local ok, message = pcall(sink, options)
		assert.is_false(ok)
		assert.truthy(fixtures.has(message, "evrec.sink.kubernetes: "), message)
		assert.truthy(fixtures.has(message, part), message)
	end

	local function config(server, token)
		return cjson.encode {
			["current-context"] = "x",
			contexts = { { name = "x", context = { cluster = "x", user = "x" } }, { name = "y", context = { cluster = "y" } } },
			clusters = { { name = "x", cluster = { server = server } }, { name = "y", cluster = { server = server .. "/y" } } },
			users = { { name = "x", user = { token = token } } },
		}
	end

	it("uses the given options alone if they name a server", function()
		environment.KUBECONFIG = write("config", config("https://x", "t"))
		local ca = write("ca", pem)
		sink {
			server = "https://s", token = "t", ca_file = ca, client_certificate = ca, client_key = ca, max_in_flight = 5,
			max_pending = 6, timeout = 7, insecure_skip_tls_verify = false, api = "v1",
			max_pending_bytes = 8, max_age = 9, max_tries = 10, full = "drop_oldest", name = "n",
			correlate = "series", refresh_interval = 11, finish_time = 12, max_series = 13, note_in_key = false,
			rate_limit = true, resume = true, resume_instances = { "a", "b*" }, context = cjson.null,
		}
		assert.same({ server = "https://s", token = "t", ca = pem, client_certificate = pem, client_key = pem,
			client_certificate_file = ca, client_key_file = ca,
			max_in_flight = 5, max_pending = 6, timeout = 7, insecure_skip_tls_verify = false,
			max_pending_bytes = 8, max_age = 9, max_tries = 10, full = "drop_oldest", name = "n",
			api = "v1", correlate = "series", refresh_interval = 11, finish_time = 12, max_series = 13, note_in_key = false,
			rate_limit = true, resume = true, resume_instances = { "a", "b*" } }, given)
		sink { server = "https://s", token_file = "/t" }
		assert.same({ server = "https://s", token_file = "/t" }, given)
	end)

	describe("inside a cluster", function()
		local account, open, files

		-- The folder of the account has the files in `files`.
		before_each(function()
			account, open = folder .. ".d", io.open
			files = { token = write("token", "t"), ["ca.crt"] = write("ca.crt", pem) }
			io.open = function(path, mode) -- luacheck: ignore 122
				return open(path:find(account, 1, true) == 1 and files[path:match "[^/]*$"] or path, mode)
			end
			environment.KUBERNETES_SERVICE_HOST, environment.KUBERNETES_SERVICE_PORT = "10.0.0.1", "443"
		end)
		after_each(function()
			io.open = open -- luacheck: ignore 122
		end)

		it("uses the service account", function()
			sink { service_account = account }
			assert.same({ server = "https://10.0.0.1:443", token_file = account .. "/token", ca = pem }, given)
			for _, host in ipairs { "fd00::1", "[fd00::1]" } do
				environment.KUBERNETES_SERVICE_HOST = host
				sink { service_account = account, token = "other" }
				assert.same({ server = "https://[fd00::1]:443", token = "other", ca = pem }, given)
			end
		end)

		it("raises if the account's ca.crt cannot be used, and does not trust the system's authorities", function()
			files["ca.crt"] = write("ca.crt", "x")
			fails("service account: nothing in PEM form in " .. account .. "/ca.crt", { service_account = account })
			files["ca.crt"] = nil
			fails("service account: " .. account .. "/ca.crt: No such file", { service_account = account })
		end)

		it("needs no ca.crt if an option says how the server is verified", function()
			local ca = write("other", pem)
			files["ca.crt"] = nil
			sink { service_account = account, ca_file = ca }
			assert.same({ server = "https://10.0.0.1:443", token_file = account .. "/token", ca = pem }, given)
			sink { service_account = account, insecure_skip_tls_verify = true }
			assert.same({ server = "https://10.0.0.1:443", token_file = account .. "/token",
				insecure_skip_tls_verify = true }, given)
		end)
	end)

	it("raises if the named service account is missing", function()
		environment.KUBERNETES_SERVICE_HOST, environment.KUBERNETES_SERVICE_PORT = "10.0.0.1", "443"
		fails("option 'service_account': no token in " .. folder .. ".none", { service_account = folder .. ".none" })
	end)

	it("uses $KUBECONFIG outside of a cluster, then ~/.kube/config", function()
		environment.KUBECONFIG = folder .. ".none:" .. write("one", config("https://one", "t1")) .. "::"
			.. write("two", config("https://two", "t2"))
		sink()
		assert.same({ server = "https://one", token = "t1" }, given)
		environment.KUBECONFIG = ""
		environment.HOME = folder .. ".home"
		fails("no API server: not inside a cluster, and cannot read the kubeconfig: " .. folder .. ".home/.kube/config")
		environment.HOME = nil
		fails "no file is named"
	end)

	it("uses the given kubeconfig and context", function()
		environment.KUBECONFIG = write("other", config("https://other", "o"))
		local path = write("config", config("https://x", "t"))
		sink { kubeconfig = path }
		assert.same({ server = "https://x", token = "t" }, given)
		sink { kubeconfig = path, context = "y" }
		assert.same({ server = "https://x/y" }, given)
		sink { context = "y", max_pending = 5 }
		assert.same({ server = "https://other/y", max_pending = 5 }, given)
		fails("there is no context 'z'", { kubeconfig = path, context = "z" })
		fails(folder .. ".none", { kubeconfig = folder .. ".none" })
	end)

	it("lets options replace those of a kubeconfig", function()
		local path = write("config", config("https://x", "t"))
		sink { kubeconfig = path, token_file = "/t", ca_file = write("ca", pem) }
		assert.same({ server = "https://x", token_file = "/t", ca = pem }, given)
	end)

	describe("with a kubeconfig that turns the verification off", function()
		local function with(cluster)
			return write("config", cjson.encode {
				["current-context"] = "x",
				contexts = { { name = "x", context = { cluster = "x", user = "x" } } },
				clusters = { { name = "x", cluster = cluster } },
				users = { { name = "x", user = { token = "t" } } },
			})
		end

		it("turns it on again for a ca_file", function()
			local path = with { server = "https://x", ["insecure-skip-tls-verify"] = true }
			sink { kubeconfig = path }
			assert.same({ server = "https://x", token = "t", insecure_skip_tls_verify = true }, given)
			sink { kubeconfig = path, ca_file = write("ca", pem) }
			assert.same({ server = "https://x", token = "t", ca = pem }, given)
			sink { kubeconfig = path, ca_file = write("ca", pem), insecure_skip_tls_verify = true }
			assert.same({ server = "https://x", token = "t", ca = pem, insecure_skip_tls_verify = true }, given)
		end)

		it("refuses an authority beside that, unless an option decides", function()
			local path = with { server = "https://x", ["insecure-skip-tls-verify"] = true,
				["certificate-authority-data"] = "Q0E=" }
			fails("the cluster has a certificate authority, and insecure-skip-tls-verify", { kubeconfig = path })
			sink { kubeconfig = path, ca_file = write("ca", pem) }
			assert.same({ server = "https://x", token = "t", ca = pem }, given)
			sink { kubeconfig = path, insecure_skip_tls_verify = true }
			assert.same({ server = "https://x", token = "t", insecure_skip_tls_verify = true }, given)
			sink { kubeconfig = path, insecure_skip_tls_verify = false }
			assert.same({ server = "https://x", token = "t", ca = "CA", insecure_skip_tls_verify = false }, given)
		end)
	end)

	it("names the files of a client certificate, which are read again", function()
		local user = { ["client-certificate"] = write("crt", pem), ["client-key"] = write("key", "k") }
		local function with()
			return write("config", cjson.encode {
				["current-context"] = "x",
				contexts = { { name = "x", context = { cluster = "x", user = "x" } } },
				clusters = { { name = "x", cluster = { server = "https://x" } } },
				users = { { name = "x", user = user } },
			})
		end
		local crt, key, other = user["client-certificate"], user["client-key"], write("other", pem)
		sink { kubeconfig = with() }
		assert.same({ server = "https://x", client_certificate = pem, client_key = "k", client_certificate_file = crt,
			client_key_file = key }, given)
		sink { kubeconfig = with(), client_key = other }
		assert.same({ server = "https://x", client_certificate = pem, client_key = pem, client_certificate_file = crt,
			client_key_file = other }, given)
		sink { kubeconfig = with(), client_certificate = other, client_key = other }
		assert.same({ server = "https://x", client_certificate = pem, client_key = pem, client_certificate_file = other,
			client_key_file = other }, given)
		user["client-key-data"] = "ZGF0YQ=="
		sink { kubeconfig = with() }
		assert.same({ server = "https://x", client_certificate = pem, client_key = "data" }, given)
		user["client-key-data"], user["client-certificate-data"] = nil, "ZGF0YQ=="
		sink { kubeconfig = with(), client_key = other }
		assert.same({ server = "https://x", client_certificate = "data", client_key = pem }, given)
	end)

	it("refuses unknown options, and options that exclude each other", function()
		fails("expected a table of options, got string", "x")
		fails("unknown option 'tokn': did you mean 'token'?", { tokn = "x" })
		fails("unknown option 'ca'", { server = "https://s", ca = pem })
		fails("unknown option '1'", { "x" })
		fails("option 'kubeconfig': expected a string, got number", { kubeconfig = 5 })
		fails("option 'ca_file': expected a string, got boolean", { server = "https://s", ca_file = true })
		fails("option 'ca_file': " .. folder .. ".none", { server = "https://s", ca_file = folder .. ".none" })
		fails("option 'ca_file': nothing in PEM form", { server = "https://s", ca_file = write("ca", "x") })
		fails("option 'client_key'", { server = "https://s", client_key = folder .. ".none" })
		fails("option 'kubeconfig': not together with 'server'", { server = "https://s", kubeconfig = "x" })
		fails("option 'context': not together with 'server'", { server = "https://s", context = "x" })
		fails("option 'service_account': not together with 'kubeconfig'", { kubeconfig = "x", service_account = "x" })
		fails("unknown option 'refresh_intervall': did you mean 'refresh_interval'?", { refresh_intervall = 60 })
	end)

	it("lets the core check the other options, and the message names the option", function()
		local cases = {
			{ { server = 5 }, "option 'server': expected a string" },
			{ { server = "s" }, "option 'server'" },
			{ { server = "https://user:password@s" }, "option 'server'" },
			{ { server = "https://s", token = "a\nb" }, "option 'token'" },
			{ { server = "https://s", token = 5 }, "option 'token': expected a string, got number" },
			{ { server = "https://s", token = "a", token_file = "b" }, "option 'token'" },
			{ { server = "https://s", token_file = "/nonexistent/token" }, "option 'token_file'" },
			{ { server = "https://s", client_certificate = write("pem", pem) }, "option 'client_certificate'" },
			{ { server = "https://s", client_key = write("pem", pem) }, "option 'client_key'" },
			{ { server = "https://s", insecure_skip_tls_verify = 1 }, "option 'insecure_skip_tls_verify'" },
			{ { thread = false }, "option 'thread': sinks have none; use the option 'drive' of evrec.broadcaster" },
			{ { server = "https://s", max_in_flight = 0 }, "option 'max_in_flight': expected an integer from 1 to 1000, got 0" },
			{ { server = "https://s", max_in_flight = 1001 }, "option 'max_in_flight'" },
			{ { server = "https://s", max_in_flight = 1.5 }, "option 'max_in_flight'" },
			{ { server = "https://s", max_pending = -1 }, "option 'max_pending'" },
			{ { server = "https://s", timeout = 0 }, "option 'timeout'" },
			{ { server = "https://s", timeout = 0 / 0 }, "option 'timeout': expected a number of seconds from 0 to" },
			{ { server = "https://s", timeout = 1 / 0 }, "option 'timeout'" },
			{ { server = "https://s", api = "v2" }, [[option 'api': expected "v1", "events.k8s.io/v1" or "auto", got "v2"]] },
			{ { server = "https://s", correlate = "x" }, [[option 'correlate': expected "record" or "series", got "x"]] },
			{ { server = "https://s", resume = true }, "option 'resume': only with series" },
			{ { server = "https://s", api = "auto", correlate = "record", resume = true }, "option 'resume': only with series" },
			{ { server = "https://s", resume = "yes" }, "option 'resume': expected a boolean, got string" },
			{ { server = "https://s", api = "auto", resume_instances = { "a" } },
				"option 'resume_instances': only together with resume" },
			{ { server = "https://s", api = "auto", resume = true, resume_instances = "a" },
				"option 'resume_instances': expected a list of strings, got string" },
			{ { server = "https://s", api = "auto", resume = true, resume_instances = { "a", 5 } },
				"option 'resume_instances': expected a list of strings, got number" },
			{ { server = "https://s", api = "auto", resume = true, resume_instances = { a = "b" } },
				"option 'resume_instances': expected a list of strings, got a table with other keys" },
			{ { server = "https://s", api = "auto", resume = true, resume_instances = { "a*b" } },
				"option 'resume_instances': must have 1 to 128 bytes each" },
			{ { server = "https://s", refresh_interval = 0.5 }, "option 'refresh_interval': expected a number of seconds >= 1" },
		}
		for _, case in ipairs(cases) do
			local ok, message = pcall(evrec.sink.kubernetes, case[1])
			assert.is_false(ok)
			assert.truthy(fixtures.has(message, "evrec.sink.kubernetes: " .. case[2]), message)
			assert.is_false(fixtures.has(message, "a\nb"))
		end
		assert.equal("userdata", type(evrec.sink.kubernetes { server = "https://s" }))
		assert.equal("userdata", type(evrec.sink.kubernetes {
			server = "https://s", api = "auto", resume = true, resume_instances = { "*", ("a"):rep(128), "web-*" },
		}))
		for _, api in ipairs { "v1", "events.k8s.io/v1", "auto" } do
			assert.equal("userdata", type(evrec.sink.kubernetes {
				server = "https://s", api = api, correlate = "series", refresh_interval = 1, finish_time = 1, max_series = 1,
				note_in_key = true, rate_limit = true,
			}))
		end
	end)
end)
