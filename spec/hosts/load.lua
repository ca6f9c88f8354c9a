-- Makes requests of a host, so many a second, whatever becomes of the host meanwhile, until so many were answered: one
-- in ten about a new object, the others about one hundred regular ones.
--
-- HELD (0) seconds long, one more connection has begun a request: a process that a reload replaces lives as long.
--
-- usage: luajit load.lua PORT REQUESTS RATE [HELD]
local process = require "process"
local socket = require "socket"

local port, requests, rate, held = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4] or 0)
local idle, busy, most = {}, {}, 20 -- connections
local number, answered = 0, 0

local function ask(connection)
	number = number + 1
	local name = number % 10 == 0 and "new-" .. number or "regular-" .. number % 100
	connection.answer = ""
	return connection.socket:send(("GET /%s HTTP/1.1\r\nHost: here\r\n\r\n"):format(name))
end

local function connect()
	local client = socket.tcp()
	client:settimeout(1)
	if not client:connect("127.0.0.1", port) then
		client:close()
		return nil
	end
	client:setoption("tcp-nodelay", true)
	client:settimeout(0)
	return { socket = client }
end

-- Makes a request if a connection can be had.
local function begin()
	local connection = table.remove(idle) or #busy < most and connect()
	if not connection then
		return false
	elseif ask(connection) then
		busy[#busy + 1] = connection.socket
		busy[connection.socket] = connection
	else
		connection.socket:close()
	end
	return true
end

local function is_whole(answer)
	local head, body = answer:match "^(.-)\r\n\r\n(.*)$"
	return head and #body >= tonumber(head:lower():match "content%-length: (%d+)")
end

-- Reads what has come on a connection; returns whether its request is done with.
local function read(connection)
	local part, failure, rest = connection.socket:receive(65536)
	connection.answer = connection.answer .. (part or rest)
	if is_whole(connection.answer) then
		answered = answered + 1
		if failure == "closed" or connection.answer:lower():find("connection: close", 1, true) then
			connection.socket:close()
		else
			idle[#idle + 1] = connection
		end
		return true
	elseif failure == "closed" then
		connection.socket:close()
		return true
	end
end

local function read_all(seconds)
	for _, readable in ipairs((socket.select(busy, nil, seconds))) do
		if read(busy[readable]) then
			busy[readable] = nil
			for i = 1, #busy do
				if busy[i] == readable then
					table.remove(busy, i)
					break
				end
			end
		end
	end
end

local begun = process.time()
local due = begun
local holder = held > 0 and assert(connect()).socket
if holder then
	holder:send "GET /held HTTP/1.1\r\n"
end
while answered < requests do
	local now = process.time()
	assert(now - begun < 30 + 3 * requests / rate, "too few answers")
	if due <= now and answered + #busy < requests then
		if begin() then
			-- Late requests are not made up for all at once.
			due = math.max(due + 1 / rate, now - 0.05)
		else
			due = now + 0.005
		end
	end
	if holder and now - begun > held then
		holder:close()
		holder = nil
	end
	read_all(math.max(0.001, due - process.time()))
end
print(("%d answers, %.1f s"):format(answered, process.time() - begun))
