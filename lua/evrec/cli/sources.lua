-- The source that a subcommand reads events from: a store, lines, or a cluster.
local evrec = require "evrec"
local kubernetes = require "evrec.kubernetes"

local terminal = require "evrec.cli.terminal"

local sources = {}

--- Adds the options that name a cluster to a parser of argparse, and returns them: three.
function sources.define_cluster(parser)
	return parser:option("--kubeconfig", "The kubeconfig, instead of $KUBECONFIG or ~/.kube/config."):argname "PATH",
		parser:option("--context", "The kubeconfig's context."):argname "NAME",
		parser:option("--allow-exec", "A credential plugin that the kubeconfig may run, such as aws; may be repeated.")
			:argname "COMMAND":count "*"
end

--- Adds the options that name a source to a parser of argparse, and returns them.
function sources.define(parser)
	return parser:option("--store", "An event store, a file that evrec.sink.store wrote."):argname "PATH",
		parser:option("--lines", "Events, one JSON text a line, as evrec.sink.file writes them; - is standard input.")
			:argname "PATH",
		sources.define_cluster(parser)
end

--- Returns the options of evrec.cluster and evrec.sink.kubernetes for the cluster that the arguments name.
---@param arguments { kubeconfig?: string, context?: string, allow_exec: string[] }
---@return table
function sources.cluster_options(arguments)
	return {
		kubeconfig = arguments.kubeconfig, context = arguments.context,
		allow_exec = #arguments.allow_exec > 0 and arguments.allow_exec or nil,
	}
end

--- Ends the command if one of the arguments is an empty path.
---@param arguments table
---@param names string[]
function sources.check_paths(arguments, names)
	for _, name in ipairs(names) do
		if arguments[name] == "" then
			terminal.fail(2, ("--%s: expected a path"):format((name:gsub("_", "-"))))
		end
	end
end

local function check(arguments)
	local named = {}
	sources.check_paths(arguments, { "store", "lines", "kubeconfig" })
	for _, name in ipairs { "store", "lines" } do
		named[#named + 1] = arguments[name] and "--" .. name
	end
	local of_cluster = arguments.kubeconfig and "--kubeconfig" or arguments.context and "--context"
		or (arguments.allow_exec or {})[1] and "--allow-exec"
	if of_cluster and #named > 0 then
		named[#named + 1] = of_cluster
	end
	if #named > 1 then
		terminal.fail(2, named[1] .. ": not together with " .. named[2])
	end
end

local function flag(option)
	return option == "for_object" and "--for" or "--" .. option:gsub("_", "-")
end

local NO_SERVER = "^no API server: not inside a cluster, and cannot read the kubeconfig: (.-): No such file[^;]*;.*"

--- Rewords a message of the module for the command: without the name of a function and the position in a Lua file, and
--- with the command's names of options.
---@param message any
---@return string
function sources.reworded(message)
	message = tostring(message):gsub("^[^%s:]+%.lua:%d+: ", ""):gsub("^evrec%.[%a_.]+: ", "")
	message = message:gsub("^source:%a+: ", ""):gsub("^broadcaster:[%a_]+: ", "")
	message = message:gsub(NO_SERVER,
		"no API server: not inside a cluster, and no %1; give --store PATH, --lines PATH or --kubeconfig PATH")
	message = message:gsub("set $KUBECONFIG, or the option 'kubeconfig' or 'server'", "--kubeconfig names one")
	message = message:gsub("the option 'context'", "--context")
	message = message:gsub('by the option allow_exec = { ("[^"]*") }', "by --allow-exec %1")
	return (message:gsub("option '([%l_]+)'", flag))
end

--- Returns an iterator that ends the command if the given one of a source raises, as it does if a disk fails.
---@generic T
---@param iterate T an iterator of events or suppressions
---@return T
function sources.guarded(iterate)
	return function()
		local ok, first, second = pcall(iterate)
		if not ok then
			terminal.fail(1, sources.reworded(first))
		end
		return first, second
	end
end

-- Calls a constructor, whose failure ends the command.
local function made(constructor, options)
	local ok, source, message = pcall(constructor, options)
	if not ok or not source then
		terminal.fail(1, sources.reworded(ok and message or source))
	end
	return source
end

--- Opens the source that the arguments name.
---@param arguments { store?: string, lines?: string, kubeconfig?: string, context?: string, allow_exec?: string[] }
---@return evrec.Source source
---@return string namespace the default namespace
function sources.open(arguments)
	check(arguments)
	if arguments.store then
		return made(evrec.store, { path = arguments.store }), "default"
	elseif arguments.lines then
		return made(evrec.lines, { path = arguments.lines }), "default"
	end
	local options = sources.cluster_options(arguments)
	return made(evrec.cluster, options), made(kubernetes.namespace, options)
end

--- Tells which source the arguments name, in words for people.
---@param arguments { store?: string, lines?: string, context?: string }
---@return string
function sources.describe(arguments)
	if arguments.store or arguments.lines then
		local path = arguments.store or arguments.lines
		return path == "-" and "standard input" or path
	end
	return arguments.context and "the cluster of the context " .. arguments.context or "the cluster"
end

return sources
