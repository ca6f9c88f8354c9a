-- The writers of JSON and YAML.
local cjson = require "cjson"
local lyaml = require "lyaml"

local json = require "evrec.cli.json"
local json_stream = require "evrec.cli.json_stream"
local yaml = require "evrec.cli.yaml"

local ODD = {
	"", " ", "x ", "a b", "true", "No", "NULL", "~", "null", "y", "1", "1e3", "0x10", "-", "- a", "a: b", "a #b", "#", "'",
	'"', "\\", "\n", "a\nb\n", "\t", "\27[31m", "\127", "\194\133", "\194\155", "\226\128\168", "\226\128\174",
	"\239\187\191",
	"\230\151\165", "\240\159\154\128", "2026-11-23T06:22:05Z", "{}", "[]", "*a", "&a", "!a", "%", "@", "`", "a,b", "=",
}

local VALUE = {
	list = ODD, nested = { { a = { { b = 1 }, {} }, c = { 1, { 2 } } }, "x" }, empty = {}, yes = true, no = false,
	number = 1.5, large = 123456789012, negative = -1, ["odd key: "] = 1, ["null"] = 2,
}

describe("JSON", function()
	it("is read as it was", function()
		assert.same(VALUE, cjson.decode(json.encode(VALUE, "")))
		assert.equal("null", json.encode(cjson.null, ""))
		assert.equal("1795414925", json.encode(1795414925.0, ""))
		assert.equal("0.1", json.encode(0.1, ""))
	end)

	it("has sorted keys, and four spaces a level", function()
		assert.equal('{\n      "a": [\n          1,\n          {}\n      ],\n      "b": "x"\n  }',
			json.encode({ b = "x", a = { 1, {} } }, "  "))
	end)

	it("has nothing that a terminal obeys", function()
		assert.equal([["\u001b\u007f\u0085\u009b\u202e\u2028\u2066\ufeff\u061c\u0000"]],
			json.string "\27\127\194\133\194\155\226\128\174\226\128\168\226\129\166\239\187\191\216\156\0")
		assert.equal([["\ufffd[31m \ufffd\ufffd"]], json.string "\155[31m \255\195")
		assert.equal('"\194\160\226\130\172\216\167\230\151\165"', json.string "\194\160\226\130\172\216\167\230\151\165")
	end)
end)

describe("YAML", function()
	it("is read as it was", function()
		assert.same(VALUE, lyaml.load(yaml.encode(VALUE, "")))
		for _, text in ipairs(ODD) do
			assert.same({ [text] = text }, lyaml.load(yaml.encode({ [text] = text }, "")))
		end
	end)

	it("has sorted keys, and lists as kubectl writes them", function()
		assert.equal('items:\n- a: 1\n  b:\n  - x\n  - "1"\n- {}\nkind: List\nmetadata:\n  name: web-0\n',
			yaml.encode({ kind = "List", items = { { b = { "x", "1" }, a = 1 }, {} }, metadata = { name = "web-0" } }, ""))
	end)
end)

describe("a stream of JSON", function()
	-- The values of a text that comes in pieces of this size, and what is said behind them.
	local function values_of(text, size)
		local at, list = 1, {}
		local values, place = json_stream.values(function()
			local chunk = text:sub(at, at + size - 1)
			at = at + size
			return chunk ~= "" and chunk or nil
		end)
		local value, message = values()
		while value do
			list[#list + 1] = place.line .. " " .. value
			value, message = values()
		end
		return { list, place.cut, message, message and place.line }
	end

	local function check(expected, text)
		for size = 1, #text + 1 do
			assert.same(expected, values_of(text, size), size .. " bytes of " .. text)
		end
	end

	it("is cut into its values, with the lines in which they begin", function()
		check({ { '1 {"a":"{\\"}"}', "2 []", '3 {\n"b": [\n{\n}\n,\n{}]}', "9 {}" }, 0 },
			'{"a":"{\\"}"} \n[]\n{\n"b": [\n{\n}\n,\n{}]}\n{}')
		check({ {}, 0 }, "no JSON\n")
		check({ { "2 {}" }, 0 }, '5 o\' "clock\n{}\n')
	end)

	it("may have the object of a member in a line of its own", function()
		for _, text in ipairs { '{"a":\n{"b":1},\n"c" : \n\n{"d":{}}}', '{\n"a":\n{\n"b":\n{}\n}\n}' } do
			check({ { "1 " .. text, select(2, text:gsub("\n", "")) + 2 .. " {}" }, 0 }, text .. "\n{}")
		end
	end)

	it("goes on behind a value that is cut", function()
		local whole = '{"metadata":{"name":"a \\"b\\" \\\\"},"count":12,"involvedObject":{"kind":"Pod"}}'
		for length = 1, #whole - 1 do
			local part = whole:sub(1, length)
			check({ { "1 {}", "3 " .. whole, "4 {}" }, 1 }, "{}\n" .. part .. "\n" .. whole .. "\n{}\n")
			check({ { "1 {}" }, 1, "it ends inside of a JSON value", 2 }, "{}\n" .. whole:sub(1, length))
		end
	end)

	it("gives back the last value behind one that is cut behind a colon", function()
		check({ { '2 {"b":[{}]}' }, 1 }, '{"a":\n{"b":[{}]}\n')
		check({ { '3 {"c":1}', "4 {}" }, 1 }, '{"a":\n{"b":\n{"c":1}\n{}\n')
		check({ {}, 1, "it ends inside of a JSON value", 1 }, '{"a":\n{"b":1},\n"c":"x')
	end)
end)
