-- What it costs to have many keys: fills the three caches with KEYS each, then counts events about random ones of them.
--
-- usage: keys.lua WAY KEYS AMOUNT    (README.md says which there are)
local bench = require "bench"

local KEYS_A_NAME = 1024
local way, keys, amount = ...
keys = tonumber(keys)

-- One table whose strings change: the keys are many, what the caller keeps is small.
local pod, names, uids = bench.object_of(0), {}, {}
for i = 0, KEYS_A_NAME - 1 do
	names[i], uids[i] = bench.name_of(i), bench.uid_of(i)
end

local recorder, poll = bench.recorder { lru_cache_size = keys, burst_size = way == "limited" and 1 or 1000000000 }

for key = 0, keys - 1 do
	pod.name, pod.uid = names[math.floor(key / KEYS_A_NAME)], uids[key % KEYS_A_NAME]
	recorder:event(pod, bench.TYPE, bench.REASON, bench.MESSAGE)
	if key % bench.BATCH == 0 then
		poll()
	end
end

local key = 0
local function batch()
	for _ = 1, bench.BATCH do
		pod.name, pod.uid = names[math.floor(key / KEYS_A_NAME)], uids[key % KEYS_A_NAME]
		recorder:event(pod, bench.TYPE, bench.REASON, bench.MESSAGE)
		-- Comes to every key once before it starts again, in an order that no cache foresees.
		key = (key * 1664525 + 1013904223) % keys
	end
	poll()
end

local events, seconds = bench.measure(batch, amount, 0)
print(("%d\t%.9f"):format(events, seconds))
