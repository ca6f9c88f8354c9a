-- Pages of events in a real browser, and texts in them that try to be more than texts.
local browser = require "browser"
local command = require "command"
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
		}, { item { reason = "BackOff", type = "Warning", count = 12, fate = "held back", why = "rate limited" } }))
		local body = drawn(dom)
		assert.equal("", console)
		assert.equal(3, count(body, 'class="lane"'))
		assert.equal(2, count(body, '<section class="object">'))
		assert.truthy(body:find("×1,024, 12 held back", 1, true))
		assert.truthy(body:find('title="12 held back: rate limited"', 1, true))
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

	it("shows the time that its address names, if that is a part of the whole", function()
		local events = { item(), item { reason = "Late", first = START + 3000000, last = START + 3600000 } }
		local function lanes(fragment)
			local dom, console = browser.dom(page(events), fragment)
			assert.equal("", console)
			return count(drawn(dom), 'class="lane"')
		end
		assert.equal(1, lanes(("from=%d&to=%d"):format(START, START + 60000)))
		for _, fragment in ipairs {
			"from=9e99&to=9e99", "from=1&to=2", ("from=%d&to=%d"):format(START + 60000, START), "from=x&to=y",
			("from=%d"):format(START), ("to=%d"):format(START + 1), ("from=%d&to=9e99"):format(START),
			("from=-9e99&to=%d"):format(START), "from=NaN&to=NaN", "from=-Infinity&to=Infinity", "from=%d&to=%s", "view=9e99",
		} do
			assert.equal(2, lanes(fragment), fragment)
		end
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

	it("opens the details of all lanes if its address says so", function()
		local events = { item { message = "first message" }, item { reason = "BackOff", message = "second message" } }
		assert.equal(0, count(drawn((browser.dom(page(events)))), 'class="details"'))
		local body = drawn((browser.dom(page(events), "open=all")))
		assert.equal(2, count(body, 'class="details"') + count(body, 'aria-expanded="false"'))
		assert.truthy(body:find('<td>kubelet, node-1</td><td></td><td class="message"><bdi>second message</bdi></td>', 1,
			true))
	end)

	it("cuts no reason, whatever stands beside it", function()
		local events, suppressed = {}, {}
		for i, reason in ipairs { "SawCompletedJob", "FailedScheduling", ("Reason"):rep(20) } do
			events[i] = item { reason = reason, count = 1234567 }
			suppressed[i] = item { reason = reason, count = 1234, fate = "held back", why = "rate limited" }
		end
		for _, width in ipairs { 1280, 600 } do
			assert.equal("true true true", browser.value(page(events, suppressed), width, [=[
				[...page.querySelectorAll(".reason")].map((r) => r.scrollWidth <= r.clientWidth).join(" ")]=]))
		end
	end)

	-- A text as the page shows it, and as the DOM's text nodes are written in HTML.
	local function shown(text)
		local codes = { ["\27"] = "\\u001b", ["\7"] = "\\u0007", ["\226\128\168"] = "\\u2028", ["\226\128\169"] = "\\u2029",
			["\226\128\174"] = "\\u202e", ["\226\129\166"] = "\\u2066", ["\226\129\169"] = "\\u2069",
			["\254"] = "\239\191\189", ["\255"] = "\239\191\189", ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }
		return (text:gsub("[\226][\128\129][\166-\174]", codes):gsub("[\7\27\254\255&<>]", codes))
	end

	it("reads no text of an event as HTML, and runs none", function()
		local views = {}
		for i, text in ipairs(HOSTILE) do
			local events, suppressed = {}, {}
			for _, field in ipairs { "object", "namespace", "type", "reason", "message", "source", "related" } do
				events[#events + 1] = item { object = "Pod/" .. field, [field] = text }
			end
			for _, field in ipairs { "object", "namespace", "type", "reason", "fate", "why" } do
				suppressed[#suppressed + 1] = item { object = "Job/" .. field, fate = "held back", why = "w", [field] = text }
			end
			views[i] = { name = "View " .. text, facts = { { "Fact " .. text, "Value " .. text } }, events = events,
				suppressed = suppressed }
		end
		local all = table.concat(HOSTILE, " ")
		local whole = html.page { title = "Title " .. all, subtitle = "Subtitle " .. all, hatched = "Hatched " .. all,
			views = views }
		for i, text in ipairs(HOSTILE) do
			local dom, console = browser.dom(whole, "open=all&view=" .. i - 1)
			local body = drawn(dom)
			assert.equal("", console)
			assert.truthy(dom:find("<title>Events</title>", 1, true))
			assert.equal(2, count(dom, "<script"))
			assert.equal(1, count(dom, "<style"))
			for _, element in ipairs { "<img", "<svg", "<b onmouse", "onerror=\"", "onload=\"" } do
				assert.equal(0, count(body, element), element)
			end
			-- Marks of direction and control characters are shown as codes.
			for _, bytes in ipairs { "\226\128\174", "\226\129\166", "\27", "\7", "\226\128\168", "\226\128\169" } do
				assert.equal(0, count(body, bytes))
			end
			-- Each text is there, as a text.
			local seen, words = shown(text), body:gsub("<[^>]*>", "")
			for _, place in ipairs {
				'<bdi class="reason">' .. seen .. "</bdi>", '<td class="message"><bdi>' .. seen .. "</bdi></td>",
				"<td>" .. seen .. "</td>", "<dt>Fact " .. seen .. "</dt>", "<dd>Value " .. seen .. "</dd>",
				">View " .. seen .. "</button>", "  in " .. seen .. "</span>",
				", 3 " .. seen .. "</span>", -- the fate of a suppressed span
			} do
				assert.truthy(body:find(place, 1, true), place)
			end
			assert.equal(2, count(body, '<bdi class="reason">' .. seen .. "</bdi>"))
			assert.equal(2, count(body, '<td class="message"><bdi>' .. seen .. "</bdi></td>"))
			for _, before in ipairs { "Title ", "Subtitle ", "Hatched " } do
				assert.truthy(words:find(before .. shown(all), 1, true))
			end
		end
	end)

	-- Takes a picture in either scheme, and looks whether they are pictures, and differ.
	local function check_pictures(whole)
		local _, write, remove = tmpfiles.new()
		local light, dark = write("light.png", ""), write("dark.png", "")
		browser.screenshot(whole, "light", light)
		browser.screenshot(whole, "dark", dark)
		local pictures = { tmpfiles.read(light), tmpfiles.read(dark) }
		remove()
		for _, picture in ipairs(pictures) do
			assert.truthy(#picture > 10000 and picture:sub(2, 4) == "PNG")
		end
		assert.not_equal(pictures[1], pictures[2])
	end

	it("is light or dark as the reader's system is", function()
		check_pictures(page { item(), item { reason = "BackOff", type = "Warning", count = 7 } })
	end)

	it("shows what each variant of evrec replay holds back", function()
		local status, whole, told = command.evrec("replay", "spec/lua/traces/recorded.trace", "-o", "html", "--burst-size",
			"50", "--against", "--correlate", "series")
		assert.equal(0, status, told)
		for view, lost in pairs { [0] = true, [1] = false, [2] = false } do
			local dom, console = browser.dom(whole, "open=all&view=" .. view)
			local body = drawn(dom)
			assert.equal("", console)
			assert.equal(3, count(body, 'role="tab"'))
			assert.equal(3, count(body, 'class="lane"'))
			assert.truthy(body:find("a trace of evrec: exact; hatched spans were held back", 1, true))
			assert.truthy(body:find("held back by the rate limit after the last write, so that no ×N has them", 1, true))
			assert.equal(lost, body:find('SawCompletedJob</bdi><span class="count">×%d+, %d+ held back</span>') ~= nil, view)
			assert.equal(lost, body:find("<bdi>no write followed; %d+ of %d+ occurrences were rate limited</bdi>") ~= nil)
			assert.equal(lost, body:find('<div class="shade"', 1, true) ~= nil)
		end
		check_pictures(whole)
	end)
end)
