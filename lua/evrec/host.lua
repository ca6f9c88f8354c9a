-- The program that runs the script, and its log.
local host = {}

-- Returns a global, or nil, even if reading an unknown global raises.
local function global(name)
	local ok, value = pcall(function() return _G[name] end)
	return ok and type(value) == "table" and value or nil
end

local function nginx() return global "ngx" end

local function haproxy()
	local core = global "core"
	return core and core.register_task and core
end

--- The program that runs the script.
---@return "nginx"|"haproxy"|"lua"
function host.name()
	return nginx() and "nginx" or haproxy() and "haproxy" or "lua"
end

--- A function that writes a line to the host's log and returns true; nil: the host has none. The function may raise.
---@return (fun(line: string): boolean)?
function host.logger()
	local ngx, core = nginx(), haproxy()
	if ngx and ngx.log and ngx.ERR then
		return function(line)
			ngx.log(ngx.ERR, line)
			return true
		end
	elseif not ngx and core and core.Warning then
		return function(line)
			core.Warning(line)
			return true
		end
	end
end

return host
