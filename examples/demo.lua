-- `make demo`: two stories of people who read events, under a fake clock.
local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/?.lua;" .. package.path

require("twenty_to_five").main()
print()
require("silent_cronjob").main()
