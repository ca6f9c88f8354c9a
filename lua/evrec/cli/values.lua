-- Readers of the values of arguments, for `convert` of argparse: each returns the value; or nil and a message, which
-- names the option.
local kinds = require "evrec.kinds"
local options = require "evrec.options"
local times = require "evrec.times"

local values = {}

--- Returns a function that reads a number, or a fraction such as 1/300.
---@param option string
---@param least integer
---@param whole? boolean
---@return fun(text: string): number?, string?
function values.number(option, least, whole)
	return function(text)
		local above, below = text:match "^(%d+)/(%d+)$"
		local value = above and tonumber(above) / tonumber(below) or tonumber(text)
		if not value or not (value >= least and value <= 1e9) or (whole and value ~= math.floor(value)) then
			return nil, ("%s: expected a %snumber from %d to 1000000000, got '%s'"):format(option,
				whole and "whole " or "", least, text)
		end
		return value
	end
end

local LONGEST = 1e9 -- seconds, as the module's options have it

--- Returns a function that reads a duration, such as 90, 90s, 15m, 2h or 7d.
---@param option string
---@return fun(text: string): number?, string?
function values.duration(option)
	return function(text)
		local seconds = text:find "^%d+%.?%d*$" and tonumber(text) or times.duration(text)
		if seconds and seconds > LONGEST then
			return nil, ("%s: '%s' is more than %d seconds"):format(option, text, LONGEST)
		end
		return seconds, not seconds
			and ("%s: expected a duration such as 90s, 15m, 2h or 7d, got '%s'"):format(option, text) or nil
	end
end

--- Reads the value of --timeout: seconds, a day at most.
---@param text string
---@return number? seconds, string? message
function values.timeout(text)
	local seconds = tonumber(text)
	if not seconds or not (seconds >= 0 and seconds <= 86400) then
		return nil, ("--timeout: expected 0 to 86400 seconds, got '%s'"):format(text)
	end
	return seconds
end

--- An action of argparse for -n: an empty namespace is none, as kubectl takes it.
function values.set_namespace(arguments, target, text)
	arguments[target] = text ~= "" and text or nil
end

--- Reads a namespace's name: a label of DNS, RFC 1123.
---@param text string
---@return string? name, string? message
function values.namespace(text)
	if #text <= 63 and (text:find "^[a-z0-9]$" or text:find "^[a-z0-9][a-z0-9-]*[a-z0-9]$") then
		return text
	end
	return nil, ("--namespace: expected a namespace's name, of at most 63 lower-case letters, digits and inner hyphens, "
		.. "got '%s'"):format(text)
end

--- Tells if the name of a kind may be misspelt: a word such as jbo that is no built-in kind. One with a capital, or
--- with a group, is a kind of its own.
---@param word string
---@param consequence? string follows the word in the message
---@return string? message nil: it seems to be right
function values.misspelt_kind(word, consequence)
	if word:find "[%u.]" or kinds.find(word) then
		return nil
	end
	return ("no built-in kind is called '%s'%s%s"):format(word, consequence or "", kinds.suggest(word))
end

--- Returns a function that checks KIND/NAME, such as pod/web-0.
---@param option? string nil: an argument without a name
---@return fun(text: string): string?, string?
function values.object(option)
	return function(text)
		if options.kind_and_name(text) then
			return text
		end
		return nil, ("%sexpected KIND/NAME, got '%s'"):format(option and option .. ": " or "", text)
	end
end

return values
