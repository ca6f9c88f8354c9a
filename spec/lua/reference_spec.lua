local evrec = require "evrec"
local cjson = require "cjson"

describe("evrec.reference", function()
	local full = {
		kind = "Pod", apiVersion = "v1", name = "web-0", namespace = "shop", uid = "u", resourceVersion = "7",
		fieldPath = "spec.containers{web}",
	}

	it("reads a reference table, and returns its fields", function()
		local reference = evrec.reference(full)
		for key, value in pairs(full) do
			assert.equal(value, reference[key])
		end
		assert.is_nil(reference.colour)
		assert.is_nil(reference[1])
		assert.equal("evrec.reference: Pod shop/web-0", tostring(reference))
	end)

	it("reads a whole object", function()
		local reference = evrec.reference {
			kind = "Deployment", apiVersion = "apps/v1", spec = { replicas = 3 },
			metadata = { name = "web", namespace = "shop", uid = "u", resourceVersion = "7", labels = {} },
		}
		assert.equal("Deployment", reference.kind)
		assert.equal("apps/v1", reference.apiVersion)
		assert.equal("web", reference.name)
		assert.equal("shop", reference.namespace)
		assert.equal("u", reference.uid)
		assert.equal("7", reference.resourceVersion)
		assert.is_nil(reference.fieldPath)
	end)

	it("treats JSON's null as unset, and missing fields, too", function()
		local reference = evrec.reference { kind = "Node", name = "n", namespace = cjson.null, metadata = cjson.null }
		assert.is_nil(reference.namespace)
		assert.is_nil(reference.uid)
		assert.equal("n", reference.name)
	end)

	it("reads fields through a metatable", function()
		local object = setmetatable({ kind = "Pod" }, { __index = { name = "inherited" } })
		assert.equal("inherited", evrec.reference(object).name)
	end)

	it("returns a reference unchanged", function()
		local reference = evrec.reference(full)
		assert.equal(reference, evrec.reference(reference))
	end)

	it("is read-only", function()
		assert.has_error(function() evrec.reference(full).name = "x" end)
	end)

	local cyclic = { name = "x" }
	cyclic.kind = cyclic
	local misuse = {
		["nothing"] = { nil, "evrec.reference: object: expected" },
		["a number"] = { 5, "evrec.reference: object: expected" },
		["a string"] = { "Pod", "evrec.reference: object: expected" },
		["another userdata"] = { io.stdout, "evrec.reference: object: expected" },
		["no kind"] = { { name = "x" }, "kind" },
		["an empty kind"] = { { kind = "" }, "kind" },
		["a number for a name"] = { { kind = "Pod", name = 5 }, "object.name: expected a string, got number" },
		["a string for the metadata"] = { { kind = "Pod", metadata = "x" }, "object.metadata: expected a table" },
		["a cyclic table"] = { cyclic, "object.kind: expected a string, got table" },
		["a NUL byte"] = { { kind = "Po\0d" }, "kind: has a NUL byte" },
		["invalid UTF-8"] = { { kind = "Po\255d" }, "kind: not valid UTF-8" },
		["a namespace that is none"] = { { kind = "Pod", namespace = "../x" }, "namespace: not a namespace's name" },
		["a metatable that raises"] = {
			setmetatable({}, { __index = function() error("boo") end }), "boo",
		},
	}
	for what, case in pairs(misuse) do
		it("refuses " .. what, function()
			local ok, message = pcall(evrec.reference, case[1])
			assert.is_false(ok)
			assert.truthy(message:find(case[2], 1, true), message)
		end)
	end
end)
