-- The messages of evrec.sink.otlp about a variable that it cannot use.
local evrec = require "evrec"
local fixtures = require "fixtures"
local tmpfiles = require "tmpfiles"

local secret = "c2VjcmV0"
local certificate = tmpfiles.read "spec/unit/support/pem_data.h":match "%-+BEGIN CERTIFICATE.-END CERTIFICATE%-+"
certificate = certificate:gsub('\\n"%s*\\\n%s*"', "\n") .. "\n"

local function raises(part, f, ...)
	local ok, message = pcall(f, ...)
	assert.is_false(ok)
	assert.truthy(fixtures.has(message, part), message)
	assert.is_false(fixtures.has(message, secret), message)
end

describe("evrec.sink.otlp", function()
	local write, remove, getenv, environment

	before_each(function()
		local _
		_, write, remove = tmpfiles.new()
		environment = {}
		getenv = os.getenv
		os.getenv = function(name) return environment[name] end -- luacheck: ignore 122
	end)
	after_each(function()
		os.getenv = getenv -- luacheck: ignore 122
		remove()
	end)

	it("names the variable if that is wrong", function()
		local many = {}
		for i = 1, 65 do
			many[i] = "a" .. i .. "=b"
		end
		local file, url = write("pem", certificate), "expected a whole URL such as http://localhost:4318"
		for name, case in pairs {
			OTEL_EXPORTER_OTLP_LOGS_ENDPOINT = { "localhost:4318", url .. "/v1/logs" },
			OTEL_EXPORTER_OTLP_HEADERS = { "Host=" .. secret, "Host is" }, OTEL_RESOURCE_ATTRIBUTES = { "a", "entry 1" },
			OTEL_EXPORTER_OTLP_TIMEOUT = { "soon", "expected milliseconds" },
			OTEL_EXPORTER_OTLP_CLIENT_KEY = { file, "no " },
			OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE = { file,
				"needs OTEL_EXPORTER_OTLP_CLIENT_KEY, or the option 'client_key'" },
		} do
			environment = { [name] = case[1] }
			raises(("evrec.sink.otlp: %s: %s"):format(name, case[2]), evrec.sink.otlp)
		end
		environment = { OTEL_EXPORTER_OTLP_ENDPOINT = "localhost:4318" }
		local ok, message = pcall(evrec.sink.otlp)
		assert.same({ false, "evrec.sink.otlp: OTEL_EXPORTER_OTLP_ENDPOINT: " .. url }, { ok, message })
		environment = { OTEL_RESOURCE_ATTRIBUTES = table.concat(many, ",") }
		raises("evrec.sink.otlp: OTEL_RESOURCE_ATTRIBUTES: ", evrec.sink.otlp)
		raises("evrec.sink.otlp: option 'resource': ", evrec.sink.otlp, { resource = {} })
		raises("evrec.sink.otlp: option 'resource': expected a table of strings", evrec.sink.otlp, { resource = "x" })
	end)

	it("names the variables besides the option 'resource', as an attribute of either may be wrong", function()
		local fault, long = "a value: 1025 bytes, more than 1024", ("x"):rep(1025)
		environment = { OTEL_RESOURCE_ATTRIBUTES = "a=b", OTEL_SERVICE_NAME = long }
		raises("evrec.sink.otlp: OTEL_RESOURCE_ATTRIBUTES or OTEL_SERVICE_NAME: " .. fault, evrec.sink.otlp)
		raises(("evrec.sink.otlp: option 'resource': %s (or in OTEL_RESOURCE_ATTRIBUTES or OTEL_SERVICE_NAME)"):format(fault),
			evrec.sink.otlp, { resource = { a = "b" } })
		environment = { OTEL_SERVICE_NAME = long }
		raises("evrec.sink.otlp: OTEL_SERVICE_NAME: " .. fault, evrec.sink.otlp)
		raises(fault .. " (or in OTEL_SERVICE_NAME)", evrec.sink.otlp, { resource = {} })
		environment = {}
		local ok, message = pcall(evrec.sink.otlp, { resource = { a = long } })
		assert.same({ false, "evrec.sink.otlp: option 'resource': " .. fault }, { ok, message })
	end)
end)
