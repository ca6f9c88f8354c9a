#include "recorder/suppressed.h"

#include "base/utf8.h"

/* Bytes that are kept of a message. */
#define MESSAGE_MAX 200

struct suppression {
	uint64_t count;
	int64_t first_time, last_time;
	uint64_t aggregate; /* the correlator's entry of the latest occurrence; 0: not known */
	uint64_t bucket;    /* of the latest one that needed a token; 0: none did */
	size_t message_len;
	char message[MESSAGE_MAX];
};

static const struct lru_type cache_type = { .value_size = sizeof(struct suppression) };

void suppressed_free(struct suppressed *s)
{
	for (size_t i = 0; i < SUPPRESSED_STAGES; i++) {
		lru_free(s->stages[i]);
		s->stages[i] = NULL;
	}
}

/* The stages in their order, that of drops once for every cause. */
static size_t index_of(enum evrec_stage stage, enum evrec_cause cause)
{
	if (stage < EVREC_STAGE_DROPPED) {
		return stage;
	}
	return stage == EVREC_STAGE_DROPPED ? (size_t)stage + cause : (size_t)stage + EVREC_CAUSES - 1;
}

HOT static struct suppression *add(struct lru **cache, struct key *key, evrec_str note, uint64_t count, int64_t now)
{
	struct suppression *entry;
	bool fresh;

	if (*cache == NULL) {
		*cache = lru_new(&cache_type, SUPPRESSED_MAX);
	}
	entry = *cache == NULL ? NULL : lru_put(*cache, key, &fresh);
	if (entry == NULL) {
		return NULL;
	}
	if (fresh) {
		entry->first_time = now;
	}
	entry->last_time = now;
	entry->count += count;
	entry->message_len = note.len <= MESSAGE_MAX ? note.len : utf8_floor(note, MESSAGE_MAX);
	if (entry->message_len != 0) {
		memcpy(entry->message, note.data, entry->message_len);
	}
	return entry;
}

HOT void suppressed_add(struct suppressed *s, enum evrec_stage stage, enum evrec_cause cause, struct keys *keys,
                        const struct observed *o, int64_t now)
{
	struct suppression *entry = add(&s->stages[index_of(stage, cause)], &keys->suppressed, o->note, 1, now);

	if (entry != NULL) {
		entry->aggregate = o->aggregate;
		entry->bucket = o->bucket != 0 ? o->bucket : entry->bucket;
	}
}

void suppressed_drop(struct suppressed *s, enum evrec_cause cause, struct keys *keys, evrec_str note, uint64_t count,
                     int64_t now)
{
	(void)add(&s->stages[index_of(EVREC_STAGE_DROPPED, cause)], &keys->suppressed, note, count, now);
}

void suppressed_finish(struct suppressed *s, struct keys *keys, const evrec_fields *series)
{
	struct suppression *entry = add(&s->stages[index_of(EVREC_STAGE_FINISHED, EVREC_CAUSES)], &keys->suppressed,
	                                series->note, 0, series->series_last);

	if (entry != NULL) {
		entry->count = (uint64_t)series->series_count;
		entry->first_time = series->event_time;
	}
}

struct visit {
	const struct suppressed_keys *known;
	const evrec_reference *object;
	int64_t now;
	evrec_suppressed model; /* the stage and the cause are set */
	bool (*func)(void *ctx, const evrec_suppressed *suppressed);
	void *ctx;
	bool stopped;
};

/* A field that the caller leaves unset fits any value. */
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
	evrec_suppressed suppressed = visit->model;

	keys_split_aggregate(key, &suppressed);
	if (!is_of(&suppressed.regarding, visit->object)) {
		return true;
	}
	suppressed.message = (evrec_str){ s->message, s->message_len };
	suppressed.count = s->count;
	suppressed.first = s->first_time;
	suppressed.last = s->last_time;
	if (visit->known->series != NULL) {
		series_explain(visit->known->series, s->bucket, visit->now, &suppressed);
	} else {
		correlator_explain(visit->known->correlator, s->aggregate, s->bucket, visit->now, &suppressed);
	}
	visit->stopped = !visit->func(visit->ctx, &suppressed);
	return !visit->stopped;
}

static void visit_all(struct lru *cache, struct visit *visit)
{
	if (cache != NULL && !visit->stopped) {
		lru_each(cache, visit_one, visit);
	}
}

void suppressed_visit(const struct suppressed *s, const struct suppressed_keys *known, const evrec_reference *object,
                      int64_t now, bool (*func)(void *ctx, const evrec_suppressed *suppressed), void *ctx)
{
	struct visit visit = { .known = known, .object = object, .now = now, .func = func, .ctx = ctx };
	const size_t drops = index_of(EVREC_STAGE_DROPPED, 0);
	size_t cause;

	for (size_t stage = 0; stage < EVREC_STAGES && !visit.stopped; stage++) {
		visit.model.stage = (enum evrec_stage)stage;
		visit.model.cause = EVREC_CAUSES;
		if (stage != EVREC_STAGE_DROPPED) {
			visit_all(s->stages[index_of(visit.model.stage, EVREC_CAUSES)], &visit);
			continue;
		}
		for (cause = 0; cause < EVREC_CAUSES; cause++) {
			visit.model.cause = (enum evrec_cause)cause;
			visit_all(s->stages[drops + cause], &visit);
		}
	}
}
