#include "correlate/replay.h"

#include "base/utf8.h"
#include "correlate/spam_filter.h"
#include "event/event.h"
#include "event/schema.h"

#define MINUTE (60 * EVREC_SECOND)
#define CACHE_MAX (1u << 24)

/* A write that a series has put off. */
struct deferred {
	int64_t due; /* 0: none */
};

static const struct lru_type deferred_type = { .value_size = sizeof(struct deferred) };
static const struct lru_type count_type = { .value_size = sizeof(uint64_t) };

void evrec_replay_variant_init(evrec_replay_variant *variant)
{
	evrec_sink_options options;

	evrec_correlator_options_init(&variant->correlator);
	variant->spam_key = (evrec_str){ NULL, 0 };
	variant->by_series = false;
	evrec_sink_options_init(&options);
	variant->series = options.series;
}

/* ---- requests ---- */

static int64_t minute_of(int64_t t)
{
	return t / MINUTE - (t % MINUTE < 0);
}

/* Counts the minute that has ended. False: no memory. */
static bool end_minute(struct minutes *m)
{
	const evrec_str number = { (const char *)&m->minute, sizeof(m->minute) };
	struct key key = key_of(number, (evrec_str){ NULL, 0 });
	uint64_t *count;
	bool fresh;

	if (m->count == 0) {
		return true;
	}
	count = lru_put(m->counts, &key, &fresh);
	if (count == NULL) {
		return false;
	}
	*count += m->count;
	m->count = 0;
	if (*count > m->peak) {
		m->peak = *count;
		m->peak_minute = m->minute * MINUTE;
	}
	return true;
}

static bool count_request(struct minutes *m, int64_t t)
{
	const int64_t minute = minute_of(t);

	if (minute != m->minute && !end_minute(m)) {
		return false;
	}
	m->minute = minute;
	m->count++;
	return true;
}

/* ---- keys ---- */

static bool repeat_keys(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	const struct variant *v = ctx;

	(void)event;
	*aggregate_key = v->keys->aggregate;
	*local_key = v->keys->local;
	return true;
}

static bool repeat_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	(void)event;
	*key = ((const struct variant *)ctx)->keys->spam;
	return true;
}

static evrec_str value_of(const struct key_field *field, const evrec_fields *event)
{
	const void *at = (const char *)event + field->offset;
	const evrec_map *map = at;

	if (field->map_key == NULL) {
		return *(const evrec_str *)at;
	}
	for (size_t i = 0; i < map->len; i++) {
		if (str_eq(map->pairs[i].key, str_from(field->map_key))) {
			return map->pairs[i].value;
		}
	}
	return (evrec_str){ NULL, 0 };
}

/* Each part follows its length, so that different parts make different keys. */
static bool make_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	struct variant *v = ctx;

	buf_clear(&v->key);
	for (size_t i = 0; i < v->fields_len; i++) {
		const evrec_str value = value_of(&v->fields[i], event);

		buf_put(&v->key, &value.len, sizeof(value.len));
		buf_put_str(&v->key, value);
	}
	*key = buf_str(&v->key);
	return !v->key.failed;
}

/* Finds the field of this name in the table. NULL: there is none. */
static const evrec_field *find_field(const evrec_field *table, evrec_str name)
{
	for (; table->name[EVREC_CORE_V1] != NULL; table++) {
		if (str_eq(str_from(table->name[EVREC_CORE_V1]), name)) {
			return table;
		}
	}
	return NULL;
}

static evrec_str until(evrec_str *text, char separator)
{
	const char *end = text->len == 0 ? NULL : memchr(text->data, separator, text->len);
	evrec_str part = *text;

	if (end == NULL) {
		*text = (evrec_str){ NULL, 0 };
		return part;
	}
	part.len = (size_t)(end - text->data);
	*text = (evrec_str){ end + 1, text->len - part.len - 1 };
	return part;
}

/* Follows a path such as "involvedObject.name". False: it names no text. */
static bool find_path(evrec_str path, struct key_field *out)
{
	const evrec_field *table = evrec_event_schema, *field;

	out->offset = 0;
	while (table != NULL) {
		field = find_field(table, until(&path, '.'));
		if (field == NULL) {
			return false;
		}
		out->offset += field->offset;
		if (field->type == EVREC_FIELD_STRING) {
			return path.len == 0;
		}
		if (field->type == EVREC_FIELD_MAP && path.len != 0) {
			out->map_key = str_dup(path);
			return out->map_key != NULL;
		}
		table = field->type == EVREC_FIELD_OBJECT ? field->fields : NULL;
	}
	return false;
}

static bool read_fields(struct variant *v, evrec_str names, evrec_error *err)
{
	while (names.len != 0) {
		const evrec_str name = until(&names, ',');

		if (v->fields_len == KEY_FIELDS) {
			error_set(err, EVREC_EINVALID, "spam_key: more than %d fields", KEY_FIELDS);
			return false;
		}
		if (!find_path(name, &v->fields[v->fields_len])) {
			error_set(err, EVREC_EINVALID, "spam_key: an event of core/v1 has no text '%.*s'",
			          (int)utf8_floor(name, 100), name.data);
			return false;
		}
		v->fields_len++;
	}
	return true;
}

/* ---- the variant ---- */

static bool check_series(const evrec_series_options *o, evrec_error *err)
{
	const bool ok = o->refresh_interval >= EVREC_SECOND && o->finish_time >= EVREC_SECOND && o->max_series >= 1 &&
	                o->max_series <= CACHE_MAX;

	if (!ok) {
		error_set(err, EVREC_EINVALID, "series: refresh_interval, finish_time or max_series is out of range");
	}
	return ok;
}

static bool open_caches(struct variant *v, const evrec_replay_variant *options, evrec_error *err)
{
	evrec_correlator_options o = options->correlator;

	o.ctx = v;
	o.message_func = NULL;
	o.key_func = repeat_keys;
	o.spam_key_func = v->fields_len != 0 ? make_spam_key : repeat_spam_key;
	if (correlator_check_options(&o, err) != 0 || !check_series(&options->series, err)) {
		return false;
	}
	v->buckets_max = o.lru_cache_size;
	v->minutes.counts = lru_new(&count_type, CACHE_MAX);
	v->by_series = options->by_series;
	if (v->by_series) {
		v->limits = o;
		v->series_options = options->series;
		v->deferred = lru_new(&deferred_type, CACHE_MAX);
	} else {
		v->correlator = evrec_correlator_new(&o, err);
	}
	if (v->minutes.counts == NULL || (v->deferred == NULL && v->correlator == NULL)) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	return true;
}

bool variant_create(struct variant *v, const evrec_replay_variant *options, evrec_error *err)
{
	return read_fields(v, options->spam_key, err) && open_caches(v, options, err);
}

void variant_use_real_clock(struct variant *v)
{
	v->real_clock = true;
	if (v->correlator != NULL) {
		correlator_use_real_clock(v->correlator);
	}
}

void variant_destroy(struct variant *v)
{
	for (size_t i = 0; i < KEY_FIELDS; i++) {
		mem_free(v->fields[i].map_key);
	}
	evrec_correlator_free(v->correlator);
	series_free(v->series);
	lru_free(v->deferred);
	lru_free(v->minutes.counts);
	buf_free(&v->key);
}

static bool write_deferred(struct variant *v, struct deferred *d, int64_t t)
{
	const int64_t due = d->due;

	if (due == 0 || due > t) {
		return true;
	}
	d->due = 0;
	v->heartbeats++;
	return count_request(&v->minutes, due);
}

/* The outbox of a sink would hold a deferred write until its time, and fold later occurrences into it. */
static bool defer(struct variant *v, const struct observed *o, int64_t t)
{
	const evrec_str handle = { (const char *)&o->handle, sizeof(o->handle) };
	struct key key = key_of(handle, (evrec_str){ NULL, 0 });
	struct deferred *d;
	bool fresh;

	d = lru_put(v->deferred, &key, &fresh);
	if (d == NULL || !write_deferred(v, d, t)) {
		return false;
	}
	d->due = o->due;
	return true;
}

/* The end of a series makes no request of its own: the deferred write with its last count is counted when it is due. */
static void ignore(void *ctx, const struct series_told *told)
{
	(void)ctx;
	(void)told;
}

static bool open_series(struct variant *v, int64_t t)
{
	if (v->series == NULL) {
		v->series = series_new(&v->series_options, &v->limits, t, ignore, NULL);
		if (v->series != NULL && v->real_clock) {
			series_use_real_clock(v->series);
		}
	}
	return v->series != NULL;
}

static bool observe_series(struct variant *v, const evrec_fields *event, struct keys *keys, int64_t t,
                           struct observed *observed)
{
	if (!open_series(v, t)) {
		return false;
	}
	series_tick(v->series, t, SIZE_MAX);
	return series_observe(v->series, event, keys, t, observed) == 0 && (observed->skip || defer(v, observed, t));
}

bool variant_observe(struct variant *v, const evrec_fields *event, struct keys *keys, const struct trace_keys *chosen,
                     int64_t t, struct observed *observed)
{
	v->keys = chosen;
	if (v->by_series) {
		if (!observe_series(v, event, keys, t, observed)) {
			return false;
		}
	} else {
		observed->due = 0;
		observed->merged = false;
		if (correlator_observe(v->correlator, event, keys, t, NULL, observed) != 0) {
			return false;
		}
	}
	return observed->skip || observed->due != 0 || count_request(&v->minutes, t);
}

struct ending {
	struct variant *v;
	int64_t t;
	bool ok;
};

static bool end_deferred(void *ctx, evrec_str key, void *value)
{
	struct ending *ending = ctx;

	(void)key;
	ending->ok = write_deferred(ending->v, value, ending->t);
	return ending->ok;
}

bool variant_end(struct variant *v, int64_t t)
{
	struct ending ending = { v, t, true };

	if (v->deferred != NULL) {
		lru_each(v->deferred, end_deferred, &ending);
	}
	return ending.ok && end_minute(&v->minutes);
}
