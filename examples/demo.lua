-- `make demo` runs this: two stories of people who read events, under a fake clock. No line is longer than 100 columns.
local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/?.lua;" .. package.path

require("twenty_to_five").main()
print()
require("silent_cronjob").main()
print [[

What to try next:
  KUBECONFIG=FILE make demo    records the first story into your cluster, too: kubectl get events
  make install                 installs evrec for every Lua; then: lua5.4 examples/first.lua
  examples/README.md           nginx, HAProxy, a sink in Lua, a C program
  lua/README.md                every function and option]]
