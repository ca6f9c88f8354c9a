-- The requests that evrec makes for series equal those that client-go made when `make vectors` wrote the vectors.
-- README.md defines their format.

local evrec = require "evrec"
local cjson = require "cjson"

local FILE = "spec/conformance/vectors/series.jsonl"
local START = 946684800 -- 2000-01-01T00:00:00Z
local TICK = 360

-- ---- the server ----

-- An event's table without its name, and without what is empty or no part of the comparison.
local function body_of(event)
	local body = {}
	for key, value in pairs(event) do
		if type(value) ~= "table" or next(value) ~= nil then
			body[key] = value
		end
	end
	body.kind, body.apiVersion = nil, nil
	if body.metadata then
		body.metadata.name = nil
	end
	for _, key in ipairs { "regarding", "related" } do
		if body[key] then
			body[key].resourceVersion, body[key].fieldPath = nil, nil
		end
	end
	return body
end

local Server = {}
Server.__index = Server

function Server:add(verb, name, body, status)
	local state = body.series and body.series.state
	if state then
		body.series.state = nil
	end
	self.made[name] = self.made[name] or self.step
	self.requests[#self.requests + 1] = {
		at = self.clock:now() - START, verb = verb, made = self.made[name], nth = #self.requests, body = body, state = state,
		status = status,
	}
end

function Server:create(event)
	local name = event.metadata.name
	assert(not self.stored[name], "an event was made twice")
	self:add("create", name, body_of(event:to_table "events.k8s.io/v1"), self.rejects and 400 or 201)
	if self.rejects then
		return nil, 400
	end
	self.stored[name] = true
	return event:to_table "events.k8s.io/v1"
end

function Server:patch(event, patch)
	local name = event.metadata.name
	local status = self.stored[name] and 200 or 404
	self:add("patch", name, body_of(cjson.decode(patch)), status)
	if status == 404 then
		return nil, 404
	end
	return event:to_table "events.k8s.io/v1"
end

function Server:forget(step)
	for name, made in pairs(self.made) do
		if made == step then
			self.stored[name] = nil
		end
	end
end

-- The requests since the last call, by time and event.
function Server:take()
	local out = self.requests
	table.sort(out, function(a, b)
		if a.at ~= b.at then
			return a.at < b.at
		elseif a.made ~= b.made then
			return a.made < b.made
		end
		return a.nth < b.nth
	end)
	self.requests = {}
	for _, request in ipairs(out) do
		request.nth = nil
	end
	return out
end

-- ---- running a vector ----

-- The requests that client-go made in a step. The body of a create has the fields of its event's template too.
local function expected(vector, step)
	local out = {}
	for i, request in ipairs(step.requests or {}) do
		local made = tonumber(request.name:match "%d+$")
		local body = request.body
		if request.verb == "create" then
			for key, value in pairs(vector.templates[vector.steps[made].event]) do
				body[key] = body[key] or value
			end
			body = body_of(body)
		end
		out[i] = {
			at = request.at, verb = request.verb, made = made, body = body, state = request.state, status = request.status,
		}
	end
	return out
end

-- An instance that ends with the name of this machine is shown without that, as the vectors have it.
local function without_host_name(requests)
	for _, request in ipairs(requests) do
		local body = request.body
		local prefix = body.reportingController and body.reportingController .. "-"
		if prefix and body.reportingInstance:sub(1, #prefix) == prefix then
			body.reportingInstance = prefix
		end
	end
	return requests
end

local Run = {}
Run.__index = Run

local function new_run(vector)
	local clock = evrec.fake_clock(START)
	local server = setmetatable({ clock = clock, made = {}, stored = {}, requests = {}, rejects = false }, Server)
	local broadcaster = evrec.broadcaster {
		clock = clock,
		on_error = function(message, name)
			server.error = name ~= "rejected" and message or server.error
		end,
	}
	broadcaster:start_recording_to_sink(evrec.sink.lua {
		api = "events.k8s.io/v1", max_series = vector.max_series,
		create = function(event) return server:create(event) end,
		patch = function(event, patch) return server:patch(event, patch) end,
	})
	return setmetatable({ clock = clock, server = server, broadcaster = broadcaster, recorders = {} }, Run)
end

-- Polls until a poll makes no request.
function Run:poll()
	repeat
		local before = #self.server.requests
		self.broadcaster:poll()
	until #self.server.requests == before
end

-- evrec is polled at every tick on the way to `t`, and before what happens then.
function Run:advance(t)
	local now = self.clock:now() - START
	while now < t do
		now = math.min((math.floor(now / TICK) + 1) * TICK, t)
		self.clock:set(START + now)
		self:poll()
	end
end

function Run:record(template, note)
	local source = template.reportingController .. " " .. (template.reportingInstance or "")
	self.recorders[source] = self.recorders[source] or self.broadcaster:new_recorder {
		component = template.reportingController, instance = template.reportingInstance,
	}
	assert(self.recorders[source]:emit {
		regarding = template.regarding, related = template.related, type = template.type, reason = template.reason,
		action = template.action, note = note,
	})
	self:poll()
end

local function run(vector)
	local r = new_run(vector)
	for i, step in ipairs(vector.steps) do
		r.server.step = i
		r:advance(step.t)
		if step.event then
			r:record(vector.templates[step.event], step.note)
		elseif step.forget then
			r.server:forget(step.forget)
		elseif step.reject ~= nil then
			r.server.rejects = step.reject
		elseif step.flush then
			r.broadcaster:flush(1)
		end
		assert.same(expected(vector, step), without_host_name(r.server:take()), "step " .. i)
	end
	r.broadcaster:shutdown(0)
	assert.is_nil(r.server.error)
end

describe("client-go's requests for series", function()
	for line in io.lines(FILE) do
		local vector = cjson.decode(line)
		it(vector.name, function() run(vector) end)
	end
end)
