-- `make install` into a scratch folder, which takes the place of /usr/local for the Luas and the hosts that look there.
local cluster = require "cluster"
local quickstart = require "quickstart"

if _VERSION ~= "Lua 5.4" then
	describe("make install", function()
		pending("skipped: the specs on Lua 5.4 start every Lua")
	end)
	return
end

local ABI = { ["lua5.4"] = "5.4", ["lua5.3"] = "5.3", luajit = "5.1" }
local may_mount = select(2, cluster.run { "unshare", "--mount", "true" })
local installed = cluster.scratch .. "/installed"

local function make(what)
	local text, ok = quickstart.run(quickstart.here, ("make -s %s DESTDIR=%s"):format(what, installed))
	assert(ok, text)
end

-- The installed files whose path has this pattern.
local function files(pattern)
	local found = {}
	for path in cluster.run { "find", installed, "-type", "f" }:gmatch "[^\n]+" do
		if path:find(pattern) then
			found[#found + 1] = path:sub(#installed + 1)
		end
	end
	table.sort(found)
	return found
end

-- Runs a command that finds the installed files in /usr/local, and no others.
local function with_installed(...)
	return cluster.run { "env", "-u", "LUA_PATH", "-u", "LUA_CPATH", "unshare", "--mount", "sh", "-euc",
		'mount --bind "$0/usr/local" /usr/local; cd /; exec "$@"', installed, ... }
end

describe("make install", function()
	before_each(function() cluster.run { "rm", "-rf", installed } end)

	it("installs for every Lua below /usr/local, where each looks", function()
		make "install"
		for lua, abi in pairs(ABI) do
			local paths = cluster.run { "env", "-u", "LUA_PATH", "-u", "LUA_CPATH", lua, "-e",
				"print(';' .. package.path .. ';' .. package.cpath .. ';')" }
			for _, path in ipairs { "share/lua/%s/?.lua", "share/lua/%s/?/init.lua", "lib/lua/%s/?.so" } do
				assert.truthy(paths:find((";/usr/local/" .. path .. ";"):format(abi), 1, true), lua .. ": " .. paths)
			end
			assert.same({ ("/usr/local/lib/lua/%s/evrec/core.so"):format(abi) }, files("lib/lua/" .. abi))
			assert.equal(#files "share/lua/5%.4/", #files("share/lua/" .. abi .. "/"))
			assert.same({ ("/usr/local/share/lua/%s/evrec/init.lua"):format(abi) },
				files("share/lua/" .. abi .. "/evrec/init"))
		end
	end)

	it("lets every Lua, nginx and HAProxy find evrec without a path", function()
		if not may_mount then
			return pending "skipped: no right to mount a folder (unshare --mount)"
		end
		make "install"
		local program = "print(require('evrec')._VERSION, package.searchpath and package.searchpath('evrec', package.path))"
		for lua in pairs(ABI) do
			assert.matches("^0%.%d+%.%d+\t?[/%w.]*\n$", (with_installed(lua, "-e", program)))
		end
		assert.matches("^evrec 0%.%d+%.%d+\n$", (with_installed("evrec", "--version")))
		local nginx, haproxy, script = cluster.scratch .. "/found.conf", cluster.scratch .. "/found.cfg",
			cluster.scratch .. "/found.lua"
		cluster.write(nginx, [[
			load_module /usr/lib/nginx/modules/ndk_http_module.so;
			load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
			events { }
			http { init_by_lua_block { print(require("evrec")._VERSION) os.exit(0) } }
		]])
		cluster.write(script, 'io.stderr:write("found ", require("evrec")._VERSION, "\\n")\n')
		cluster.write(haproxy, ("global\n\tlua-load %s\n"):format(script))
		-- nginx -t runs no Lua.
		local said, ok = with_installed("timeout", "20", "nginx", "-c", nginx, "-g",
			("daemon off; error_log stderr notice; pid %s/found.pid;"):format(cluster.scratch))
		assert.is_true(ok, said)
		assert.matches("%[lua%] init_by_lua%S*: 0%.%d+%.%d+", said)
		said = with_installed("haproxy", "-c", "-f", haproxy)
		assert.matches("found 0%.", said)
	end)

	it("installs a command that records events, and shows them", function()
		if not may_mount then
			return pending "skipped: no right to mount a folder (unshare --mount)"
		end
		make "install"
		local store = cluster.scratch .. "/installed.db"
		local said, ok = with_installed("evrec", "record", "--store", store, "job/backup", "Warning", "BackupFailed", "full")
		assert.is_true(ok, said)
		assert.matches("BackupFailed +Job/backup +full\n$", (with_installed("evrec", "events", "--store", store)))
		said, ok = with_installed("evrec", "events", "--store", store, "-o", "html")
		assert.is_true(ok, said)
		assert.matches("^<!doctype html>.*BackupFailed.*</html>", said)
	end)

	-- The quick look of the README, in a folder of its own. Then the log that it follows gets two lines, one of them while
	-- the command watches.
	it("installs a command with which the README's quick look goes as it is told", function()
		if not may_mount then
			return pending "skipped: no right to mount a folder (unshare --mount)"
		end
		make "install"
		local text = cluster.read "README.md":match "\n## A quick look, without a cluster\n.-\n\n(    .-)\n\n%S"
		local folder = cluster.run { "mktemp", "-d" }:match "%S+"
		finally(function() cluster.run { "rm", "-rf", folder } end)
		cluster.write(folder .. "/quick_look", text .. "\n")
		local said, ok = with_installed("timeout", "60", "bash", "-euc", [[
			cd "$0"
			await() { for _ in {1..200}; do grep -q "$1" "$2" 2>/dev/null && return; sleep 0.1; done; cat "$2"; exit 1; }
			. ./quick_look >looked 2>told
			echo "first line" >>error.log
			evrec events --store events.db -w >watched & watch=$!
			await "first line" watched
			echo "second line" >>error.log
			await "second line" watched
			kill $watch $(jobs -p)
			wait
			echo == looked; cat looked; echo == told; cat told; echo == watched; cat watched
			echo == page; cat events.html; echo == mode; stat -c %a events.db
		]], folder)
		assert.is_true(ok, said)
		local looked, told, watched, page, mode = said:match(
			"== looked\n(.*)== told\n(.*)== watched\n(.*)== page\n(.*)== mode\n(.*)$")
		assert.matches("^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n%d+s +Warning +BackupFailed +Job/backup +disk /dev/sdb is "
			.. "full\nLAST SEEN +TYPE +REASON +OBJECT +SUBOBJECT +SOURCE +MESSAGE +FIRST SEEN +COUNT +NAME\n%d+s +Warning +"
			.. "BackupFailed +job/backup +evrec +disk /dev/sdb is full +%d+s +1 +backup%.%x+\n$", looked)
		assert.is_nil(told:match "%S", told)
		assert.matches("BackupFailed +Job/backup +disk /dev/sdb is full\n.*Logged +Service/shop +first line\n.*"
			.. "Logged +Service/shop +second line\n", watched)
		assert.matches("^<!doctype html>.*BackupFailed.*</html>", page)
		assert.equal("600\n", mode)
	end)

	it("installs each file of the command", function()
		make "install LUA=5.4"
		local sources = cluster.run { "find", quickstart.here .. "/lua/evrec", "-name", "*.lua", "-printf", "%P\n" }
		for path in sources:gmatch "[^\n]+" do
			assert.same({ "/usr/local/share/lua/5.4/evrec/" .. path }, files("/5%.4/evrec/" .. path:gsub("%p", "%%%0") .. "$"))
		end
	end)

	it("installs a command that finds its modules below another PREFIX", function()
		local folder = cluster.scratch .. "/prefix"
		local said, ok = quickstart.run(quickstart.here, ("make -s install LUA='luajit 5.4' PREFIX=%s"):format(folder))
		assert.is_true(ok, said)
		assert.truthy(cluster.read(folder .. "/bin/evrec"):find(folder .. "/share/lua/5.1/?.lua;", 1, true))
		assert.truthy(cluster.read(folder .. "/bin/evrec"):find(folder .. "/lib/lua/5.1/?.so;", 1, true))
		said, ok = cluster.run { "env", "-C", "/", "-u", "LUA_PATH", "-u", "LUA_CPATH", folder .. "/bin/evrec",
			"--version" }
		assert.is_true(ok, said)
		assert.matches("^evrec 0%.%d+%.%d+\n$", said)
	end)

	it("LUA=5.3 installs for that one, LUA= for C alone; make uninstall leaves nothing", function()
		make "install LUA=5.3"
		assert.same({ "/usr/local/lib/lua/5.3/evrec/core.so" }, files "lib/lua/")
		assert.equal(0, #files "5%.[14]/")
		assert.equal("#!/usr/bin/env lua5.3\n", cluster.read(installed .. "/usr/local/bin/evrec"):match "^.-\n")
		make "uninstall LUA=5.3"
		assert.same({}, files "")
		make "install LUA="
		assert.same({
			"/usr/local/include/evrec.h", "/usr/local/include/evrec_otlp.h", "/usr/local/include/evrec_read.h",
			"/usr/local/lib/libevrec.a", "/usr/local/lib/pkgconfig/evrec.pc",
		}, files "")
		-- A gcc of another version refuses to link a library that has code for link-time optimization.
		local sections = cluster.run { "readelf", "-SW", installed .. "/usr/local/lib/libevrec.a" }
		assert.matches("%.text", sections)
		assert.not_matches("gnu%.lto", sections)
		make "install LUA=luajit"
		assert.equal("#!/usr/bin/env luajit\n", cluster.read(installed .. "/usr/local/bin/evrec"):match "^.-\n")
		make "install"
		make "uninstall"
		assert.same({}, files "")
	end)
end)
