local evrec = require "evrec"

local function fails(part, f, ...)
	local ok, message = pcall(f, ...)
	assert.is_false(ok)
	assert.truthy(message:find(part, 1, true), message)
end

describe("a clock", function()
	it("returns the present time", function()
		local before = os.time()
		local now = evrec.clock():now()
		assert.is_true(now >= before and now <= os.time() + 2) -- os.time() may lag by a tick
	end)

	it("stands still until it is set, if it is a fake clock", function()
		local clock = evrec.fake_clock(1700000000.25)
		assert.equal(1700000000.25, clock:now())
		clock:advance(0.5)
		assert.equal(1700000000.75, clock:now())
		clock:set(5)
		assert.equal(5, clock:now())
		clock:advance(0)
		assert.equal(5, clock:now())
		clock:advance(-2)
		assert.equal(3, clock:now())
	end)

	it("refuses values that are no times", function()
		local clock = evrec.fake_clock(0)
		for _, bad in ipairs { -1, 0 / 0, 1 / 0, -1 / 0, 1e300, "5", {}, true } do
			fails("evrec.fake_clock: 'seconds'", evrec.fake_clock, bad)
			fails("clock:set: 'seconds'", clock.set, clock, bad)
			if bad ~= -1 then
				fails("clock:advance: 'seconds'", clock.advance, clock, bad)
			end
		end
		fails("evrec.fake_clock: 'seconds'", evrec.fake_clock)
		fails("clock:set: 'seconds'", clock.set, clock)
		assert.equal(0, clock:now())
	end)

	it("refuses times that 64 bits of nanoseconds cannot hold", function()
		local clock = evrec.fake_clock(9e9)
		fails("2262", clock.advance, clock, 9e9)
	end)

	it("cannot be set or advanced if it is the real clock", function()
		fails("not a fake clock", function() evrec.clock():set(0) end)
		fails("not a fake clock", function() evrec.clock():advance(1) end)
	end)

	it("refuses to run its methods on other values", function()
		fails("evrec.clock", evrec.clock().now, {})
		fails("evrec.clock", evrec.clock().now)
	end)
end)
