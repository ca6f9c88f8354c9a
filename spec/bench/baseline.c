/*
 * baseline.c - the least work that a recording call from Lua can do. require "baseline" (component, host) returns an
 * object with a method of the same form as recorder:event(object, type, reason, message). The method reads the same
 * fields of its arguments as a recorder, hashes the three keys that correlation needs, and moves the entry of each to
 * the front of its cache. It checks, counts, limits and writes nothing, and reads no clock.
 */
#include <stdint.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CAPACITY 4096
#define BUCKETS 8192
#define KEY_MAX 384
#define PARTS_MAX 11

struct str {
	const char *data;
	size_t len;
};

struct node {
	uint64_t hash;
	struct node *chain;
	struct node *newer, *older;
	size_t len;
	char key[KEY_MAX];
};

/* An LRU cache of CAPACITY entries. `ends` makes the list a ring: ends.older is the newest, ends.newer the oldest. */
struct cache {
	struct node ends;
	struct node *buckets[BUCKETS];
	size_t used;
	struct node nodes[CAPACITY];
};

struct baseline {
	struct cache aggregates, events, objects;
	struct str component, host;
	size_t fixed; /* the most bytes of a key that are not the event's own strings */
	/* The event key's part, the part that all three keys share, the aggregate key's part: so each key is contiguous. */
	char keys[3 * KEY_MAX];
};

static void unlink_node(struct node *node)
{
	node->newer->older = node->older;
	node->older->newer = node->newer;
}

static void make_newest(struct cache *cache, struct node *node)
{
	node->newer = &cache->ends;
	node->older = cache->ends.older;
	node->older->newer = node;
	cache->ends.older = node;
}

/* Returns an unused node, or else takes the oldest out of the list and the table. */
static struct node *node_take(struct cache *cache)
{
	struct node *node, **link;

	if (cache->used < CAPACITY) {
		return &cache->nodes[cache->used++];
	}
	node = cache->ends.newer;
	unlink_node(node);
	for (link = &cache->buckets[node->hash % BUCKETS]; *link != node; link = &(*link)->chain) {
	}
	*link = node->chain;
	return node;
}

static void touch(struct cache *cache, const char *key, size_t len)
{
	const uint64_t hash = XXH3_64bits(key, len);
	struct node **bucket = &cache->buckets[hash % BUCKETS];
	struct node *node;

	for (node = *bucket; node != NULL; node = node->chain) {
		if (node->hash == hash && node->len == len && memcmp(node->key, key, len) == 0) {
			if (cache->ends.older != node) {
				unlink_node(node);
				make_newest(cache, node);
			}
			return;
		}
	}
	node = node_take(cache);
	node->hash = hash;
	node->len = len;
	memcpy(node->key, key, len);
	node->chain = *bucket;
	*bucket = node;
	make_newest(cache, node);
}

static char *put(char *to, struct str s)
{
	const uint32_t len = (uint32_t)s.len;

	memcpy(to, &len, sizeof(len));
	memcpy(to + sizeof(len), s.data, s.len);
	return to + sizeof(len) + s.len;
}

enum field { METADATA = 1, KIND, API_VERSION, NAME, NAMESPACE, UID, RESOURCE_VERSION, FIELD_PATH, FIELDS };
static const char *const names[FIELDS] = {
	NULL, "metadata", "kind", "apiVersion", "name", "namespace", "uid", "resourceVersion", "fieldPath",
};

static struct str text(lua_State *L, int index)
{
	struct str s = { lua_tolstring(L, index, &s.len), s.len };

	if (s.data == NULL) {
		s = (struct str){ "", 0 };
	}
	return s;
}

/* The value stays on the stack, which keeps it alive. */
static struct str field(lua_State *L, int table, int which)
{
	lua_pushvalue(L, lua_upvalueindex(which));
	lua_rawget(L, table);
	return text(L, -1);
}

static int baseline_event(lua_State *L)
{
	struct baseline *b = lua_touserdata(L, 1);
	const struct str type = text(L, 3), reason = text(L, 4), message = text(L, 5);
	struct str of[FIELDS];
	size_t room = KEY_MAX - b->fixed;
	char *event, *shared, *aggregate, *end;
	int metadata = 2, i;

	lua_pushvalue(L, lua_upvalueindex(METADATA));
	lua_rawget(L, 2);
	if (lua_type(L, -1) == LUA_TTABLE) {
		metadata = lua_gettop(L);
	}
	for (i = KIND; i < FIELDS; i++) {
		of[i] = field(L, i < NAME || i == FIELD_PATH ? 2 : metadata, i);
		room -= of[i].len;
	}
	/* The difference is unsigned: it exceeds KEY_MAX if the strings are longer than `room`. */
	if (room - type.len - reason.len - message.len > KEY_MAX) {
		return luaL_error(L, "too long");
	}

	event = b->keys;
	shared = put(put(put(event, of[FIELD_PATH]), reason), message);
	aggregate = put(put(put(put(shared, b->component), b->host), of[KIND]), of[NAMESPACE]);
	aggregate = put(put(put(put(aggregate, of[NAME]), of[UID]), of[API_VERSION]), type);
	end = put(put(put(aggregate, reason), b->component), b->host);

	touch(&b->aggregates, shared, (size_t)(end - shared));
	touch(&b->events, event, (size_t)(aggregate - event));
	touch(&b->objects, shared, (size_t)(aggregate - shared));
	lua_pushboolean(L, 1);
	return 1;
}

static int baseline_new(lua_State *L)
{
	size_t component, host;
	const char *strings[] = { luaL_checklstring(L, 1, &component), luaL_checklstring(L, 2, &host) };
	struct baseline *b = lua_newuserdata(L, sizeof(*b) + component + host);
	char *copy = (char *)(b + 1);

	memset(b, 0, sizeof(*b));
	b->aggregates.ends.newer = b->aggregates.ends.older = &b->aggregates.ends;
	b->events.ends.newer = b->events.ends.older = &b->events.ends;
	b->objects.ends.newer = b->objects.ends.older = &b->objects.ends;
	b->component = (struct str){ memcpy(copy, strings[0], component), component };
	b->host = (struct str){ memcpy(copy + component, strings[1], host), host };
	b->fixed = 2 * (component + host) + PARTS_MAX * sizeof(uint32_t);
	luaL_argcheck(L, b->fixed < KEY_MAX, 1, "too long");
	luaL_getmetatable(L, "evrec.bench.baseline");
	lua_setmetatable(L, -2);
	return 1;
}

/* The module is the function baseline_new. The field names are upvalues, so that a call need not intern them. */
int luaopen_baseline(lua_State *L)
{
	int i;

	luaL_newmetatable(L, "evrec.bench.baseline");
	lua_newtable(L);
	for (i = 1; i < FIELDS; i++) {
		lua_pushstring(L, names[i]);
	}
	lua_pushcclosure(L, baseline_event, FIELDS - 1);
	lua_setfield(L, -2, "event");
	lua_setfield(L, -2, "__index");
	lua_pushcfunction(L, baseline_new);
	return 1;
}
