-- The arguments of `evrec events`: how they are read, and which are refused.
local command = require "command"
local shapes = require "event_shapes"

describe("evrec events", function()
	local path

	local function write(text)
		local file = assert(io.open(path, "w"))
		file:write(text)
		file:close()
	end

	local function run(...)
		return command.evrec("events", "--lines", path, ...)
	end

	before_each(function() path = os.tmpname() end)
	after_each(function() os.remove(path) end)

	it("refuses options of a cluster for a file", function()
		write ""
		for _, given in ipairs { { "--kubeconfig", "x" }, { "--context", "c" }, { "--allow-exec", "aws" } } do
			assert.same({ 2, "", ("evrec: --lines: not together with %s\n"):format(given[1]) }, { run(given[1], given[2]) })
		end
	end)

	it("takes a field selector with white space around it, as kubectl does", function()
		write(shapes.json(shapes.plain("a", "default", os.time() - 30)))
		for _, selector in ipairs { "type=Normal", " type=Normal", "type=Normal ", "\ttype=Normal\n" } do
			assert.same({ 0, "event/a\n", "" }, { run("-o", "name", "--field-selector", selector) })
		end
	end)

	it("takes times from 1970 to 2262, and says which ones are not", function()
		write(shapes.json(shapes.plain("a", "default", os.time() - 30)))
		for text, told in pairs {
			["99999999999999999999h"] = "99999999999999999999h ago is before 1970", ["30000d"] = "30000d ago is before 1970",
			["1e300"] = "'1e300' is not between 1970 and 2262", ["1e400"] = "'1e400' is not between 1970 and 2262",
			["9223372037"] = "'9223372037' is not between 1970 and 2262",
			["9999-12-31T23:59:59Z"] = "'9999-12-31T23:59:59Z' is not between 1970 and 2262",
			["0001-01-01T00:00:00Z"] = "'0001-01-01T00:00:00Z' is not between 1970 and 2262",
			["1969-12-31"] = "'1969-12-31' is not between 1970 and 2262",
		} do
			for _, option in ipairs { "--since", "--before" } do
				assert.same({ 2, "", ("evrec: %s: %s (see evrec events --help)\n"):format(option, told) },
					{ run(option, text, "-o", "html") })
			end
		end
		assert.same({ 0, "event/a\n", "" }, { run("-o", "name", "--before", "2262-04-11T23:00:00Z") })
		local status, page = run("--before", "9223372036", "-o", "html")
		assert.equal(0, status)
		assert.truthy(page:find("before 2262-04-11 23:47:16 UTC", 1, true))
	end)
end)
