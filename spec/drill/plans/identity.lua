-- Token and certificates change, by which evrec and the server know each other.
local cluster = require "cluster"
local evrec = require "evrec"

local function put_token(d)
	cluster.write(d.token_file .. ".new", cluster.read(cluster.dir .. "/recorder.token"))
	assert(os.rename(d.token_file .. ".new", d.token_file))
end

return {
	{
		name = "the token changed, and written anew 5 s later",
		sink = function(d)
			d.token_file = cluster.scratch .. "/drill.token"
			put_token(d)
			local options = d:options()
			options.token, options.token_file = nil, d.token_file
			return evrec.sink.kubernetes(options)
		end,
		perform = function(d)
			d:record(2)
			d:cluster "new-token"
			d:record_while "restart"
			d:record(5)
			put_token(d)
			d:record(2)
		end,
	},
	{ name = "the server's certificate changed", perform = function(d)
		d:record(2)
		d:cluster "new-certificate"
		d:record_while "restart"
		d:record(2)
	end },
	{ name = "a stranger's certificate for 10 s", through = "proxy", perform = function(d)
		d:record(2)
		d:fault "stranger"
		d:record_until_met(10)
		d:fault()
		d:record(2)
	end },
}
