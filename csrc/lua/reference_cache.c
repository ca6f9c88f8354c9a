#include "lua/reference_cache.h"

#include <string.h>

#define WAYS 4
#define SETS (REFERENCE_CACHE_SIZE / WAYS)

struct slot {
	uint64_t hash;
	uint64_t used;               /* the time of the last use, in lookups */
	const struct reference *box; /* the userdata, which the table `kept` anchors; NULL: none */
};

/* The references with one hash modulo SETS share a set of slots. The least recently used one is replaced. */
struct cache {
	uint64_t lookups;
	struct slot slots[REFERENCE_CACHE_SIZE];
};

void reference_cache_push(lua_State *L)
{
	memset(lua_newuserdata(L, sizeof(struct cache)), 0, sizeof(struct cache));
	lua_createtable(L, REFERENCE_CACHE_SIZE, 0);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static uint64_t hash_string(uint64_t hash, evrec_str s)
{
	uint64_t word = 0;

	hash = mix(hash, s.len);
	for (; s.len >= sizeof(word); s.data += sizeof(word), s.len -= sizeof(word)) {
		memcpy(&word, s.data, sizeof(word));
		hash = mix(hash, word);
	}
	for (word = 0; s.len != 0; s.len--) {
		word = word << 8 | (unsigned char)s.data[s.len - 1];
	}
	return mix(hash, word);
}

static size_t length_of(const evrec_reference *r)
{
	return r->kind.len + r->api_version.len + r->name.len + r->ns.len + r->uid.len + r->resource_version.len +
	       r->field_path.len;
}

/* Of namespace and name alone, for speed: objects of other kinds, uids or versions share a set. */
static uint64_t hash_of(const evrec_reference *r)
{
	return hash_string(hash_string(r->kind.len, r->name), r->ns);
}

static bool same(evrec_str a, evrec_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool equal(const evrec_reference *a, const evrec_reference *b)
{
	return same(a->name, b->name) && same(a->ns, b->ns) && same(a->kind, b->kind) &&
	       same(a->api_version, b->api_version) && same(a->uid, b->uid) &&
	       same(a->resource_version, b->resource_version) && same(a->field_path, b->field_path);
}

struct reference_place reference_cache_find(lua_State *L, void *cache, int kept, const evrec_reference *reference)
{
	struct cache *c = cache;
	struct reference_place place = { 0, 0, false };
	struct slot *set;
	size_t first, i, oldest = 0;

	if (length_of(reference) > REFERENCE_CACHE_MAX_BYTES) {
		return place;
	}
	c->lookups++;
	place.hash = hash_of(reference);
	first = (size_t)(place.hash % SETS) * WAYS;
	set = &c->slots[first];
	for (i = 0; i < WAYS; i++) {
		/* The reference is NULL while the Lua state is closed, if its finalizer has run. */
		if (set[i].hash == place.hash && set[i].box != NULL && set[i].box->ref != NULL &&
		    equal(evrec_prepared_ref_fields(set[i].box->ref), reference)) {
			set[i].used = c->lookups;
			place.index = (int)(first + i) + 1;
			place.found = true;
			lua_rawgeti(L, kept, place.index);
			return place;
		}
		if (set[i].used < set[oldest].used) {
			oldest = i;
		}
	}
	place.index = (int)(first + oldest) + 1;
	return place;
}

void reference_cache_keep(lua_State *L, void *cache, int kept, struct reference_place place)
{
	struct cache *c = cache;

	if (place.index != 0) {
		lua_pushvalue(L, -1);
		lua_rawseti(L, kept, place.index);
		c->slots[place.index - 1] = (struct slot){ place.hash, c->lookups, lua_touserdata(L, -1) };
	}
}
