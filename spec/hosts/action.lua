-- Loaded by HAProxy: an action that records each request.
local recording = require "recording"

core.register_task(function()
	while true do
		recording.broadcaster:poll()
		core.msleep(20)
	end
end)

core.register_action("record", { "http-req" }, function(txn) recording.record(txn.sf:path()) end)
