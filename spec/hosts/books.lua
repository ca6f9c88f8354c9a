-- Compares what the hosts noted with the events that the server has.
local cjson = require "cjson"
local cluster = require "cluster"

local books = {}

-- Returns the number of notes for each object, their sum, and the lines of refused calls.
local function read_notes(path)
	local counts, recorded, refused = {}, 0, {}
	for line in io.lines(path) do
		if line:find "^refused" then
			refused[#refused + 1] = line
		else
			counts[line] = (counts[line] or 0) + 1
			recorded = recorded + 1
		end
	end
	return counts, recorded, refused
end

--- Returns the server's ledger: { events =, counts = { [object] = n }, faults = { message... } }.
function books.ledger(namespace)
	local url = ("%s/ledger?namespace=%s"):format(books.server().server, namespace)
	local output, ok = cluster.run { "curl", "-sSf", "--cacert", books.server().ca_file, url }
	assert(ok, output)
	return cjson.decode(output)
end

--- The connection to the server that hosts.sh started, as options of evrec.sink.kubernetes.
function books.server()
	local folder = os.getenv "HOSTS_SERVER"
	return {
		server = "https://127.0.0.1:" .. cluster.read(folder .. "/port"), ca_file = folder .. "/ca.crt", token = "any",
	}
end

--- Each process makes an event of its own for an object, so the counts of an object's events are added up.
---@return table result recorded, lost, unnoted: occurrences; objects, events; refused, faults: lists of messages
function books.compare(notes, namespace)
	local noted, recorded, refused = read_notes(notes)
	local ledger = books.ledger(namespace)
	local there = ledger.counts
	local result = {
		recorded = recorded, refused = refused, events = ledger.events, faults = ledger.faults, lost = 0, unnoted = 0,
		objects = 0,
	}
	for name, count in pairs(noted) do
		result.objects = result.objects + 1
		local difference = count - (there[name] or 0)
		result.lost = result.lost + math.max(0, difference)
		result.unnoted = result.unnoted + math.max(0, -difference)
		there[name] = nil
	end
	for _, count in pairs(there) do
		result.unnoted = result.unnoted + count
	end
	return result
end

return books
