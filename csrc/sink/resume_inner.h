/*
 * resume_inner.h - the listings of kubernetes_resume.h, for the files that implement it.
 *
 *   kubernetes_resume.c  the writes that wait for a listing
 *   resume_listings.c    the requests of listings, and their answers
 */
#ifndef EVREC_RESUME_INNER_H
#define EVREC_RESUME_INNER_H

#include "base/clock.h"
#include "sink/kubernetes_resume.h"
#include "sink/resume_found.h"

#pragma GCC visibility push(hidden)

#define LISTINGS_MAX 16
#define GIVE_UP_AFTER (10 * EVREC_SECOND)

enum listing_state {
	LISTING_DUE,   /* its next page is to be asked for at `due` */
	LISTING_ASKED, /* a request is under way */
	LISTING_OVER,  /* with a result or without; a late answer says nothing any more */
};

/* The events of one controller that one reporting instance takes over. */
struct listing {
	enum listing_state state;
	struct resume *resume;
	char *controller, *instance;
	enum evrec_api api;
	bool falls_back;       /* to core/v1 */
	bool restarted;        /* after a token that had expired */
	struct buf token;      /* of the next page */
	unsigned limit;        /* of events in a page */
	int64_t due, deadline; /* monotonic */
	unsigned tries;        /* failed, since the last answer that was none */
	char problem[160];     /* of the last failure */
};

struct resume {
	struct sender *sender; /* NULL: there was no create yet */
	evrec_str *instances;
	size_t instances_len;
	int64_t active_for; /* ns after its last occurrence */
	struct resume_found found;
	struct listing listings[LISTINGS_MAX];
	size_t listings_len;
	bool told_full, forbidden;
	bool ended; /* a listing has, so what is held can be asked about again */
	struct entry **held;
	size_t held_len, held_cap;
	size_t held_taken; /* of them, by resume_take_held */
};

static inline int64_t mono_now(const struct resume *r)
{
	return clock_monotonic(sender_clock(r->sender));
}

#pragma GCC visibility pop

#endif
