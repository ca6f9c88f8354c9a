-- A page in a real browser: headless Chromium, without a network.
local tmpfiles = require "tmpfiles"

local browser = {}

-- --disable-quic to --disable-sync: so that it looks for no host. Chromium's own sandbox refuses to run as root.
local COMMAND = "timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
	.. " --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars"
	.. " --enable-logging=stderr --user-data-dir=%s %s '%s' >%s 2>%s"

local function run(page, fragment, options)
	local prefix, write, remove = tmpfiles.new()
	local path = write("html", page)
	local out, err, profile = prefix .. ".out", prefix .. ".err", prefix .. ".profile"
	local address = "file://" .. path .. (fragment and "#" .. fragment or "")
	os.execute(COMMAND:format(profile, options, address, out, err))
	local text, log = tmpfiles.read(out), tmpfiles.read(err)
	os.execute(("rm -rf %s %s %s"):format(profile, out, err))
	remove()
	local told = {}
	for line in log:gmatch "[^\n]+" do
		told[#told + 1] = line:match 'CONSOLE:%d+%] (.*)'
	end
	return text, table.concat(told, "\n")
end

--- Opens a page, and runs its scripts.
---@param page string HTML
---@param fragment? string of the page's address
---@return string dom as HTML, after the scripts ran
---@return string console what the page and the browser's policies wrote to the console
function browser.dom(page, fragment)
	return run(page, fragment, "--dump-dom")
end

-- A page that opens another one in a frame, and shows what a script finds there as its own text.
local FRAME = [[
<!doctype html><meta charset="utf-8"><iframe src="%s" style="border: 0; width: %dpx; height: 2000px"></iframe>
<pre></pre><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument;
  document.querySelector("pre").textContent = String(%s);
};
</script>
]]

--- Returns the value of an expression of JavaScript, in which `page` is the document of a page, as a text.
---@param page string HTML
---@param width integer of the page, in pixels
---@param expression string
---@param fragment? string of the page's address
---@return string
function browser.value(page, width, expression, fragment)
	local _, write, remove = tmpfiles.new()
	local address = "file://" .. write("html", page) .. (fragment and "#" .. fragment or "")
	local dom = run(FRAME:format(address, width, expression), nil,
		"--disable-web-security --allow-file-access-from-files --dump-dom")
	remove()
	return dom:match "<pre>(.*)</pre>"
end

--- Takes a picture of a page.
---@param page string HTML
---@param scheme "light"|"dark"
---@param path string of the PNG file
---@param fragment? string of the page's address
function browser.screenshot(page, scheme, path, fragment)
	run(page, fragment, ("--window-size=1280,900 --blink-settings=preferredColorScheme=%d --screenshot=%s"):format(
		scheme == "dark" and 0 or 1, path))
end

--- True if the browser is installed.
function browser.is_there()
	return (os.execute "command -v chromium >/dev/null 2>&1") == true
end

return browser
