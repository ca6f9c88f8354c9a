-- busted, by the interpreter that reads this: the command of that name takes one of its own choice.
require("busted.runner")({ standalone = false })
