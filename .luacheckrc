-- One source for Lua 5.4, 5.3 and LuaJIT: a name that any of them lacks is looked at before it is used.
std = "max"
max_line_length = 120
files["spec"] = { std = "+busted" }
-- A page, its style sheet and its script.
files["lua/evrec/cli/html"] = { max_string_line_length = false }
files["examples/nginx"] = { std = "+ngx_lua" }
files["spec/drill/workers.lua"] = { std = "+ngx_lua" }
files["examples/haproxy"] = { read_globals = { "core" } }
files["spec/hosts/action.lua"] = { read_globals = { "core" } }
files["**/*.rockspec"] = { std = "rockspec" }
