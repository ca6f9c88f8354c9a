/*
 * api_choice.h - the API by which a sink's events in the new style are sent. Pure. One thread at a time.
 *
 * With EVREC_SINK_AUTO, if the server does not have events.k8s.io/v1, or the account may not use it, the write is sent
 * once more, by core/v1. If core/v1 serves it, all writes use core/v1 from then on; if not, the next write tries both
 * again. Once events.k8s.io/v1 has served a write, the account may use it, and a namespace that forbids a later write
 * is no reason to leave it.
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

/* Takes the result of a write that was sent by `api`. True: the write is to be sent once more, by core/v1. */
bool api_choice_asks_core(struct api_choice *c, enum evrec_api api, enum api_news news);
/*
 * Takes the result of a write that was sent once more, by core/v1. True: core/v1 replaces events.k8s.io/v1 from now on.
 */
bool api_choice_heard_core(struct api_choice *c, enum api_news news);

/* A message for people, static: the refusal of a write with this verb, after which core/v1 is used. */
const char *api_choice_message(enum api_news refusal, enum verb verb);

#pragma GCC visibility pop

#endif
