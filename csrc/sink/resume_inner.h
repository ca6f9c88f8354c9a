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
	LISTING_OVER,  /* with a result or without; a late answer is ignored */
};

/* The events of one controller that one reporting instance continues. */
struct listing {
	enum listing_state state;
	struct resume *resume;
	char *controller, *instance;
	enum evrec_api api;
	bool falls_back;       /* to core/v1 */
	bool restarted;        /* after a `continue` token had expired */
	struct buf token;      /* of the next page */
	unsigned limit;        /* of events in a page */
	int64_t due, deadline; /* monotonic */
	unsigned tries;        /* failed tries since the last success */
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
	bool ended; /* a listing has ended, so the held entries can be decided again */
	struct entry **held;
	size_t held_len, held_cap;
	size_t held_taken; /* how many of the held entries resume_take_held has returned */
};

static inline int64_t mono_now(const struct resume *r)
{
	return clock_monotonic(sender_clock(r->sender));
}

#pragma GCC visibility pop

#endif
