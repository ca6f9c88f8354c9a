-- evrec replay TRACE: runs recorded events through the correlator under several variants of its options, by the clock
-- of the events, and tells which events each variant would have written, and which it would have lost.
local evrec = require "evrec"

local json = require "evrec.cli.json"
local replay_table = require "evrec.cli.replay_table"
local sources = require "evrec.cli.sources"
local terminal = require "evrec.cli.terminal"
local trace = require "evrec.cli.trace"
local values = require "evrec.cli.values"
local variants = require "evrec.cli.variants"

local replay = {}

local MOST = 8 -- variants
local ADVICE = "evrec events --store PATH -A -o json | evrec replay -" -- of an event store

local DESCRIPTION = "Run recorded events through the correlator again, under other options: how many requests each "
	.. "variant makes, which events it suppresses, and which variant shows the events that were lost. The first variant "
	.. "is as recorded; the options before the first --against make the second, those after it the third, and so on. "
	.. "Exits with 0; 1 if reading failed; 2 on misuse."

local EPILOG = [[
TRACE is a file of broadcaster:start_trace, which is exact; or events as the API server has them, which are not:
   kubectl get events -A -w -o json --output-watch-events, or kubectl get events -A -o json,
   lines of an audit log, or lines of evrec.sink.file. A dash is standard input.

Examples:
   evrec replay events.trace --spam-key source.component,involvedObject.name,reason
   evrec replay events.trace --burst-size 50 --qps 1 --against --correlate series]]

local function output_from(text)
	text = text:gsub("^=", "")
	if text == "json" or text == "html" then
		return text
	end
	return nil, ("-o: expected json or html, got '%s'"):format(text)
end

--- Adds the arguments to a parser of argparse.
function replay.define(parser)
	parser:description(DESCRIPTION)
	parser:epilog(EPILOG)
	parser:help_max_width(100)
	parser:help_description_margin(30)
	parser:argument("trace", "The recorded events."):argname "TRACE"
	parser:group("Variants", variants.define(parser))
	parser:group("Results",
		parser:option("--silent-after", "A reason that goes on for longer than this after its last write is lost.", "10m")
			:argname "TIME":convert(values.duration "--silent-after"),
		parser:option("-o --output", "json, or html (a page).")
			:argname "FORM":convert(output_from))
end

-- ---- results ----

local function is_lost(group, tally, silent_after)
	return tally.unseen > 0 and (not tally.last_write or group.last - tally.last_write > silent_after)
end

-- The groups that the first variant lost, those with the most suppressed occurrences first.
local function find_lost(groups, silent_after)
	local lost = {}
	for _, group in ipairs(groups) do
		if is_lost(group, group.variants[1], silent_after) then
			local cured_by = {}
			for i = 2, #group.variants do
				if not is_lost(group, group.variants[i], silent_after) then
					cured_by[#cured_by + 1] = i
				end
			end
			lost[#lost + 1] = { group = group, cured_by = cured_by }
		end
	end
	local function unseen(group)
		return group.variants[1].unseen
	end
	table.sort(lost, function(a, b) return replay_table.before(a.group, b.group, unseen) end)
	return lost
end

-- Says for each variant how many groups it loses, and its requests a minute.
local function sum_up(result, silent_after)
	local trace_of = result.trace
	local minutes = math.max((trace_of.last or 0) - (trace_of.first or 0), 60) / 60
	for i, variant in ipairs(result.variants) do
		variant.mean = variant.requests / minutes
		variant.lost = 0
		for _, group in ipairs(result.groups) do
			variant.lost = variant.lost + (is_lost(group, group.variants[i], silent_after) and 1 or 0)
		end
	end
end

-- Adds an example to the message about a --spam-key without valid fields.
local function with_example(message)
	return (message:gsub("^%-%-spam%-key: an event .* has no text .*", "%0; fields are such as source.component, "
		.. "involvedObject.name and reason"))
end

--- Replays a trace. Ends the command if it cannot be read.
---@param path string
---@param given table[]? options of variants besides the first one
---@param silent_after number seconds
---@param advice? string as of trace.open
---@return table result
---@return table source of trace.open
function replay.results(path, given, silent_after, advice)
	local source = trace.open(path, advice or ADVICE)
	local wanted, options = variants.of(source.header and source.header.correlator, given), {}
	if #wanted > MOST then
		terminal.fail(2, ("more than %d variants"):format(MOST))
	end
	for i, variant in ipairs(wanted) do
		options[i] = variant.options
	end
	local ok, run = pcall(evrec.replay, options)
	if not ok then
		terminal.fail(2, with_example(sources.reworded(run)))
	end
	source:feed(run)
	local result, message = run:finish()
	if not result then
		terminal.fail(1, message)
	end
	for i, variant in ipairs(result.variants) do
		variant.name, variant.options = wanted[i].name, wanted[i].options
		variant.custom_key = source.header ~= nil and source.header.spam_key_func == true and not variant.options.spam_key
	end
	local told = result.trace
	told.source, told.form, told.description = source.name, source.form, source:description()
	told.lower_bound = source.form ~= "trace"
	told.exact = not told.lower_bound and told.lost == 0 and told.malformed == 0
	told.reconstructed, told.left_out, told.unknown = source.reconstructed, source.left_out, source.unknown
	told.cut = source.cut
	sum_up(result, silent_after)
	result.lost = find_lost(result.groups, silent_after)
	return result, source
end

-- Lost groups as places in the list of groups, which holds them.
local function with_places(result)
	local places = {}
	for i, group in ipairs(result.groups) do
		places[group] = i
	end
	for _, lost in ipairs(result.lost) do
		lost.place, lost.group = places[lost.group], nil
		lost.kind, lost.namespace = result.groups[lost.place].kind, result.groups[lost.place].namespace
		lost.name, lost.reason = result.groups[lost.place].name, result.groups[lost.place].reason
	end
	return result
end

local function page(result)
	local told, html_variants = result.trace, require "evrec.cli.html.variants"
	return require "evrec.cli.html.page".page {
		title = "The events that each variant shows",
		subtitle = ("%s, %s: %s; hatched spans were held back"):format(told.source, told.description,
			replay_table.exactness(told)),
		hatched = html_variants.HATCHED,
		views = html_variants.views(result),
	}
end

--- Runs it. Returns the command's status.
---@param arguments { trace: string, given?: table[], silent_after: number, output?: string }
---@return integer
function replay.run(arguments)
	local misuse = variants.misuse(arguments)
	if misuse then
		terminal.fail(2, misuse)
	end
	local result, source = replay.results(arguments.trace, arguments.given, arguments.silent_after)
	local told = result.trace
	if told.occurrences == 0 then
		source:tell_empty()
	end
	if arguments.output == "json" then
		terminal.write(json.encode(with_places(result), "") .. "\n")
	elseif arguments.output == "html" then
		terminal.write(page(result))
	elseif told.occurrences > 0 or not (told.exact or told.lower_bound) then
		replay_table.print(result, arguments.silent_after)
	end
	return 0
end

return replay
