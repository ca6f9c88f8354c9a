/*
 * sides.h - two broadcasters of one process that share one recorder: an owner and a worker. An object has tokens for two
 * events.
 */
#ifndef EVREC_UNIT_SIDES_H
#define EVREC_UNIT_SIDES_H

#include "unit.h"

#define SIDES_LONG (10 * EVREC_SECOND) /* never waited for to its end */

struct side {
	evrec_broadcaster *b;
	evrec_watch *watch;
	evrec_recorder *r;
	const evrec_explanation *inner; /* made in on_drop */
	evrec_error inner_err;
	bool explains; /* in on_drop */
};

struct sides {
	char share[64];
	struct side sides[2];
};

extern const evrec_reference sides_pod;

/* A name for the share that no other test has. */
void sides_name(struct sides *w);
/* Without a share if that is empty. False: no memory. */
bool sides_open_one(struct side *side, const char *share, const char *name, enum evrec_drive drive, const char *path);
void sides_close_one(struct side *side);
/* Opens the owner, which has a thread and so answers while the worker waits; then the worker. */
void sides_open(struct sides *w, enum evrec_drive worker, const char *path);
void sides_close(struct sides *w);
enum evrec_share_role sides_role(const struct side *side);

void sides_record_about(const struct side *side, const evrec_reference *object, const char *note);
void sides_record(const struct side *side, const char *note); /* about sides_pod */
/* evrec_explanation_new, which must not fail. */
const evrec_explanation *sides_explain(const struct side *side, const evrec_reference *object);

#endif
