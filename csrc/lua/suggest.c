#include "lua/suggest.h"

#include <ctype.h>
#include <string.h>

/* No option and no field has a longer name. */
#define NAME_MAX_LEN 40

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many letters have to be inserted, removed, replaced, or swapped with their neighbour to make `b` of `a` (optimal
 * string alignment). Both have at most NAME_MAX_LEN letters; case is ignored.
 */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t d[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1];
	size_t i, j;

	for (i = 0; i <= a_len; i++) {
		d[i][0] = i;
	}
	for (j = 0; j <= b_len; j++) {
		d[0][j] = j;
	}
	for (i = 1; i <= a_len; i++) {
		for (j = 1; j <= b_len; j++) {
			d[i][j] =
				least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + !same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
			}
		}
	}
	return d[a_len][b_len];
}

struct suggestion suggest_begin(const char *word)
{
	const size_t len = strlen(word);

	/* The fewer letters a word has, the more names differ from it by one or two. */
	return (struct suggestion){ word, NULL, len < 3 ? 1 : len < 6 ? 2 : 3 };
}

void suggest_consider(struct suggestion *s, const char *name)
{
	const size_t word_len = strlen(s->word), name_len = strlen(name);
	size_t d;

	if (word_len > NAME_MAX_LEN || name_len > NAME_MAX_LEN) {
		return;
	}
	d = distance(s->word, word_len, name, name_len);
	/* Of names that are equally near the first of the alphabet wins, in whatever order they come. */
	if (d < s->distance || (d == s->distance && s->best != NULL && strcmp(name, s->best) < 0)) {
		s->best = name;
		s->distance = d;
	}
}

void suggest_push(lua_State *L, const struct suggestion *s, const char *path)
{
	if (s->best != NULL) {
		lua_pushfstring(L, ": did you mean '%s%s'?", path, s->best);
	} else {
		lua_pushliteral(L, "");
	}
}

int suggest_call(lua_State *L)
{
	struct suggestion s = suggest_begin(luaL_checkstring(L, 1));

	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 2);
	for (lua_pushnil(L); lua_next(L, 2) != 0; lua_pop(L, 1)) {
		if (lua_type(L, -2) == LUA_TSTRING) {
			suggest_consider(&s, lua_tostring(L, -2));
		}
	}
	suggest_push(L, &s, "");
	return 1;
}
