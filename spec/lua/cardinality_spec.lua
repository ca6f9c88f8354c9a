-- A script whose reasons, actions or components hold data is told so once; stats() lists the recorders.
local evrec = require "evrec"
local fixtures = require "fixtures"

local pod = fixtures.pod()

describe("a recorder with too many different values", function()
	local errors, b

	before_each(function()
		errors = {}
		b = evrec.broadcaster { on_error = function(message, name) errors[#errors + 1] = name .. ": " .. message end }
	end)

	it("is told of once for each field", function()
		local r = b:new_recorder { component = "my-operator" }
		for i = 1, 100 do
			assert.is_true(r:event(pod, "Warning", "Failed" .. i, "m"))
			assert.is_true(r:action_eventf(pod, nil, "Normal", "R", "Act" .. i, "m"))
		end
		assert.same({ "cardinality: recorder my-operator: more than 100 different reasons, e.g. \"Failed98\", " ..
			"\"Failed99\", \"Failed100\": a reason is a constant; put data into the message" }, errors)
		for i = 101, 200 do
			r:event(pod, "Warning", "Failed" .. i, "m")
			r:action_eventf(pod, nil, "Normal", "R", "Act" .. i, "m")
		end
		assert.equal(2, #errors)
		assert.truthy(errors[2]:find("more than 100 different actions, e.g. \"Act99\"", 1, true), errors[2])
		assert.equal(400, b:stats().recorded)
	end)

	it("is listed by stats() with the numbers", function()
		local first = b:new_recorder { component = "a", host = "node-1" }
		local second = b:new_recorder { component = "b", host = "node-1", instance = "b-0" }
		local third = b:new_recorder()
		for i = 1, 200 do
			first:event(pod, "Normal", "R" .. i, "m")
			second:action_eventf(pod, nil, "Normal", "R", "A" .. i % 3, "m")
		end
		local expected = {
			{ component = "a", host = "node-1", instance = "node-1", reasons = 101, actions = 0 },
			{ component = "b", host = "node-1", instance = "b-0", reasons = 1, actions = 3 },
			{ reasons = 0, actions = 0 },
		}
		assert.same(expected, b:stats().recorders)
		assert.equal(2, b:stats().components)
		assert.truthy(first and second and third)
	end)

	it("is told of, if a script makes one for each request", function()
		for i = 1, 150 do
			b:new_recorder { component = "request-" .. i }:event(pod, "Normal", "R", "m")
		end
		assert.same({ "cardinality: more than 100 different components of recorders, e.g. \"request-99\", " ..
			"\"request-100\", \"request-101\": a component is a constant; keep its recorder" }, errors)
		assert.equal(101, b:stats().components)
		collectgarbage()
		collectgarbage()
		assert.same({}, b:stats().recorders)
	end)

	it("is told of in a line, where there is no on_error", function()
		local lua = require("command").interpreter
		local path = os.tmpname()
		local file = assert(io.open(path, "w"))
		file:write [[
			local r = require "evrec".broadcaster():new_recorder { component = "loud" }
			for i = 1, 1000 do
				r:event({ kind = "Pod", name = "p" }, "Normal", "R\n" .. i, "m")
			end
		]]
		file:close()
		local pipe = assert(io.popen(lua .. " " .. path .. " 2>&1"))
		local output = pipe:read "*a"
		pipe:close()
		os.remove(path)
		assert.equal('evrec: cardinality: recorder loud: more than 100 different reasons, e.g. "R\\n99", "R\\n100", ' ..
			'"R\\n101": a reason is a constant; put data into the message\n', output)
	end)
end)
