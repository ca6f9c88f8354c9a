-- Pages of events in a real browser, and texts in them that try to be more than texts.
local browser = require "browser"
local tmpfiles = require "tmpfiles"

local function skip(reason)
	describe("a page of events", function()
		pending("skipped: " .. reason)
	end)
end

if _VERSION ~= "Lua 5.4" then
	return skip "a page does not depend on the version of Lua that made it; Lua 5.4 makes it"
elseif not browser.is_there() then
	return skip "there is no chromium"
end

local html = require "evrec.cli.html.page"

local START = 1700000000000

local function item(fields)
	local made = {
		object = "Pod/web-0", namespace = "shop", type = "Normal", reason = "Pulled", first = START, last = START + 60000,
		count = 3, message = "Container image is present", source = "kubelet, node-1",
	}
	for key, value in pairs(fields or {}) do
		made[key] = value
	end
	return made
end

local function page(events, suppressed)
	return html.page {
		title = "Events", subtitle = "of a test", views = { { name = "all", events = events, suppressed = suppressed } },
	}
end

-- The body without the data, from which the script drew it.
local function drawn(dom)
	return (dom:match("<body>.*"):gsub('<script type="application/json".-</script>', ""):gsub("<script>.-</script>", ""))
end

-- Counts occurrences of a plain text.
local function count(text, part)
	local n, at = 0, 1
	while true do
		local from, to = text:find(part, at, true)
		if not from then
			return n
		end
		n, at = n + 1, to + 1
	end
end

local HOSTILE = {
	'</script><script>document.title = "taken"</script>',
	'<img src=x onerror=\'document.title = "taken"\'>',
	'"><svg onload=document.title="taken">',
	"<!--<script>", "]]><style>*{display:none}</style>",
	"javascript:document.title='taken'", "&lt;b&gt;&amp;#60;",
	"\226\128\174 drawkcab \226\129\166 isolated", "\27[2J\27]0;taken\7", "line\226\128\168and\226\128\169paragraph",
	"cut \255\254 bytes", "__proto__", "constructor",
}

describe("a page of events", function()
	it("draws a bar for each event, on a lane of its object and reason", function()
		local dom, console = browser.dom(page({
			item(), item { reason = "BackOff", type = "Warning", count = 1024, last = START + 3600000 },
			item { object = "Node/n1", namespace = "default", reason = "Ready", count = 1 },
		}, { item { reason = "BackOff", type = "Warning", count = 12, why = "spam filter" } }))
		local body = drawn(dom)
		assert.equal("", console)
		assert.equal(3, count(body, 'class="lane"'))
		assert.equal(2, count(body, '<section class="object">'))
		assert.truthy(body:find("×1,024, 12 suppressed", 1, true))
		assert.equal(1, count(body, '<div class="shade"'))
	end)

	it("shows only the events that its filter finds, in any field", function()
		local events = { item(), item { object = "Pod/web-1", message = "of another image" } }
		for _, filter in ipairs { "web-1", "another", "ANOTHER%20shop" } do
			local body = drawn((browser.dom(page(events), "filter=" .. filter)))
			assert.equal(1, count(body, 'class="lane"'), filter)
			assert.truthy(body:find("web-1", 1, true))
		end
		assert.truthy(drawn((browser.dom(page(events), "filter=none"))):find("No event matches.", 1, true))
	end)

	it("draws events whose times are not known, and no event at all", function()
		local unknown = item()
		unknown.first, unknown.last = nil, nil
		local dom, console = browser.dom(page { unknown })
		assert.equal("", console)
		assert.equal(1, count(drawn(dom), 'class="lane"'))
		assert.equal(0, count(drawn(dom), "1970") + count(drawn(dom), "1969"))
		dom, console = browser.dom(page {})
		assert.equal("", console)
		assert.truthy(drawn(dom):find('id="span"></div>', 1, true))
		assert.equal(0, count(drawn(dom), 'class="tick'))
		assert.truthy(drawn(dom):find("No event matches.", 1, true))
	end)

	it("reads no text of an event as HTML, and runs none", function()
		local events = {}
		for i, text in ipairs(HOSTILE) do
			for _, field in ipairs { "object", "namespace", "type", "reason", "message", "source", "related" } do
				events[#events + 1] = item { object = "Pod/p" .. i, [field] = text }
			end
		end
		local whole = page(events, { item { why = HOSTILE[1] } })
		local dom, console = browser.dom(whole)
		local body = drawn(dom)
		assert.equal("", console)
		assert.truthy(dom:find("<title>Events</title>", 1, true))
		assert.equal(2, count(dom, "<script"))
		assert.equal(1, count(dom, "<style"))
		for _, element in ipairs { "<img", "<svg", "<b onmouse", "onerror=\"", "onload=\"" } do
			assert.equal(0, count(body, element), element)
		end
		-- Marks of direction and control characters are shown as codes.
		for _, bytes in ipairs { "\226\128\174", "\226\129\166", "\27", "\226\128\168" } do
			assert.equal(0, count(body, bytes))
		end
		assert.truthy(body:find("\\u202e drawkcab", 1, true))
	end)

	it("is light or dark as the reader's system is", function()
		local _, write, remove = tmpfiles.new()
		local light, dark = write("light.png", ""), write("dark.png", "")
		local whole = page { item(), item { reason = "BackOff", type = "Warning", count = 7 } }
		browser.screenshot(whole, "light", light)
		browser.screenshot(whole, "dark", dark)
		local pictures = { tmpfiles.read(light), tmpfiles.read(dark) }
		remove()
		for _, picture in ipairs(pictures) do
			assert.truthy(#picture > 10000 and picture:sub(2, 4) == "PNG")
		end
		assert.not_equal(pictures[1], pictures[2])
	end)
end)
