#include "fake_write.h"

#include "spool/journal_inner.h"

struct fake_writes fake_writes;

void fake_writes_begin(void)
{
	fake_writes.alive = 0;
}

static void *make(const void *draft, outbox_room_func *room, void *ctx)
{
	struct fake_write *item = fake_writes.no_memory ? NULL : room(ctx, sizeof(*item));

	if (item != NULL) {
		memcpy(item, draft, sizeof(*item));
		__atomic_add_fetch(&fake_writes.alive, 1, __ATOMIC_RELAXED);
	}
	return item;
}

static void *room_on_heap(void *ctx, size_t size)
{
	(void)ctx;
	return mem_alloc(size);
}

void *fake_write_make(const void *draft)
{
	return make(draft, room_on_heap, NULL);
}

static bool fake_write_fold(void *item, const void *draft)
{
	if (!fake_writes.no_memory) {
		((struct fake_write *)item)->count = ((const struct fake_write *)draft)->count;
		((struct fake_write *)item)->size = ((const struct fake_write *)draft)->size;
	}
	return !fake_writes.no_memory;
}

static bool fake_write_merge(void *item, const void *next)
{
	return fake_write_fold(item, next);
}

static bool fake_write_rename(void *item, char name[OUTBOX_NAME_SIZE])
{
	struct fake_write *it = item;

	if (fake_writes.no_memory) {
		return false;
	}
	snprintf(it->name, sizeof(it->name), "renamed-%u", ++fake_writes.renamed);
	memcpy(name, it->name, sizeof(it->name));
	return true;
}

static void fake_write_set_name(void *item, const char *name)
{
	struct fake_write *it = item;

	snprintf(it->name, sizeof(it->name), "%.63s", name);
}

static void fake_write_set_base(void *item, uint32_t base)
{
	((struct fake_write *)item)->base = base;
}

static void fake_write_on_time(void *item)
{
	((struct fake_write *)item)->on_time++;
	if (fake_writes.on_time != NULL) {
		fake_writes.on_time(item);
	}
}

static size_t fake_write_size(const void *item)
{
	return ((const struct fake_write *)item)->size;
}

/* "x/n1" is of the place "x", others of "shop". */
static evrec_str fake_write_namespace(const void *item)
{
	const struct fake_write *it = item;
	const char *slash = strchr(it->name, '/');

	return slash == NULL ? EVREC_STR("shop") : (evrec_str){ it->name, (size_t)(slash - it->name) };
}

static void fake_write_fini(void *item)
{
	(void)item;
	__atomic_sub_fetch(&fake_writes.alive, 1, __ATOMIC_RELAXED);
}

static void fake_write_free(void *item)
{
	fake_write_fini(item);
	mem_free(item);
}

const struct outbox_ops fake_write_ops = {
	.make = make,
	.fini = fake_write_fini,
	.copy = fake_write_make,
	.fold = fake_write_fold,
	.merge = fake_write_merge,
	.rename = fake_write_rename,
	.set_name = fake_write_set_name,
	.set_base = fake_write_set_base,
	.on_time = fake_write_on_time,
	.size = fake_write_size,
	.ns = fake_write_namespace,
	.free = fake_write_free,
};

bool fake_write_encode(const void *item, enum body body, enum evrec_api api, enum reader reader,
                       struct encoded *request)
{
	const struct fake_write *it = item;
	struct buf json = { 0 };

	(void)body;
	(void)reader;
	buf_printf(&json, "{\"name\":\"%s\",\"count\":%u}", it->name, it->count);
	*request =
		(struct encoded){ .ns = str_dup(EVREC_STR("shop")), .name = str_dup(str_from(it->name)), .api = api };
	request->body = json.data;
	request->body_len = json.len;
	return true;
}

evrec_limits limits_without_age(size_t max_pending)
{
	evrec_limits limits;

	evrec_limits_init(&limits);
	limits.max_pending = max_pending;
	limits.max_age = 0;
	return limits;
}

struct outbox *fake_write_outbox(size_t max_pending)
{
	const evrec_limits limits = limits_without_age(max_pending);

	return outbox_new(&fake_write_ops, &limits, 1);
}

bool fake_write_serialize(const void *item, struct buf *out)
{
	const struct fake_write *it = item;

	buf_printf(out, "%s %u %u %d", it->name, it->count, it->size, it->important);
	return !fake_writes.no_memory && !out->failed;
}

void *fake_write_parse(evrec_str serialized, bool *important)
{
	struct fake_write draft = { .count = 0 };
	char text[128];
	int important_as_int;

	(void)snprintf(text, sizeof(text), "%.*s", (int)serialized.len, serialized.data);
	if (sscanf(text, "%63s %u %u %d", draft.name, &draft.count, &draft.size, &important_as_int) != 4) {
		return NULL;
	}
	draft.important = *important = important_as_int != 0;
	return fake_write_make(&draft);
}

static uint64_t fake_write_event_number(const void *item)
{
	const char *name = ((const struct fake_write *)item)->name;

	return journal_sum(1, name, strlen(name));
}

static bool fake_write_pack(const void *item, const void *follow_up, struct buf *out)
{
	(void)follow_up;
	return fake_write_serialize(item, out);
}

static void *fake_write_unpack(evrec_str bytes)
{
	bool important;

	return fake_write_parse(bytes, &important);
}

static void fake_write_get_changes(const void *item, const void *follow_up, struct spool_changes *changes)
{
	const struct fake_write *it = item, *latest = follow_up == NULL ? it : follow_up;

	*changes = (struct spool_changes){ .version = journal_sum(0, it->name, strlen(it->name)),
		                           .count = (int32_t)latest->count };
}

static void get_sure_changes(const void *item, const void *follow_up, struct spool_changes *changes)
{
	fake_write_get_changes(item, follow_up, changes);
	changes->sure = 1;
}

static void fake_write_set_changes(void *item, const struct spool_changes *changes)
{
	((struct fake_write *)item)->count = (unsigned)changes->count;
}

const struct spool_codec fake_write_codec = { fake_write_serialize,   fake_write_parse,  fake_write_event_number,
	                                      fake_write_pack,        fake_write_unpack, fake_write_get_changes,
	                                      fake_write_set_changes, fake_write_free };

const struct spool_codec fake_write_sure_codec = { fake_write_serialize,   fake_write_parse,  fake_write_event_number,
	                                           fake_write_pack,        fake_write_unpack, get_sure_changes,
	                                           fake_write_set_changes, fake_write_free };

unsigned fake_write_count_brought(struct outbox *ob)
{
	unsigned n = 0;
	void *item;

	while ((item = outbox_next_brought(ob)) != NULL) {
		outbox_discard(ob, item);
		n++;
	}
	return n;
}

static bool submit(struct outbox *ob, uint64_t id, unsigned count, int64_t due)
{
	struct fake_write draft = { .count = count };
	const struct occurrence occurrence = {
		.id = id,
		.verb = count > 1 ? VERB_PATCH : VERB_CREATE,
		.due = due,
		.draft = &draft,
	};
	enum evrec_cause cause;

	snprintf(draft.name, sizeof(draft.name), "n%u", (unsigned)id);
	return outbox_submit(ob, &occurrence, &cause);
}

bool fake_write_submit(struct outbox *ob, uint64_t id, unsigned count)
{
	return submit(ob, id, count, 0);
}

bool fake_write_defer(struct outbox *ob, uint64_t id, unsigned count)
{
	return submit(ob, id, count, unit_mono() + 3600 * EVREC_SECOND);
}

size_t outbox_entry_bytes(void)
{
	struct outbox *ob = fake_write_outbox(1);
	struct outbox_stats stats;

	assert_true(fake_write_submit(ob, 1, 1));
	outbox_get_stats(ob, &stats);
	outbox_free(ob);
	return stats.bytes;
}

void outbox_check_equation(struct outbox *ob)
{
	struct outbox_stats s;
	uint64_t sum;

	outbox_get_stats(ob, &s);
	sum = s.created + s.patched + s.coalesced + s.counted + s.pending + s.spooled;
	for (int i = 0; i < EVREC_CAUSES; i++) {
		sum += s.dropped[i];
	}
	assert_int_equal(s.submitted, sum);
	assert_true(s.writes <= s.pending);
	assert_true((s.writes == 0) == (s.pending == 0));
}
