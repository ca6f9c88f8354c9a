#include "lua/polling.h"

#include "lua/broadcaster.h"

int polling_let_go(lua_State *L)
{
	struct broadcaster *b = box_check(L, 1, &broadcaster_type);

	b->poller = POLLER_WANTED;
	return 0;
}

int polling_may_own(lua_State *L)
{
	const struct broadcaster *b = box_check(L, 1, &broadcaster_type);

	if (broadcaster_is_open(b)) {
		evrec_broadcaster_may_own(b->host.b);
	}
	return 0;
}

int polling_poll_delay(lua_State *L)
{
	const struct broadcaster *b = box_check(L, 1, &broadcaster_type);
	const int64_t delay = broadcaster_is_open(b) ? evrec_broadcaster_poll_delay(b->host.b) : -1;

	if (delay < 0) {
		return 0;
	}
	if (delay == INT64_MAX) {
		lua_pushboolean(L, 0);
	} else {
		lua_pushnumber(L, (lua_Number)delay / EVREC_SECOND);
	}
	return 1;
}
