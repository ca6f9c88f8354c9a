-- A proxy answers in the server's place, or spoils its answers.
local function under(name, kind, share, delay)
	return { name = name, through = "proxy", perform = function(d)
		d:record(2)
		d:fault(kind, share, delay and d:scaled(delay))
		d:record_until_met(10)
		d:fault()
		d:record(1)
	end }
end

return {
	under("429 with Retry-After", "throttled", 0.5),
	under("429 without", "limited", 0.5),
	under("500", "internal", 0.5),
	under("503", "unavailable", 0.5),
	under("half answers", "half", 0.2),
	under("connections reset", "reset", 0.05),
	{ name = "idle connections closed", through = "proxy", perform = function(d)
		d:record(2)
		d:fault("idle", 1, 0.01)
		for moment = 1, 20, d.scale < 1 and 4 or 1 do
			d:record(0.5)
			d:calm(moment / 1000)
		end
		d:record_until_met(0)
		d:fault()
		d:record(1)
	end },
	under("a tenth of the answers 30 s late", "delay", 0.1, 30),
	under("404 to PATCH: the event has gone", "expired", 0.5),
	under("409 to POST: the name is taken", "conflict", 0.5),
	under("any of these", "any", 0.3),
}
