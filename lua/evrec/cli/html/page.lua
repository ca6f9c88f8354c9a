-- One self-contained page that draws events as a timeline by object: `-o html` of the command's `events` and `replay`.
--
-- The page loads nothing. Its Content-Security-Policy allows one style sheet and one script, by their SHA-256. The
-- events are data: a block of JSON, which the script puts into the page as text.
local cjson = require "cjson"

local script = require "evrec.cli.html.script"
local style = require "evrec.cli.html.style"

local html = {}

-- SHA-256 in base64. A test computes them, and prints the right ones if these are wrong.
local STYLE_HASH = "sha256-uEy1SBgYQTSPwjAuFHnKNcc/dab7VmDwL8AzNzKyT9k="
local SCRIPT_HASH = "sha256-IR93MTw0CVDJljkD8KFzywaPjfhUX1hyy5H87zf6ovo="

local PAGE = [[
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '$STYLE_HASH'; script-src '$SCRIPT_HASH'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Events</title>
<style>$STYLE</style>
</head>
<body>
<main>
<h1 id="title"></h1>
<div id="subtitle" class="quiet"></div>
<dl id="facts" class="facts"></dl>
<div id="views" class="controls" role="tablist" hidden></div>
<div class="controls">
<input id="filter" type="search" placeholder="Filter by object, reason, source or message" aria-label="Filter" autocomplete="off" spellcheck="false">
<button type="button" class="toggle" data-type="Normal" aria-pressed="true">Normal</button>
<button type="button" class="toggle warning" data-type="Warning" aria-pressed="true">Warning</button>
<select id="order" aria-label="Order of objects"><option value="time">oldest first</option><option value="count">most often first</option><option value="name">by name</option></select>
<button type="button" id="whole" class="toggle plain" hidden>Whole time</button>
</div>
<div class="panel">
<div class="time"><div class="quiet" id="span"></div><div id="overview" class="overview" aria-hidden="true"></div></div>
<div id="rows"></div>
</div>
<div class="legend"><span><i class="bar once"></i> happened once</span><span><i class="bar"></i> from the first to the last time; the taller, the more often</span><span id="hatched"><i class="shade"></i> <span></span></span><span>Click a row for its messages. Drag over the chart to look closer. Times are UTC.</span></div>
<noscript>This page draws its events by a script.</noscript>
</main>
<script type="application/json" id="data">$DATA</script>
<script>$SCRIPT</script>
</body>
</html>
]]

-- The escapes in JSON of the characters that could end its element.
local ESCAPES = { ["<"] = "\\u003c", [">"] = "\\u003e", ["&"] = "\\u0026" }

local function encode(data)
	return (cjson.encode(data):gsub("[<>&]", ESCAPES):gsub("\226\128[\168\169]", {
		["\226\128\168"] = "\\u2028", ["\226\128\169"] = "\\u2029",
	}))
end

--- A bar on the lane of an object and a reason: an event, or a span of suppressed occurrences. Times are milliseconds
--- since 1970; both are nil if unknown.
---@class evrec.html.item
---@field object string "Pod/web-0"
---@field namespace string
---@field type string
---@field reason string
---@field first? number
---@field last? number
---@field count integer
---@field message? string of an event
---@field source? string of an event
---@field related? string of an event, "Node/n1"
---@field fate? string of a suppressed span: "held back" or "dropped"
---@field why? string of a suppressed span: the stage that suppressed it, in words

--- A view of a page, which has a tab for each if there are several.
---@class evrec.html.view
---@field name string
---@field facts? string[][] pairs of a title and a value, shown beside the sums
---@field events evrec.html.item[]
---@field suppressed? evrec.html.item[] spans in which occurrences were suppressed

-- Makes a list ready for the page's script. An empty list would be encoded as an object. The script leaves out a bar
-- that ends before it begins, as it does if the clock was set back.
local function drawable(list)
	for _, item in ipairs(list or {}) do
		if item.first and item.first > item.last then
			item.first, item.last = item.last, item.first
		end
	end
	return list and list[1] and list
end

--- Makes the page.
---@param page { title: string, subtitle: string, hatched?: string, views: evrec.html.view[] } hatched: a text for the
---legend, about suppressed spans
---@return string
function html.page(page)
	local views = {}
	for i, view in ipairs(page.views) do
		views[i] = {
			name = view.name, facts = view.facts and view.facts[1] and view.facts,
			events = drawable(view.events), suppressed = drawable(view.suppressed),
		}
	end
	local parts = {
		STYLE_HASH = STYLE_HASH, SCRIPT_HASH = SCRIPT_HASH, STYLE = style, SCRIPT = script,
		DATA = encode { title = page.title, subtitle = page.subtitle, hatched = page.hatched, views = views },
	}
	return (PAGE:gsub("%$([A-Z_]+)", parts))
end

return html
