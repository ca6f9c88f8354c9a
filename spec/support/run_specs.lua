-- Runs busted in the interpreter that reads this file; the command `busted` would choose an interpreter by itself.
require("busted.runner")({ standalone = false })
