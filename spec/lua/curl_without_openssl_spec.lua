-- A libcurl that takes no CA certificate from memory, as Debian 12's with GnuTLS. A later one may take one.
local command = require "command"

-- The loader finds libcurl-gnutls.so.4 by the name of the libcurl that evrec asks for first.
local as_libcurl = [[
	folder=$(mktemp -d) && trap 'rm -r "$folder"' EXIT
	file=$(/sbin/ldconfig -p | sed -n 's/.*libcurl-gnutls\.so\.4 .*=> //p' | head -n 1)
	[ -n "$file" ] || exit 1
	ln -s "$file" "$folder/libcurl.so.4"
	printf -- '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' >"$folder/ca.pem"
	CA=$folder/ca.pem LD_LIBRARY_PATH=$folder "$@"]]

local script = [[
	local evrec = require "evrec"
	local broadcaster = evrec.broadcaster {}
	broadcaster:start_recording_to_sink(evrec.sink.kubernetes { server = "https://127.0.0.1:9", ca_file = %s })
	broadcaster:new_recorder { component = "c" }:event({ kind = "Pod", name = "p" }, "Normal", "R", "m")
	broadcaster:flush(0.5)
	broadcaster:shutdown(0)]]

describe("a libcurl with GnuTLS", function()
	local function complaints_of(ca_file)
		local status, _, complaints = command.shell(as_libcurl, command.interpreter, "-e", script:format(ca_file))
		assert.equal(0, status, complaints)
		return complaints
	end

	it("says that it takes no CA certificate from memory", function()
		local told = complaints_of "os.getenv 'CA'"
		assert.matches("transport: POST: libcurl with GnuTLS/[%d.]+ takes no CA certificate from memory; ", told)
	end)

	it("makes requests without one", function()
		assert.matches("transport: POST: Failed to connect to 127%.0%.0%.1 port 9 ", complaints_of "nil")
	end)
end)
