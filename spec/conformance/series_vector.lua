-- A trace of series with the oracle's answers as a line of JSON, for series_vectors_spec.lua. README.md defines the
-- format.

local trace = require "trace"

-- Exact for the traces of generate_series.trace(seed, true).
local function seconds(ns)
	return ns // 1000000000 + ns % 1000000000 / 1e9
end

local function equal(a, b)
	return trace.json(a) == trace.json(b)
end

-- An object as requests have it: without what is no part of a series' key.
local function plain(object)
	local out = trace.copied(object)
	out.resourceVersion, out.fieldPath = nil, nil
	return out
end

-- The fields of a request that its event's template does not tell.
local function request_of(request, template)
	local body = {}
	for key, value in pairs(request.body) do
		local given = template[key]
		if key == "regarding" or key == "related" then
			given = given and plain(given)
		end
		if given == nil or not equal(value, given) then
			body[key] = value
		end
	end
	return {
		at = seconds(math.tointeger(request.at)), verb = request.verb, name = request.name, state = request.state,
		status = math.tointeger(request.status), body = body,
	}
end

return function(name, t, answers)
	local templates, known, steps, of_step = {}, {}, {}, {}
	for i, step in ipairs(t.steps) do
		local out = { t = seconds(math.tointeger(step.t)), forget = step.forget, flush = step.flush,
			reject = step.reject }
		if step.event then
			local template = trace.copied(step.event)
			template.note = nil
			local text = trace.json(template)
			if not known[text] then
				templates[#templates + 1] = template
				known[text] = #templates
			end
			out.event, out.note, of_step[i] = known[text], step.event.note, template
		end
		for k, request in ipairs(answers[i].requests or {}) do
			out.requests = out.requests or {}
			out.requests[k] = request_of(request, of_step[tonumber(request.name:match "%d+$")])
		end
		steps[i] = out
	end
	return trace.json { name = name, max_series = t.options.max_series, templates = templates, steps = steps }
end
