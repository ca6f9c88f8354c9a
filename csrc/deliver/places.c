#include "deliver/places.h"

struct place *places_find(struct places *p, evrec_str name, enum verb verb)
{
	for (size_t i = 0; i < p->len; i++) {
		struct place *place = &p->list[i];

		if (place->verb == verb && str_eq((evrec_str){ place->name, place->name_len }, name)) {
			return place;
		}
	}
	return NULL;
}

/* Room for one more, where need be that of the one whose last refusal is longest ago. */
static struct place *make(struct places *p)
{
	struct place *oldest = &p->list[0];

	if (p->len < PLACES) {
		p->len++;
		return &p->list[p->len - 1];
	}
	for (size_t i = 1; i < PLACES; i++) {
		if (p->list[i].since < oldest->since) {
			oldest = &p->list[i];
		}
	}
	return oldest;
}

void places_refuse(struct places *p, evrec_str name, enum verb verb, enum evrec_cause cause, int64_t now)
{
	struct place *place = places_find(p, name, verb);

	if (place == NULL) {
		if (name.len == 0 || name.len > sizeof(place->name)) {
			return;
		}
		place = make(p);
		memcpy(place->name, name.data, name.len);
		place->name_len = name.len;
		place->verb = verb;
	}
	place->cause = cause;
	place->since = now;
	place->probe = NULL;
}

void places_forget(struct places *p, struct place *place)
{
	p->len--;
	*place = p->list[p->len];
}
