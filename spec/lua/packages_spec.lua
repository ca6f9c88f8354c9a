-- spec/support/packages.sh, with a stand-in for apt-get: real packages would have to be in conflict.
local command = require "command"
local tmpfiles = require "tmpfiles"

describe("packages.sh", function()
	local prefix, write, remove
	local may_sudo
	before_each(function()
		may_sudo = true
		prefix, write, remove = tmpfiles.new()
	end)
	after_each(function() remove() end)

	-- Runs it as a user who is not root, where no package is installed, and apt-get cannot install `refused`. Returns the
	-- status, what the script printed, and the calls of apt-get.
	local function install(refused, ...)
		write("apt-get", ([[#!/bin/sh
			echo "$*" >>%s.calls
			case "$* " in *" %s "*) exit 1 ;; esac]]):format(prefix, refused))
		write("dpkg-query", "#!/bin/sh\nexit 1")
		write("sudo", ('#!/bin/sh\n[ "$1" != -v ] || exit %d\nexec "$@"'):format(may_sudo and 0 or 1))
		write("id", "#!/bin/sh\necho 1000")
		write("calls", "")
		local status, output, complaints = command.shell([[mkdir "$1.bin" && trap 'rm -r "$1.bin"' EXIT
			for program in apt-get dpkg-query sudo id; do
				cp "$1.$program" "$1.bin/$program" && chmod 755 "$1.bin/$program"
			done
			PATH="$1.bin:$PATH" spec/support/packages.sh "${@:2}"]], prefix, ...)
		return status, output .. complaints, tmpfiles.read(prefix .. ".calls")
	end

	it("takes the first of two packages, and lets apt-get remove none", function()
		local status, output, calls = install("none", "build")
		assert.equal(0, status, output)
		assert.matches("^evrec: installing these Debian packages: [^\n]* libluajit2%-5%.1%-dev\n$", output)
		assert.matches("install %-%-no%-install%-recommends gcc [^\n]* libluajit2%-5%.1%-dev\n$", calls)
		for call in calls:gmatch "[^\n]+" do
			assert.matches(" %-%-no%-remove ", call)
		end
	end)

	it("takes the other one if the first cannot be installed", function()
		local status, output, calls = install("libluajit2-5.1-dev", "build")
		assert.equal(0, status, output)
		assert.matches("^evrec: installing these Debian packages: [^\n]* libluajit%-5%.1%-dev\n$", output)
		assert.matches("install %-%-no%-install%-recommends gcc [^\n]* libluajit%-5%.1%-dev\n$", calls)
	end)

	it("tells a user whom sudo refuses what root has to run", function()
		may_sudo = false
		local status, output, calls = install("none", "core")
		assert.equal(1, status)
		assert.matches("^evrec: not root, and sudo is not there or refuses[^\n]*\n"
			.. "evrec:   apt%-get install %-%-no%-install%-recommends gcc [^\n]*\n$", output)
		assert.equal("", calls)
	end)

	it("names one Lua's packages", function()
		local _, output = install("none", "5.3")
		assert.matches(": liblua5%.3%-dev lua5%.3 lua%-cjson", output)
	end)

	it("fails if a package cannot be installed, and says so", function()
		local status, output = install("lua-cjson", "demo")
		assert.equal(1, status)
		assert.matches("\nevrec: they could not be installed", output)
	end)
end)
