-- Which of some processes owns a share: it has bound the abstract socket, and listens.
local cluster = require "cluster"

local share_owner = {}

--- The process id, of those in the list, that owns the share; nil if none does just now.
---@param share string "@name"
---@param pids (string|integer)[]
function share_owner.find(share, pids)
	for line in io.lines "/proc/net/unix" do
		local flags, inode, path = line:match "^%S+ %S+ %S+ (%S+) %S+ %S+%s+(%d+) (.+)$"
		if path == share and flags == "00010000" then
			for _, pid in ipairs(pids) do
				local found = cluster.run { "find", ("/proc/%s/fd"):format(pid), "-lname", ("socket:[[]%s]"):format(inode) }
				if found and found:find "/fd/%d+\n" then
					return pid
				end
			end
		end
	end
end

return share_owner
