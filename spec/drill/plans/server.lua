-- The API server stops, dies, or loses its store. Just after its start it has not read its roles yet, and forbids (403)
-- everything to everybody but admins.
return {
	{ name = "frozen for 20 s", perform = function(d)
		d:record(2)
		d:cluster "freeze"
		d:record(20)
		d:cluster "thaw"
		d:record(2)
	end },
	{ name = "frozen, a million occurrences of a hundred events", perform = function(d)
		d:record(1)
		d:cluster "freeze"
		for i = 1, d:scaled(1000000) do
			d:emit("crowd-" .. i % 100)
		end
		d:record(5)
		d:cluster "thaw"
	end },
	{ name = "killed, and restarted after 15 s", perform = function(d)
		d:record(2)
		d:cluster "kill"
		d:record(15)
		d:record_while "restart"
		d:record(2)
	end },
	{ name = "killed every 3 s for a minute", perform = function(d)
		local over = d:after(60)
		repeat
			d:record(3)
			d:cluster "kill"
			d:record_while "restart"
		until over()
	end },
	{ name = "its etcd frozen for 20 s", perform = function(d)
		d:record(2)
		d:cluster "freeze-etcd"
		d:record(20)
		d:cluster "thaw-etcd"
		d:record(2)
	end },
}
