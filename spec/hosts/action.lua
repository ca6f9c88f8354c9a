-- Loaded by HAProxy: an action that records each request.
local recording = require "recording"

core.register_action("record", { "http-req" }, function(txn) recording.record(txn.sf:path()) end)
