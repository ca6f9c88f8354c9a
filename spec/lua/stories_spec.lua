-- The two stories of the examples: which events a reader sees at their end.
package.path = "./examples/?.lua;" .. package.path

local events_table = require "events_table"
local silent_cronjob = require "silent_cronjob"
local twenty_to_five = require "twenty_to_five"

describe("the story twenty to five", function()
	it("ends with a table of 12 rows, of which 20 scheduling failures take 5", function()
		local events = twenty_to_five.in_a_file()
		assert.equal(12, #events)
		local failures = 0
		for _, event in ipairs(events) do
			if event.reason == "FailedScheduling" then
				failures = failures + 1
				assert.equal(4, event.count)
			else
				assert.equal(1, event.count)
			end
		end
		assert.equal(5, failures)
		local lines = select(2, events_table.format(events):gsub("[^\n]+", ""))
		assert.equal(13, lines)
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
