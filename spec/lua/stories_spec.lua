-- The two stories of the examples: which events a reader sees at their end.
package.path = "./examples/?.lua;" .. package.path

local evrec = require "evrec"
local silent_cronjob = require "silent_cronjob"
local twenty_to_five = require "twenty_to_five"

describe("the story twenty to five", function()
	it("ends with 12 events, of which 20 scheduling failures take 5", function()
		local path = os.tmpname()
		os.remove(path)
		twenty_to_five.in_a_store(path)
		local count, failures = 0, 0
		for event in assert(evrec.store { path = path }:query {}) do
			count = count + 1
			if event.reason == "FailedScheduling" then
				failures = failures + 1
				assert.equal(4, event.count)
			else
				assert.equal(1, event.count)
			end
		end
		os.execute(("rm -f %s %s-wal %s-shm"):format(path, path, path))
		assert.equal(12, count)
		assert.equal(5, failures)
	end)

	it("says why its events could not be stored", function()
		local ok, message = pcall(twenty_to_five.in_a_store, "/nowhere/pods.db")
		assert.is_false(ok)
		assert.truthy(message:find("/nowhere/pods.db: No such file or directory", 1, true), message)
	end)
end)

describe("the story of the CronJob that fell silent", function()
	it("ends in silence by default, and stats list the suppressed events", function()
		local seen, dropped, stats = silent_cronjob.play()
		assert.truthy(seen.SuccessfulCreate.message:find("^%(combined from similar events%)"))
		assert.is_true(seen.SuccessfulCreate.minute > 30)
		assert.is_true(seen.SawCompletedJob.minute < 10)
		assert.is_true(seen.SuccessfulDelete.minute < 10)
		local counts = {}
		for _, s in ipairs(stats.suppressed) do
			assert.equal("CronJob", s.kind)
			assert.equal("default", s.namespace)
			assert.equal("hello", s.name)
			assert.equal("rate_limited", s.why)
			counts[s.reason] = s.count
		end
		assert.same(dropped, counts)
		assert.is_true(dropped.SawCompletedJob > 25)
		assert.equal(dropped.SawCompletedJob + dropped.SuccessfulDelete + dropped.SuccessfulCreate, stats.rate_limited)
	end)

	it("ends well with a spam key that has the reason in it", function()
		local seen = silent_cronjob.play { spam_key_func = silent_cronjob.by_reason }
		for _, reason in ipairs { "SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete" } do
			assert.is_true(seen[reason].minute > 30)
		end
	end)
end)
