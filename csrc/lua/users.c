#include "lua/users.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/message.h"

#define ENTRY_MAX (64 * 1024) /* bytes of an entry of the user database */

static bool find_user(const char *name, char *buffer, unsigned *uid)
{
	struct passwd entry, *found = NULL;
	unsigned long number;
	char *end;

	if (name[0] == '\0' || name[strspn(name, "0123456789")] != '\0') {
		(void)getpwnam_r(name, &entry, buffer, ENTRY_MAX, &found);
		*uid = found != NULL ? found->pw_uid : 0;
		return found != NULL;
	}
	number = strtoul(name, &end, 10);
	*uid = (unsigned)number;
	return number < (uid_t)-1;
}

const unsigned *users_push(lua_State *L, const struct option_strings *users, evrec_error *err)
{
	unsigned *uids = lua_newuserdata(L, (users->len + 1) * sizeof(*uids));
	char *buffer = lua_newuserdata(L, ENTRY_MAX), name[101];

	for (size_t i = 0; i < users->len; i++) {
		if (strlen(users->items[i].data) != users->items[i].len) {
			*err = (evrec_error){ EVREC_EINVALID, "share_users: has a NUL byte" };
			return NULL;
		}
		if (!find_user(users->items[i].data, buffer, &uids[i])) {
			err->code = EVREC_EINVALID;
			message_format(name, sizeof(name), "%s", users->items[i].data);
			(void)snprintf(err->message, sizeof(err->message), "share_users: there is no user '%s'", name);
			return NULL;
		}
	}
	lua_pop(L, 1);
	return uids;
}
