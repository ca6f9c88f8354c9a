#include "lua/snapshot.h"

#include <string.h>

struct sizes {
	size_t sinks, recorders, suppressed, bytes;
};

/* One walk over all sinks and recorders. It counts the room that a copy needs, and copies if `items` is set. */
struct walk {
	snapshot_filter *filter;
	struct sizes sizes;      /* of what was visited so far */
	evrec_suppressed *items; /* NULL: count only */
	char *bytes;
	struct sizes room; /* of the copy */
	bool full; /* another thread, by a handle of the same name, has made the sinks grow: the copy is not whole */
};

static evrec_str *string_at(evrec_suppressed *copy, size_t i)
{
	evrec_str *const strings[] = {
		&copy->regarding.kind, &copy->regarding.api_version,
		&copy->regarding.ns,   &copy->regarding.name,
		&copy->regarding.uid,  &copy->component,
		&copy->host,           &copy->controller,
		&copy->instance,       &copy->type,
		&copy->reason,         &copy->message,
		&copy->aggregate_key,  &copy->spam_key,
	};

	return i < sizeof(strings) / sizeof(strings[0]) ? strings[i] : NULL;
}

/* Copies a string's bytes, unless the walk only counts. */
static void copy_string(struct walk *walk, evrec_str *s)
{
	if (walk->items != NULL && s->len > walk->room.bytes - walk->sizes.bytes) {
		walk->full = true;
		s->len = 0;
	}
	if (walk->items != NULL && s->len != 0) {
		s->data = memcpy(walk->bytes + walk->sizes.bytes, s->data, s->len);
	}
	walk->sizes.bytes += s->len;
}

static bool visit(void *ctx, const evrec_suppressed *borrowed)
{
	struct walk *walk = ctx;
	evrec_suppressed copy = *borrowed;
	evrec_str *s;
	size_t i;

	if (!walk->filter(&copy)) {
		return true;
	}
	if (walk->items != NULL && walk->sizes.suppressed == walk->room.suppressed) {
		walk->full = true;
		return false;
	}
	for (i = 0; (s = string_at(&copy, i)) != NULL; i++) {
		copy_string(walk, s);
	}
	if (walk->items != NULL) {
		walk->items[walk->sizes.suppressed] = copy;
	}
	walk->sizes.suppressed++;
	return true;
}

static void walk_sinks(struct walk *walk, const struct broadcaster *b, struct snapshot_sink *sinks)
{
	evrec_sink_stats stats = { 0 };
	size_t number, i = 0;

	for (number = 1; evrec_broadcaster_next_sink(b->host.b, &number); number++) {
		const size_t before = walk->sizes.suppressed;

		if (sinks != NULL && i == walk->room.sinks) {
			walk->full = true;
			break;
		}

		(void)evrec_broadcaster_get_sink_stats(b->host.b, number, &stats);
		evrec_broadcaster_explain(b->host.b, number, NULL, visit, walk);
		if (sinks != NULL) {
			sinks[i] =
				(struct snapshot_sink){ stats, walk->items + before, walk->sizes.suppressed - before };
		}
		i++;
	}
	walk->sizes.sinks = i;
}

static void walk_recorders(struct walk *walk, const struct broadcaster *b, evrec_recorder_stats *recorders)
{
	const evrec_recorder *r = NULL;

	while ((r = evrec_broadcaster_next_recorder(b->host.b, r)) != NULL) {
		evrec_recorder_stats stats;

		evrec_recorder_get_stats(r, &stats);
		copy_string(walk, &stats.component);
		copy_string(walk, &stats.host);
		copy_string(walk, &stats.instance);
		if (recorders != NULL) {
			recorders[walk->sizes.recorders] = stats;
		}
		walk->sizes.recorders++;
	}
}

static struct sizes measure(const struct broadcaster *b, snapshot_filter *filter)
{
	struct walk walk = { .filter = filter };

	walk_sinks(&walk, b, NULL);
	walk_recorders(&walk, b, NULL);
	return walk.sizes;
}

static bool fits(struct sizes wanted, struct sizes room)
{
	return wanted.sinks <= room.sinks && wanted.recorders <= room.recorders &&
	       wanted.suppressed <= room.suppressed && wanted.bytes <= room.bytes;
}

/*
 * The block holds the snapshot, its sinks, the recorders, the sinks' suppressed events, and the bytes of the strings, in
 * that order.
 */
static size_t block_size(struct sizes room)
{
	return sizeof(struct snapshot) + room.sinks * sizeof(struct snapshot_sink) +
	       room.recorders * sizeof(evrec_recorder_stats) + room.suppressed * sizeof(evrec_suppressed) + room.bytes;
}

/* NULL: there was not enough room after all. */
static const struct snapshot *fill(void *block, struct sizes room, const struct broadcaster *b, snapshot_filter *filter)
{
	struct snapshot *snapshot = block;
	struct snapshot_sink *sinks = (struct snapshot_sink *)(snapshot + 1);
	evrec_recorder_stats *recorders = (evrec_recorder_stats *)(sinks + room.sinks);
	struct walk walk = { .filter = filter, .room = room };

	walk.items = (evrec_suppressed *)(recorders + room.recorders);
	walk.bytes = (char *)(walk.items + room.suppressed);
	walk_sinks(&walk, b, sinks);
	walk_recorders(&walk, b, recorders);
	evrec_broadcaster_get_stats(b->host.b, &snapshot->stats);
	snapshot->stats.sinks = walk.sizes.sinks;
	snapshot->sinks = sinks;
	snapshot->recorders = recorders;
	snapshot->recorders_len = walk.sizes.recorders;
	return walk.full ? NULL : snapshot;
}

const struct snapshot *snapshot_push(lua_State *L, const struct broadcaster *b, snapshot_filter *filter)
{
	const struct snapshot *snapshot;
	struct sizes wanted, room;
	void *block;

	luaL_checkstack(L, LUA_MINSTACK, "snapshot");
	while (b->host.b != NULL) {
		room = measure(b, filter);
		block = lua_newuserdata(L, block_size(room));
		/*
		 * Making the userdata may have run a finalizer that ended the broadcaster, or recorded further events.
		 */
		if (b->host.b == NULL) {
			lua_pop(L, 1);
			break;
		}
		wanted = measure(b, filter);
		snapshot = fits(wanted, room) ? fill(block, room, b, filter) : NULL;
		if (snapshot != NULL) {
			return snapshot;
		}
		lua_pop(L, 1);
	}
	return NULL;
}
