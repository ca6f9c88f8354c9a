/*
 * places.h - namespaces that refuse what is written there: no right to write (403), or they are being deleted.
 *
 * What goes to a place that refused is not sent for PLACES_TERM; then one write is, the probe, and others are held
 * until it was answered. Creating and patching are refused apart: an account may have the right to do one of them, and
 * a namespace that is being deleted still takes patches. At most PLACES places are known, the latest.
 *
 * The term is half a minute: rights are given, and namespaces made again, by people and their tools, who do not wait
 * for it; and a request every 30 s for each namespace is nothing to the server.
 *
 * Not locked: belongs to an outbox.
 */
#ifndef EVREC_PLACES_H
#define EVREC_PLACES_H

#include "deliver/retry.h"

#pragma GCC visibility push(hidden)

struct entry;

#define PLACES 64
#define PLACES_TERM (30 * EVREC_SECOND)

struct place {
	char name[64]; /* a DNS label has at most 63 */
	size_t name_len;
	enum verb verb;
	enum evrec_cause cause;
	int64_t since;             /* the last refusal */
	const struct entry *probe; /* in flight; or NULL */
};

/* All zero knows none. */
struct places {
	struct place list[PLACES];
	size_t len;
};

/* Names that no namespace can have are not remembered. */
void places_refuse(struct places *p, evrec_str name, enum verb verb, enum evrec_cause cause, int64_t now);
/* NULL: not known to refuse. Holds until the next call of the other two. */
struct place *places_find(struct places *p, evrec_str name, enum verb verb);
void places_forget(struct places *p, struct place *place);

#pragma GCC visibility pop

#endif
