/*
 * verdict.h - what an API server's answer to a create or patch of an event means: for the write, and for how busy the
 * server is. Pure. Any thread.
 */
#ifndef EVREC_VERDICT_H
#define EVREC_VERDICT_H

#include "outbox/protocol.h"

#pragma GCC visibility push(hidden)

/* True: a status of 200 to 299. */
bool kubernetes_is_success(int status);

/* True: the message of a 403 has the form of authorization's, by which the user may not do this to any event. */
bool kubernetes_is_of_authorization(const char *message);

/* A write that was answered: how it was sent, and its earlier tries. */
struct kubernetes_try {
	enum verb verb;
	bool may_exist;    /* an earlier try of this create, or another write of its event, may have been carried out */
	bool renamed;      /* the write has had its second name */
	bool just_started; /* the server may have just started: until it has read its roles, it forbids everything */
};

/*
 * Fills *outcome, which it clears first:
 *
 *   2xx                              written
 *   no answer, 429, 408, and 500     retry, after Retry-After if the server sent one
 *     or more, but 501 and 505
 *   401                              retry; the caller reads the credentials again
 *   403                              drop; but retry if the server may have just started
 *   404 to a patch                   create: the event expired or was deleted
 *   409 to a create                  if its event may exist (kubernetes_try.may_exist): success, and later occurrences are
 *                                    patched; else renamed once
 *   409 to a patch                   retry
 *   all others, redirects too        drop
 *
 * client-go's recordEvent gives most of these up; it retries only if there was no answer.
 */
void kubernetes_outcome(const struct kubernetes_try *try, const evrec_answer *answer, struct outcome *outcome);

/*
 * The conclusion from an answer about the API by which the write was sent. `lacks_api` is the result of
 * answer_lacks_api.
 */
enum api_news {
	API_NO_NEWS,   /* nothing: the server has not examined the write */
	API_SERVED,    /* the server has the API, and the account may use it, even if the write failed */
	API_MISSING,   /* the server does not have the API */
	API_FORBIDDEN, /* the account may not use the API for this verb and namespace */
};
enum api_news kubernetes_api_news(const struct kubernetes_try *try, const evrec_answer *answer, bool lacks_api);

/* The result of the request that was answered like this. */
enum request_result kubernetes_result(const evrec_answer *answer);

#pragma GCC visibility pop

#endif
