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

	it("names itself if it gets nothing", function()
		local ok, message = pcall(evrec.reference)
		assert.is_false(ok)
		assert.equal("evrec.reference: object: expected an object or a reference, got nil", message)
		ok, message = pcall(evrec.event)
		assert.is_false(ok)
		assert.equal("evrec.event: expected a table, got nil", message)
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

	it("reads an owner's reference", function()
		local reference = evrec.reference {
			kind = "ReplicaSet", apiVersion = "apps/v1", name = "web-5", uid = "u",
			controller = true, blockOwnerDeletion = false,
		}
		assert.equal("web-5", reference.name)
		assert.is_nil(reference.controller)
	end)

	it("needs no name: an event about all nodes has none", function()
		assert.is_nil(evrec.reference { kind = "Node" }.name)
		assert.is_nil(evrec.reference { kind = "Node", metadata = {} }.name)
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

	it("returns the same reference for equal tables, and another one if any field differs", function()
		local function copy(changes)
			local object = {}
			for key, value in pairs(full) do
				object[key] = value
			end
			for key, value in pairs(changes) do
				object[key] = value
			end
			return object
		end
		local reference = evrec.reference(copy {})
		for key in pairs(full) do
			local other = evrec.reference(copy { [key] = "other" })
			assert.are_not_equal(reference, other)
			assert.equal("other", other[key])
			assert.equal(reference, evrec.reference(copy {}))
		end
		assert.are_not_equal(evrec.reference { kind = "Pod", name = "ab", namespace = "c" },
			evrec.reference { kind = "Pod", name = "a", namespace = "bc" })
	end)

	it("is the same for a whole object and for its reference table", function()
		assert.equal(evrec.reference { kind = "Pod", namespace = "shop", name = "web-1", uid = "u" },
			evrec.reference { kind = "Pod", metadata = { namespace = "shop", name = "web-1", uid = "u" }, fieldPath = "x" })
	end)

	it("does not change with the table that it was made of", function()
		local object = { kind = "Pod", namespace = "shop", name = "web-2" }
		local reference = evrec.reference(object)
		object.name, object.namespace = "web-3", nil
		assert.equal("web-2", reference.name)
		assert.equal("shop", reference.namespace)
		assert.equal("web-3", evrec.reference(object).name)
		assert.equal(reference, evrec.reference { kind = "Pod", namespace = "shop", name = "web-2" })
	end)

	describe("keeps", function()
		local function alive(references)
			collectgarbage()
			collectgarbage()
			local n = 0
			for _ in pairs(references) do
				n = n + 1
			end
			return n
		end

		it("1,024 references at most, and the ones that were used last", function()
			local references = setmetatable({}, { __mode = "k" })
			local function make(name)
				local reference = evrec.reference { kind = "Pod", namespace = "shop", name = name }
				assert.equal(name, reference.name)
				references[reference] = true
				return reference
			end
			local hot = make "hot"
			for i = 1, 20000 do
				make("churn-" .. i)
				assert.equal(hot, make "hot")
			end
			local n = alive(references)
			assert.is_true(n <= 1024 and n > 900, tostring(n))
		end)

		it("few references of one object, if it has another version each time", function()
			local references = setmetatable({}, { __mode = "k" })
			local steady = evrec.reference { kind = "Node", name = "steady" }
			for i = 1, 5000 do
				references[evrec.reference { kind = "Node", name = "versions", resourceVersion = tostring(i) }] = true
			end
			assert.is_true(alive(references) <= 4)
			assert.equal(steady, evrec.reference { kind = "Node", name = "steady" })
		end)

		it("no long reference", function()
			local references = setmetatable({}, { __mode = "k" })
			references[evrec.reference { kind = "Pod", name = ("long"):rep(256) }] = true
			assert.equal(0, alive(references))
		end)
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
		["a misspelt name"] = { { kind = "Pod", nam = "x" },
			"evrec.reference: object: unknown field 'nam': did you mean 'name'?" },
		["a misspelt kind"] = { { knd = "Pod", name = "x" }, "unknown field 'knd': did you mean 'kind'?" },
		["a name of Lua's style"] = { { kind = "Pod", api_version = "v1" },
			"unknown field 'api_version': did you mean 'apiVersion'?" },
		["a misspelt metadata"] = { { kind = "Pod", metdata = { name = "x" } },
			"unknown field 'metdata': did you mean 'metadata'?" },
		["an object without metadata"] = { { kind = "Pod", spec = {} }, "unknown field 'spec'" },
		["a field with a NUL byte"] = { { kind = "Pod", ["name\0x"] = "x" }, "unknown field 'name" },
		["a list"] = { { "Pod", kind = "Pod" }, "unknown field: a number" },
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
