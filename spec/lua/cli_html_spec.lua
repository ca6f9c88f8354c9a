-- The parts of a page of events that need no browser. spec/e2e/html_spec.lua opens pages in one.
local cjson = require "cjson"
local command = require "command"
local items = require "evrec.cli.html.items"
local page = require "evrec.cli.html.page"
local shapes = require "event_shapes"
local tmpfiles = require "tmpfiles"

-- The SHA-256 of a text in base64, as a Content-Security-Policy has it.
local function hash_of(text)
	local _, sum = command.shell([[printf %s "$1" | sha256sum | cut -c -64 | tr a-f A-F | basenc --base16 -d | base64]],
		text)
	return "sha256-" .. sum:gsub("%s", "")
end

describe("a page of events", function()
	it("allows its style sheet and its script alone", function()
		local whole = page.page { title = "t", subtitle = "s", views = { { name = "v", events = {} } } }
		local policy = ("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'"):format(
			hash_of(whole:match "<style>(.-)</style>"), hash_of(whole:match "<script>(.-)</script>"))
		assert.equal(policy, whole:match 'Content%-Security%-Policy" content="([^"]*)"')
	end)

	-- The page's script leaves out bars that end before they begin.
	it("has an event whose last occurrence was before its first one, as the clock was set back", function()
		local function item(first, last)
			return { object = "Pod/web-0", namespace = "shop", type = "Normal", reason = "R", first = first, last = last,
				count = 2 }
		end
		local whole = page.page { title = "t", subtitle = "s", views = {
			{ name = "v", events = { item(3600000, 1000), item() }, suppressed = { item(9000, 8000) } },
		} }
		local view = cjson.decode(whole:match '<script type="application/json" id="data">(.-)</script>').views[1]
		assert.same({ 1000, 3600000 }, { view.events[1].first, view.events[1].last })
		assert.is_nil(view.events[2].first)
		assert.same({ 8000, 9000 }, { view.suppressed[1].first, view.suppressed[1].last })
	end)
end)

describe("the page of evrec events", function()
	it("names its source, its time and all of its filters", function()
		local _, write, remove = tmpfiles.new()
		local path = write("json", shapes.json(shapes.plain("a", "shop", 1700000000)) .. "\n")
		local function subtitle(...)
			local status, output, told = command.evrec("events", "--lines", path, "-n", "shop", "-o", "html", ...)
			assert.equal(0, status, told)
			local data = cjson.decode(output:match '<script type="application/json" id="data">(.-)</script>')
			assert.equal("Events in shop", data.title)
			local rest = data.subtitle:match "^from %S+, read %d+%-%d+%-%d+ %d+:%d+:%d+ UTC(.*)$"
			assert.truthy(data.subtitle:find("from " .. path, 1, true) and rest, data.subtitle)
			return rest
		end
		assert.equal("", subtitle())
		assert.equal("; for pod/web-0; mentions node/n1; types Normal, Warning; reason R; action A; controller c; "
			.. "instance i; since 2023-11-14 22:13:20 UTC; before 2026-11-23 06:00:00 UTC; fields type!=Normal; the newest 20",
			subtitle("--for", "pod/web-0", "--mentions", "node/n1", "--types", "Normal,Warning", "--reason", "R",
				"--action", "A", "--controller", "c", "--instance", "i", "--since", "1700000000",
				"--before", "2026-11-23T06:00:00Z", "--field-selector", "type!=Normal", "--limit", "20"))
		remove()
	end)
end)

describe("the suppressions of a store", function()
	local function note(fields)
		local made = {
			object = { kind = "Pod", namespace = "shop", name = "web-0" }, type = "Normal", reason = "R",
			stage = "rate_limited", cause = "", count = 3, first = 1700000000, last = 1700000050,
		}
		for key, value in pairs(fields) do
			made[key] = value
		end
		return made
	end

	local function hatched(...)
		local notes, i = { ... }, 0
		return items.of_suppressions(function()
			i = i + 1
			return notes[i]
		end, function() return true end)
	end

	it("are hatched if no count may have them, those of one kind in one span", function()
		local spans = hatched(note { first = 1700000060, last = 1700000110 }, note {},
			note { first = 1699990000, last = 1699990050 }, note { stage = "dropped", cause = "max_age", count = 1 })
		assert.equal(3, #spans)
		assert.same({ 6, "held back", "rate limited" }, { spans[1].count, spans[1].fate, spans[1].why })
		assert.same({ 1700000000000, 1700000110000 }, { spans[1].first, spans[1].last })
		assert.same({ 3, "held back" }, { spans[2].count, spans[2].fate })
		assert.same({ 1, "dropped", "dropped: max_age" }, { spans[3].count, spans[3].fate, spans[3].why })
	end)

	it("are hatched in the namespace of the events, also of an object that has none", function()
		local prefix, _, remove = tmpfiles.new()
		local store = prefix .. ".db"
		for _ = 1, 3 do
			assert.equal(0, (command.evrec("record", "--store", store, "--burst-size", "1", "node/n1", "Warning", "R", "m")))
		end
		local _, default_page = command.evrec("events", "--store", store, "-o", "html")
		local _, other_page = command.evrec("events", "--store", store, "-n", "shop", "-o", "html")
		remove()
		os.execute(("rm -f %s.*"):format(prefix))
		assert.truthy(default_page:find('"why":"rate limited"', 1, true))
		assert.is_nil(other_page:find('"why":"rate limited"', 1, true))
	end)

	it("are not hatched if the count of a written event has them", function()
		assert.same({}, hatched(note { stage = "aggregated" }, note { stage = "merged" }, note { stage = "lost" },
			note { stage = "finished" }))
	end)
end)
