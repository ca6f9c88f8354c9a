/*
 * outbox_model.h - a model of the outbox, as simple as possible: a short list of writes, ordered by their last
 * occurrence, oldest first; every question is a walk over the list. The property test compares outbox and model.
 */
#ifndef EVREC_UNIT_OUTBOX_MODEL_H
#define EVREC_UNIT_OUTBOX_MODEL_H

#include "fake_write.h"

#include "outbox/namespace_blocks.h"

#define MODEL_MAX 32
#define MODEL_NAMESPACES 3
#define MODEL_IDS 64

struct model_write {
	unsigned id, n; /* n: occurrences */
	bool important, in_flight;
	unsigned tries;          /* failed ones */
	unsigned maybe_received; /* occurrences in a POST under its name that the server may have received */
	bool renamed;
	bool maybe_late; /* the server may still carry out a PATCH of it */
	unsigned acked;  /* acknowledged occurrences that a further PATCH repeats */
	bool deferred;   /* not pending yet */
	uint64_t made;   /* a number that grows from write to write */
	int64_t due;     /* earliest time of that PATCH, or of the deferred write */
	size_t bytes;
	int64_t last; /* time of the last occurrence */
};

/* The test owns it; there is nothing to free. */
struct model {
	evrec_limits limits;
	size_t entry_bytes; /* of an entry, beside its fake write's size */
	struct model_write writes[MODEL_MAX];
	size_t len;
	uint64_t submitted, written, dropped[EVREC_CAUSES];
	struct model_write gone[256]; /* dropped, not collected yet */
	enum evrec_cause causes[256];
	size_t gone_len;
	bool over;                   /* released writes have exceeded the limits since there was room */
	bool forgot_late[MODEL_IDS]; /* a write with `maybe_late` ended, and no other took that over */
	/* Namespaces that are known to refuse POSTs [0] or PATCHes [1]. */
	struct {
		bool known, probing;
		unsigned probe; /* id of the probing write */
		int64_t since;
		enum evrec_cause cause;
	} blocks[MODEL_NAMESPACES][2];
};

/* The newest write of an id that is in flight, or waits; NULL if there is none. */
struct model_write *model_find(struct model *m, unsigned id, bool in_flight);

bool model_has_room(const struct model *m, size_t bytes);

/*
 * An occurrence, deferred until `due` unless that is 0. `memory`: whether allocations succeed. Returns whether the outbox
 * must accept it.
 */
bool model_submit(struct model *m, unsigned id, bool important, size_t size, int64_t now, int64_t due, bool memory);

/* The deferred write of that id, if there is one, or all of them are pending from `now` on. */
void model_release(struct model *m, unsigned id, int64_t now);
void model_release_all(struct model *m, int64_t now);

/* Inserts a write from a spool by its age, behind writes of the same age. */
void model_restore(struct model *m, const struct model_write *w);

/* Counts `n` occurrences of a write as written. True if none was left: then the write is removed. */
bool model_acknowledge(struct model *m, struct model_write *w, unsigned n);

/* Removes a write, and counts occurrences that were not acknowledged as dropped. */
void model_drop(struct model *m, struct model_write *w, enum evrec_cause cause);

/* Drops waiting writes older than max_age. */
void model_expire(struct model *m, int64_t now);

/* Ends a try without success: the write waits again, merged with its follow-up if there is memory. Returns it. */
struct model_write *model_return(struct model *m, unsigned id, int64_t now, bool memory);

/* Fails the test unless the outbox's counters are the model's. */
void model_check(struct model *m, struct outbox *ob);

/* A collected entry that was dropped: fails the test unless the model dropped it too, for the same cause. */
void model_collect(struct model *m, const struct entry *entry);

#endif
