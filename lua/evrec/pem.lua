-- Reads the PEM files that options and variables name, when a sink is made: a proxy may go into a chroot afterwards.
local kubeconfig = require "evrec.kubeconfig"
local options = require "evrec.options"

local pem = {}

--- Returns the text of a PEM file. Raises a message without a position if the file cannot be read or is no PEM file.
---@param place string names the option or the variable in the message: "option 'ca_file'"
---@param path? string nil: none
---@return string? text nil: no path
function pem.read(place, path)
	if not path then
		return nil
	end
	local text, why = kubeconfig.read_file(path)
	if not text then
		options.fail("%s: %s", place, why)
	elseif not text:find("-----BEGIN ", 1, true) then
		options.fail("%s: nothing in PEM form in %s", place, path)
	end
	return text
end

return pem
