#include "outbox/outbox_inner.h"

#define MAX_PENDING_MAX 10000000
#define BATCH 64
/* max_pending_bytes by default. */
#define BYTES_FOR_EACH 4096
#define BYTES_MIN (1024 * 1024)

void evrec_limits_init(evrec_limits *limits)
{
	*limits = (evrec_limits){
		.max_pending = 10000,
		.max_age = 3600 * EVREC_SECOND,
	};
}

size_t outbox_limit_of_bytes(const evrec_limits *limits)
{
	size_t bytes = limits->max_pending_bytes;

	if (bytes == 0 && __builtin_mul_overflow(limits->max_pending, (size_t)BYTES_FOR_EACH, &bytes)) {
		bytes = SIZE_MAX;
	}
	return limits->max_pending_bytes == 0 && bytes < BYTES_MIN ? BYTES_MIN : bytes;
}

int outbox_check_limits(const evrec_limits *limits, evrec_error *err)
{
	if (limits->max_pending < 1 || limits->max_pending > MAX_PENDING_MAX) {
		return error_set(err, EVREC_EINVALID, "max_pending: must be 1 to %d", MAX_PENDING_MAX);
	}
	if (limits->max_age < 0) {
		return error_set(err, EVREC_EINVALID, "max_age: must not be negative");
	}
	if (limits->full != EVREC_DROP_NEWEST && limits->full != EVREC_DROP_OLDEST) {
		return error_set(err, EVREC_EINVALID, "full: must be drop_newest or drop_oldest");
	}
	return 0;
}

/* ---- who goes ---- */

/* Drops an entry that is neither in flight nor kept for the spool. */
static void evict(struct outbox *ob, struct entry *entry, enum evrec_cause cause)
{
	struct entry *followed = NULL, *first;

	switch (entry->state) {
	case ENTRY_WAITING:
		waiting_remove(ob, entry);
		break;
	case ENTRY_QUEUED:
		first = id_table_find(&ob->table, entry->id);
		list_remove(&first->rows_behind, entry);
		break;
	case ENTRY_HELD:
		list_remove(&ob->held, entry);
		break;
	case ENTRY_FOLLOWING:
		followed = id_table_find(&ob->table, entry->id);
		followed->follow_up = NULL;
		break;
	case ENTRY_BACKOFF:
		backoff_remove(&ob->backoff, entry);
		break;
	default:
		return;
	}
	outbox_drop(ob, entry, cause);
	if (followed != NULL) {
		outbox_end_follow_up(ob, followed);
	}
}

/* The first entry from `entry` on, of its importance, that is neither in flight nor kept for the spool. */
static struct entry *at_rest(struct entry *entry, bool oldest_first)
{
	while (entry != NULL && (entry->state == ENTRY_IN_FLIGHT || entry->state == ENTRY_KEPT)) {
		entry = oldest_first ? entry->newer : entry->older;
	}
	return entry;
}

/* The next entry to drop after `last` (NULL: the first one) for a new one that is `important` or not; NULL: none. */
static struct entry *victim(const struct outbox *ob, const struct entry *last, bool important)
{
	bool oldest_first = ob->limits.full == EVREC_DROP_OLDEST;
	struct entry *entry;

	if (!oldest_first && !important) {
		return NULL;
	}
	if (last == NULL) {
		entry = oldest_first ? ob->ages[false].oldest : ob->ages[false].newest;
	} else {
		entry = oldest_first ? last->newer : last->older;
	}
	entry = at_rest(entry, oldest_first);
	if (entry == NULL && oldest_first && important && (last == NULL || !last->important)) {
		entry = at_rest(ob->ages[true].oldest, true);
	}
	return entry;
}

static bool within_limits(const struct outbox *ob, size_t bytes)
{
	return ob->stats.writes < ob->limits.max_pending && ob->stats.bytes + bytes <= ob->limits.max_pending_bytes;
}

bool outbox_has_room(const struct outbox *ob, bool important)
{
	return within_limits(ob, ENTRY_BYTES) || victim(ob, NULL, important) != NULL;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

bool outbox_make_room(struct outbox *ob, size_t bytes, bool important)
{
	/* Released writes may exceed the limits. Then the new write takes only as much as the dropped ones free. */
	const uint64_t max_writes = larger(ob->limits.max_pending, ob->stats.writes),
		       max_bytes = larger(ob->limits.max_pending_bytes, ob->stats.bytes);
	uint64_t writes = ob->stats.writes, taken = ob->stats.bytes;
	struct entry *entry = NULL;
	size_t n = 0;

	if (bytes > ob->limits.max_pending_bytes) {
		return false;
	}
	while (writes >= max_writes || taken + bytes > max_bytes) {
		entry = victim(ob, entry, important);
		if (entry == NULL) {
			return false;
		}
		writes--;
		taken -= entry->bytes;
		n++;
	}
	for (; n != 0; n--) {
		evict(ob, victim(ob, NULL, important), EVREC_CAUSE_QUEUE_FULL);
	}
	/* Drops one more than needed, until the limits hold again: else repeated releases would add up in an outage. */
	if (ob->limits.full == EVREC_DROP_OLDEST && !within_limits(ob, bytes) &&
	    (entry = victim(ob, NULL, important)) != NULL) {
		evict(ob, entry, EVREC_CAUSE_QUEUE_FULL);
	}
	return true;
}

/* ---- age ---- */

bool outbox_too_old(const struct outbox *ob, const struct entry *entry, int64_t now)
{
	return ob->limits.max_age != 0 && time_since(now, entry->last) > ob->limits.max_age;
}

void outbox_yield_lock(struct outbox *ob, unsigned *n)
{
	if (++*n % BATCH == 0) {
		(void)pthread_mutex_unlock(&ob->lock);
		(void)pthread_mutex_lock(&ob->lock);
	}
}

/*
 * The entry of this importance that may be dropped next for its age. Thousands may be in flight, so they are skipped
 * only if the oldest is too old: otherwise returns one in flight that is not too old. NULL: there is none.
 */
static struct entry *next_to_expire(const struct outbox *ob, int important, int64_t now)
{
	struct entry *oldest = ob->ages[important].oldest;

	return oldest != NULL && outbox_too_old(ob, oldest, now) ? at_rest(oldest, true) : oldest;
}

int64_t outbox_expire(struct outbox *ob, int64_t now)
{
	int64_t next = INT64_MAX;
	unsigned n = 0;

	if (ob->limits.max_age == 0) {
		return next;
	}
	(void)pthread_mutex_lock(&ob->lock);
	for (int important = 0; important < 2; important++) {
		struct entry *entry;
		int64_t expiry;

		/* Searches from the oldest each time, as the lock is released in between. */
		while ((entry = next_to_expire(ob, important, now)) != NULL && outbox_too_old(ob, entry, now)) {
			evict(ob, entry, EVREC_CAUSE_EXPIRED);
			outbox_yield_lock(ob, &n);
		}
		if (entry != NULL && !__builtin_add_overflow(entry->last, ob->limits.max_age, &expiry) &&
		    expiry < next) {
			next = expiry + 1;
		}
	}
	if (n != 0) {
		(void)pthread_cond_broadcast(&ob->progress);
	}
	(void)pthread_mutex_unlock(&ob->lock);
	return next;
}
