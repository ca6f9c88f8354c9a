#include "sink/fingerprint.h"

#include "base/lru.h"
#include "sink/sink.h"

void fingerprint_add(struct fingerprint *f, const char *option, evrec_str value)
{
	if (f->len < FINGERPRINT_MAX) {
		f->options[f->len].option = option;
		f->options[f->len++].hash = lru_hash(value);
	}
}

static uint64_t combine(uint64_t one, uint64_t other)
{
	const uint64_t both[2] = { one, other };

	return lru_hash((evrec_str){ (const char *)both, sizeof(both) });
}

void fingerprint_mix(struct fingerprint *f, evrec_str value)
{
	uint64_t *hash = &f->options[f->len - 1].hash;

	*hash = combine(*hash, lru_hash(value));
}

void fingerprint_add_number(struct fingerprint *f, const char *option, int64_t value)
{
	fingerprint_add(f, option, (evrec_str){ (const char *)&value, sizeof(value) });
}

void fingerprint_add_double(struct fingerprint *f, const char *option, double value)
{
	fingerprint_add(f, option, (evrec_str){ (const char *)&value, sizeof(value) });
}

void fingerprint_add_map(struct fingerprint *f, const char *option, const evrec_map *map)
{
	uint64_t sum = map->len;

	for (size_t i = 0; i < map->len; i++) {
		sum += combine(lru_hash(map->pairs[i].key), lru_hash(map->pairs[i].value));
	}
	fingerprint_add(f, option, (evrec_str){ (const char *)&sum, sizeof(sum) });
}

const char *fingerprint_difference(const struct fingerprint *a, const struct fingerprint *b)
{
	for (size_t i = 0; i < a->len && i < b->len; i++) {
		if (a->options[i].option != b->options[i].option &&
		    strcmp(a->options[i].option, b->options[i].option) != 0) {
			return a->options[i].option;
		}
		if (a->options[i].hash != b->options[i].hash) {
			return a->options[i].option;
		}
	}
	return a->len == b->len ? NULL : "sink";
}

void fingerprint_correlator(struct fingerprint *f, const evrec_correlator_options *o)
{
	fingerprint_add_number(f, "lru_cache_size", (int64_t)o->lru_cache_size);
	fingerprint_add_number(f, "burst_size", o->burst_size);
	fingerprint_add_double(f, "qps", o->qps);
	fingerprint_add_number(f, "max_events", o->max_events);
	fingerprint_add_number(f, "max_interval_in_seconds", o->max_interval);
	fingerprint_add_number(f, "key_func", o->key_func != NULL);
	fingerprint_add_number(f, "message_func", o->message_func != NULL);
	fingerprint_add_number(f, "spam_key_func", o->spam_key_func != NULL);
}

static void add_common(struct fingerprint *f, const evrec_sink_options *o)
{
	fingerprint_add_number(f, "max_pending", (int64_t)o->limits.max_pending);
	fingerprint_add_number(f, "max_pending_bytes", (int64_t)o->limits.max_pending_bytes);
	fingerprint_add_number(f, "max_age", o->limits.max_age);
	fingerprint_add_number(f, "max_tries", o->limits.max_tries);
	fingerprint_add_number(f, "full", o->limits.full);
	fingerprint_add(f, "spool", o->spool);
	fingerprint_add_number(f, "spool_after", o->spool_after);
	fingerprint_add_number(f, "spool_journal", o->spool_journal);
	fingerprint_add(f, "state_file", o->state_file);
	fingerprint_add(f, "name", o->name);
	fingerprint_add_number(f, "api", o->api);
	fingerprint_add_number(f, "correlate", o->correlate);
	fingerprint_add_number(f, "refresh_interval", o->series.refresh_interval);
	fingerprint_add_number(f, "finish_time", o->series.finish_time);
	fingerprint_add_number(f, "max_series", (int64_t)o->series.max_series);
	fingerprint_add_number(f, "note_in_key", o->series.note_in_key);
	fingerprint_add_number(f, "rate_limit", o->series.rate_limit);
}

void sink_fingerprint(const evrec_sink *sink, struct fingerprint *f)
{
	fingerprint_add(f, "sink", str_from(sink->kind));
	add_common(f, &sink->options);
	if (sink->add_fingerprint != NULL) {
		sink->add_fingerprint(sink, f);
	}
}
