-- Draws the chart of the README in SVG: the cost of recording one event.
local results = require "results"

local chart = {}

local BARS = {
	{ id = "client-go/recorder", title = "client-go, end to end", class = "other" },
	{ id = "client-go/correlator", title = "client-go, correlator", class = "reference" },
	{ id = "5.4/recorder", title = "evrec, Lua 5.4", class = "ours" },
	{ id = "5.3/recorder", title = "evrec, Lua 5.3", class = "ours" },
	{ id = "luajit/recorder", title = "evrec, LuaJIT", class = "ours" },
	{ id = "c/recorder", title = "evrec, C", class = "ours" },
	{ id = "5.4/baseline", title = "baseline, Lua 5.4", class = "baseline" },
}
local REFERENCE = "client-go/correlator"
local TITLES = {
	duplicate = "Duplicate", similar = "Similar, aggregated", unique = "Unique, with eviction", limited = "Rate-limited",
}

-- The panels are in two columns. All sizes are in pixels.
local WIDTH, MARGIN, TOP = 920, 24, 76
local LABEL, BAR, STEP, VALUE = 132, 14, 20, 52
local PANEL = (WIDTH - 3 * MARGIN) / 2
local PLOT = PANEL - LABEL - VALUE

local STYLE = [[
	text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
	.title { font-size: 17px; font-weight: 600; }
	.panel { font-size: 13px; font-weight: 600; }
	.quiet { fill: #59636e; }
	.value { stroke: #ffffff; stroke-width: 4px; paint-order: stroke; }
	.page { fill: #ffffff; }
	.grid { stroke: #d1d9e0; stroke-width: 1; }
	.other { fill: #afb8c1; } .reference { fill: #818b98; } .ours { fill: #0969da; } .baseline { fill: #8fc2f7; }
	@media (prefers-color-scheme: dark) {
		text { fill: #f0f6fc; }
		.quiet { fill: #9198a1; }
		.value { stroke: #0d1117; }
		.page { fill: #0d1117; }
		.grid { stroke: #3d444d; }
		.other { fill: #545d68; } .reference { fill: #7d8590; } .ours { fill: #4493f8; } .baseline { fill: #264f86; }
	}
]]

local function duration(ns)
	if ns < 1000 then
		return ("%.0f ns"):format(ns)
	end
	return (ns < 10000 and "%.1f µs" or "%.0f µs"):format(ns / 1000)
end

local function factor(value)
	return (value < 9.95 and "%.1f×" or "%.0f×"):format(value)
end

function chart.draw(r)
	local out = {}
	local function put(...) table.insert(out, (...):format(select(2, ...))) end
	local function text(x, y, class, anchor, content)
		put('<text x="%.0f" y="%.0f" class="%s" text-anchor="%s">%s</text>', x, y, class, anchor, content)
	end

	-- All panels have the same logarithmic scale, from one power of ten to another.
	local least, most = math.huge, 0
	local panels = {}
	for _, workload in ipairs(results.workloads) do
		local panel = { name = workload.name }
		for _, bar in ipairs(BARS) do
			local t = r.ns[workload.name] and r.ns[workload.name][bar.id]
			if t then
				table.insert(panel, { ns = t.median, title = bar.title, class = bar.class, id = bar.id })
				least, most = math.min(least, t.median), math.max(most, t.median)
			end
		end
		if #panel > 0 then
			table.insert(panels, panel)
		end
	end
	local from, to = math.floor(math.log(least, 10)), math.ceil(math.log(most, 10))
	local function length(ns)
		return (math.log(ns, 10) - from) / (to - from) * PLOT
	end

	local height_of_panel = 34 + #BARS * STEP + 34
	local height = TOP + (#panels + 1) // 2 * height_of_panel
	put('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" role="img"', WIDTH, height,
		WIDTH, height)
	put('aria-label="The cost of recording one event: evrec and client-go">')
	put("<style>\n%s</style>", STYLE)
	put('<rect class="page" width="100%%" height="100%%" rx="8"/>')
	text(MARGIN, 34, "title", "start", "The cost of recording one event")
	text(MARGIN, 56, "quiet", "start",
		"CPU time on one core, logarithmic; less is better. × is how many times faster than client-go’s correlator alone.")

	for i, panel in ipairs(panels) do
		local left = MARGIN + (i - 1) % 2 * (PANEL + MARGIN)
		local top = TOP + (i - 1) // 2 * height_of_panel
		local zero = left + LABEL
		local bottom = top + 34 + #panel * STEP
		text(left, top + 18, "panel", "start", TITLES[panel.name])
		for power = from, to do
			local x = zero + (power - from) / (to - from) * PLOT
			put('<line class="grid" x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f"/>', x, top + 30, x, bottom)
			text(x, bottom + 14, "quiet", "middle", (duration(10.0 ^ power):gsub("%.0", "")))
		end
		local reference
		for _, bar in ipairs(panel) do
			reference = bar.id == REFERENCE and bar.ns or reference
		end
		for j, bar in ipairs(panel) do
			local y = top + 34 + (j - 1) * STEP
			local label = duration(bar.ns)
			if reference and bar.class == "ours" then
				label = label .. " · " .. factor(reference / bar.ns)
			end
			text(zero - 8, y + BAR - 3, "", "end", bar.title)
			put('<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%d" rx="2"/>', bar.class, zero, y, length(bar.ns),
				BAR)
			text(zero + length(bar.ns) + 6, y + BAR - 3, bar.class == "ours" and "value" or "value quiet", "start", label)
		end
	end
	put("</svg>\n")
	return table.concat(out, "\n")
end

return chart
