#include "flow/suppressed.h"

#include "base/utf8.h"

/* What is kept of a message. */
#define MESSAGE_MAX 200

struct suppression {
	uint64_t count;
	int64_t first, last;
	uint64_t aggregate, bucket; /* the correlator's entries of the last one; 0: not known */
	size_t message_len;
	char message[MESSAGE_MAX];
};

static const struct lru_type cache_type = { sizeof(struct suppression), NULL, NULL };

void suppressed_free(struct suppressed *s)
{
	for (size_t i = 0; i < SUPPRESSED_STAGES; i++) {
		lru_free(s->stages[i]);
		s->stages[i] = NULL;
	}
}

static struct suppression *add(struct lru **cache, const struct keys *keys, evrec_str note, uint64_t count, int64_t now)
{
	/* It is in another cache than the one that the keys take notes of. */
	struct key key = { keys->aggregate.head, keys->aggregate.tail, keys->aggregate.hash, 0, 0 };
	struct suppression *what;
	bool fresh;

	if (*cache == NULL) {
		*cache = lru_new(&cache_type, SUPPRESSED_MAX);
	}
	what = *cache == NULL ? NULL : lru_put(*cache, &key, &fresh);
	if (what == NULL) {
		return NULL;
	}
	if (fresh) {
		what->first = now;
	}
	what->last = now;
	what->count += count;
	what->message_len = note.len <= MESSAGE_MAX ? note.len : utf8_floor(note, MESSAGE_MAX);
	if (what->message_len != 0) {
		memcpy(what->message, note.data, what->message_len);
	}
	return what;
}

void suppressed_add(struct suppressed *s, enum evrec_stage stage, enum evrec_cause cause, const struct keys *keys,
                    const struct observed *o, int64_t now)
{
	const size_t i = stage == EVREC_STAGE_DROPPED ? (size_t)stage + cause : stage;
	struct suppression *what = add(&s->stages[i], keys, o->note, 1, now);

	if (what != NULL) {
		what->aggregate = o->aggregate;
		what->bucket = o->bucket;
	}
}

void suppressed_drop(struct suppressed *s, enum evrec_cause cause, const struct keys *keys, evrec_str note,
                     uint64_t count, int64_t now)
{
	(void)add(&s->stages[EVREC_STAGE_DROPPED + cause], keys, note, count, now);
}

struct visit {
	const evrec_correlator *correlator;
	const evrec_reference *object;
	int64_t now;
	evrec_suppressed what; /* the stage and the cause are set */
	bool (*func)(void *ctx, const evrec_suppressed *what);
	void *ctx;
	bool stopped;
};

/* What the caller leaves unset is not asked for. */
static bool fits(evrec_str asked, evrec_str has)
{
	return asked.len == 0 || str_eq(asked, has);
}

static bool is_of(const evrec_reference *r, const evrec_reference *object)
{
	return object == NULL ||
	       (str_eq(r->kind, object->kind) && str_eq(r->name, object->name) && str_eq(r->ns, object->ns) &&
	        fits(object->uid, r->uid) && fits(object->api_version, r->api_version));
}

static bool visit_one(void *ctx, evrec_str key, void *value)
{
	const struct suppression *s = value;
	struct visit *visit = ctx;
	evrec_suppressed what = visit->what;

	keys_split_aggregate(key, &what);
	if (!is_of(&what.regarding, visit->object)) {
		return true;
	}
	what.message = (evrec_str){ s->message, s->message_len };
	what.count = s->count;
	what.first = s->first;
	what.last = s->last;
	correlator_explain(visit->correlator, s->aggregate, s->bucket, visit->now, &what);
	visit->stopped = !visit->func(visit->ctx, &what);
	return !visit->stopped;
}

void suppressed_visit(const struct suppressed *s, const evrec_correlator *correlator, const evrec_reference *object,
                      int64_t now, bool (*func)(void *ctx, const evrec_suppressed *what), void *ctx)
{
	struct visit visit = { .correlator = correlator, .object = object, .now = now, .func = func, .ctx = ctx };

	for (size_t i = 0; i < SUPPRESSED_STAGES && !visit.stopped; i++) {
		visit.what.stage = i < EVREC_STAGE_DROPPED ? (enum evrec_stage)i : EVREC_STAGE_DROPPED;
		visit.what.cause = i < EVREC_STAGE_DROPPED ? EVREC_CAUSES : (enum evrec_cause)(i - EVREC_STAGE_DROPPED);
		if (s->stages[i] != NULL) {
			lru_each(s->stages[i], visit_one, &visit);
		}
	}
}
