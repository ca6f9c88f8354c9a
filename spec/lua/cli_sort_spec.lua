-- The fields of --sort-by, and the order of their values.
local cjson = require "cjson"

local sort = require "evrec.cli.sort"

local function key(field, json)
	return sort.key_of(field)(cjson.decode(json))
end

local function sorted(keys, count)
	local entries = {}
	for i = 1, count or #keys do
		entries[i] = { key = keys[i], place = i }
	end
	sort.entries(entries)
	local places = {}
	for i, entry in ipairs(entries) do
		places[i] = entry.place
	end
	return places
end

describe("a field of --sort-by", function()
	it("is a name, or a path with or without dot and braces", function()
		assert.equal(3, key("count", '{ "series": { "count": 3 }, "count": 9 }'))
		assert.equal(1, key("count", "{}"))
		assert.equal("Pod/web-0", key("object", '{ "involvedObject": { "kind": "Pod", "name": "web-0" } }'))
		assert.equal(5, key("lastTimestamp", '{ "lastTimestamp": "1970-01-01T00:00:05Z" }'))
		for _, path in ipairs { ".metadata.name", "metadata.name", "{.metadata.name}", "{metadata.name}",
			"metadata['name']" } do
			assert.equal("n", key(path, '{ "metadata": { "name": "n" } }'))
		end
		assert.equal("v", key(".metadata.labels.a\\.b", '{ "metadata": { "labels": { "a.b": "v" } } }'))
		assert.equal("second", key("list[1].x", '{ "list": [{}, { "x": "second" }] }'))
		assert.is_nil(key(".a.b.c", '{ "a": "text" }'))
		assert.equal("{.metadata.name}", select(2, sort.key_of "metadata.name"))
	end)

	it("is refused if it needs more of JSONPath", function()
		for _, path in ipairs { "", "{.a", "a..b", "a[*]", "a[?(@.b)]", "$x*", ".a." } do
			assert.is_nil(sort.key_of(path), path)
		end
	end)
end)

describe("the order", function()
	it("is that of numbers and texts, after absent values and null; equal ones keep their places", function()
		assert.same({ 3, 1, 2 }, sorted { 2, 10, 1 })
		assert.same({ 2, 1, 3 }, sorted { "b", "a", "b" })
		assert.same({ 2, 4, 3, 5, 1 }, sorted({ "x", nil, cjson.null, nil, 7 }, 5))
		assert.same({ 1, 2 }, sorted { true, false })
	end)

	it("is that of quantities if all texts are quantities", function()
		assert.same({ 2, 1 }, sorted { "10", "9" })
		assert.same({ 3, 1, 2 }, sorted { "1Ki", "2k", "100m" })
		assert.same({ 1, 2, 3 }, sorted { "10", "9", "web-0" })
	end)
end)
