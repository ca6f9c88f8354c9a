/*
 * api_choice.h - the API by which a sink's events in the new style are sent. Pure. One thread at a time.
 *
 * With EVREC_SINK_AUTO a write that events.k8s.io/v1 refuses as such (the server does not have it, or the account may not
 * use it) is sent once more, by core/v1. If core/v1 serves it, all writes go there from then on; if not, the next write
 * asks both again. A write that events.k8s.io/v1 serves shows that the account may use it: a namespace that forbids it
 * later is no reason to leave it.
 */
#ifndef EVREC_API_CHOICE_H
#define EVREC_API_CHOICE_H

#include "kubernetes/verdict.h"

#pragma GCC visibility push(hidden)

struct api_choice {
	_Atomic(enum evrec_api) api; /* by which writes in the new style are sent; any thread may read it */
	bool falls_back;             /* core/v1 may take its place */
	bool served;                 /* events.k8s.io/v1 has served a write */
};

/* Takes the news of a write that was sent by `api`. True: it is to be sent once more, by core/v1. */
bool api_choice_asks_core(struct api_choice *c, enum evrec_api api, enum api_news news);
/* Takes the news of a write that was sent by core/v1 therefore. True: core/v1 takes the place of the other from now on. */
bool api_choice_heard_core(struct api_choice *c, enum api_news news);

/* A message for people, static: the refusal of a write with this verb, after which core/v1 is used. */
const char *api_choice_message(enum api_news refusal, enum verb verb);

#pragma GCC visibility pop

#endif
