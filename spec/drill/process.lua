-- Memory, time, limits and signals of this process, for which Lua has no functions. For 64-bit Linux with glibc.
local ffi = require "ffi"

ffi.cdef [[
	struct evrec_mallinfo2 {
		size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
	};
	struct evrec_mallinfo2 mallinfo2(void);
	int malloc_trim(size_t pad);

	struct evrec_timespec { long seconds, nanoseconds; };
	int clock_gettime(int clock, struct evrec_timespec *now);

	struct evrec_rlimit { unsigned long soft, hard; };
	int getrlimit(int resource, struct evrec_rlimit *limit);
	int setrlimit(int resource, const struct evrec_rlimit *limit);

	int raise(int signal);
	int setenv(const char *name, const char *value, int overwrite);
	int unsetenv(const char *name);
]]

local CLOCK_MONOTONIC, RLIMIT_FSIZE, SIGKILL = 1, 1, 9

local process = {
	--- The sanitizer that this process runs under, "asan" or "tsan"; or nil.
	sanitizer = os.getenv "EVREC_SANITIZER",
}

--- The bytes in use in all of malloc's arenas: the memory of evrec, libcurl, OpenSSL and jansson. LuaJIT's own memory
--- does not come from malloc. Nil under a sanitizer, which has a malloc of its own.
function process.memory()
	if process.sanitizer then
		return nil
	end
	collectgarbage()
	collectgarbage()
	ffi.C.malloc_trim(0)
	local info = ffi.C.mallinfo2()
	return tonumber(info.uordblks + info.hblkhd)
end

--- Seconds of the monotonic clock.
function process.time()
	local now = ffi.new "struct evrec_timespec"
	ffi.C.clock_gettime(CLOCK_MONOTONIC, now)
	return tonumber(now.seconds) + tonumber(now.nanoseconds) / 1e9
end

--- From now on this process cannot make a file longer than so many bytes; nil: no limit.
function process.limit_files(bytes)
	local limit = ffi.new "struct evrec_rlimit"
	ffi.C.getrlimit(RLIMIT_FSIZE, limit)
	limit.soft = bytes or limit.hard
	assert(ffi.C.setrlimit(RLIMIT_FSIZE, limit) == 0)
end

--- Takes LD_PRELOAD out of the environment of the processes that this one starts.
function process.keep_to_itself()
	ffi.C.unsetenv "LD_PRELOAD"
end

--- Sets a variable of the environment of the processes that this one starts.
function process.set(name, value)
	ffi.C.setenv(name, value, 1)
end

--- Ends this process at once by SIGKILL.
function process.die()
	ffi.C.raise(SIGKILL)
end

return process
