-- Measures the cost of many keys. It fills each of the three caches with KEYS keys, then records events about these
-- keys in random order.
--
-- usage: keys.lua VARIANT KEYS AMOUNT    (README.md lists the variants)
local bench = require "bench"

local KEYS_A_NAME = 1024
local variant, keys, amount = ...
keys = tonumber(keys)

-- One table whose strings change, so that this program itself needs little memory for many keys.
local pod, names, uids = bench.object_of(0), {}, {}
for i = 0, KEYS_A_NAME - 1 do
	names[i], uids[i] = bench.name_of(i), bench.uid_of(i)
end

local recorder, poll = bench.recorder { lru_cache_size = keys, burst_size = variant == "limited" and 1 or 1000000000 }

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
		-- A full-period generator: visits every key once a round, in an order that the processor cannot prefetch.
		key = (key * 1664525 + 1013904223) % keys
	end
	poll()
end

local events, seconds = bench.measure(batch, amount, 0)
print(("%d\t%.9f"):format(events, seconds))
