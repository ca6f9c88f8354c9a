#include "sink/resume_found.h"

#include "event/event.h"
#include "sink/write.h"

struct found {
	evrec_event *event; /* NULL: this process patched an event with this key while its listing was under way */
	const void *finder;
	int64_t last;
	int64_t valid_until; /* monotonic */
};

static void recycle(void *value)
{
	struct found *f = value;

	evrec_event_release(f->event);
	*f = (struct found){ 0 };
}

static const struct lru_type found_type = { .value_size = sizeof(struct found), .recycle = recycle, .fini = recycle };

bool resume_found_init(struct resume_found *found, const evrec_series_options *options)
{
	*found = (struct resume_found){ .events = lru_new(&found_type, options->max_series),
		                        .note_in_key = options->note_in_key,
		                        .valid_for = options->finish_time };
	return found->events != NULL;
}

void resume_found_destroy(struct resume_found *found)
{
	lru_free(found->events);
	buf_free(&found->key);
}

int64_t resume_found_last(const evrec_fields *event)
{
	return event->series_count != 0 && event->series_last != EVREC_UNSET ? event->series_last : event->event_time;
}

bool resume_found_add(struct resume_found *found, const evrec_fields *event, const void *finder, int64_t now)
{
	const int64_t last = resume_found_last(event);
	evrec_event *copy;
	struct found *f;
	struct key key;
	bool fresh;

	if (!key_series(&key, &found->key, event, found->note_in_key)) {
		return false;
	}
	f = lru_put(found->events, &key, &fresh);
	if (f == NULL) {
		return false;
	}
	if (!fresh && (f->event == NULL || f->last > last)) {
		return true;
	}
	copy = evrec_event_new(event);
	if (copy == NULL) {
		lru_remove(found->events, f);
		return false;
	}
	evrec_event_release(f->event);
	*f = (struct found){ copy, finder, last, now };
	if (__builtin_add_overflow(f->valid_until, found->valid_for, &f->valid_until)) {
		f->valid_until = INT64_MAX;
	}
	return true;
}

static uint32_t count_of(const evrec_fields *event)
{
	return event->series_count > 1 ? (uint32_t)event->series_count : 1;
}

static void get_event(const void *source, evrec_fields *event)
{
	*event = *(const evrec_fields *)source;
}

struct bringing {
	const void *finder;
	struct outbox *ob;
};

static bool bring(void *ctx, evrec_str key, void *value)
{
	const struct bringing *b = ctx;
	const struct found *f = value;
	const evrec_fields *event;
	struct write_draft draft;
	void *item;

	(void)key;
	if (f->event == NULL || f->finder != b->finder) {
		return true;
	}
	event = evrec_event_fields(f->event);
	draft = (struct write_draft){
		.new_style = true,
		.note = event->note,
		.last = f->last,
		.count = (int32_t)count_of(event),
		.get_event = get_event,
		.source = event,
	};
	item = write_new(&draft);
	if (item != NULL) {
		outbox_bring(b->ob, item);
	}
	return true;
}

void resume_found_bring(struct resume_found *found, const void *finder, struct outbox *ob)
{
	struct bringing bringing = { finder, ob };

	lru_each(found->events, bring, &bringing);
}

bool resume_found_adopt(struct resume_found *found, const evrec_fields *event, int64_t now, struct outcome *outcome)
{
	const evrec_fields *old;
	struct found *f;
	struct key key;
	bool adopted;

	if (lru_len(found->events) == 0 || !key_series(&key, &found->key, event, found->note_in_key)) {
		return false;
	}
	f = lru_find(found->events, &key);
	if (f == NULL || f->event == NULL) {
		return false;
	}
	old = evrec_event_fields(f->event);
	/* If the names are equal, it is the event to be created itself, whose count may already be included here. */
	adopted = now < f->valid_until && old->name.len < sizeof(outcome->name) && !str_eq(old->name, event->name);
	if (adopted) {
		outcome->verdict = VERDICT_ADOPT;
		outcome->base = count_of(old);
		memcpy(outcome->name, old->name.data, old->name.len);
		outcome->name[old->name.len] = '\0';
	}
	lru_remove(found->events, f);
	return adopted;
}

static void remove_all(struct resume_found *found)
{
	struct found *f;

	while ((f = lru_oldest(found->events)) != NULL) {
		lru_remove(found->events, f);
	}
}

void resume_found_patched(struct resume_found *found, const evrec_fields *event, bool listing)
{
	struct found *f;
	struct key key;
	bool fresh;

	if (!listing && lru_len(found->events) == 0) {
		return;
	}
	if (!key_series(&key, &found->key, event, found->note_in_key)) {
		remove_all(found);
		return;
	}
	f = listing ? lru_put(found->events, &key, &fresh) : lru_find(found->events, &key);
	if (f != NULL && listing) {
		recycle(f);
	} else if (f != NULL && f->event != NULL && str_eq(evrec_event_fields(f->event)->name, event->name)) {
		lru_remove(found->events, f);
	}
}
