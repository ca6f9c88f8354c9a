/*
 * kubernetes_resume.h - finds the events that earlier processes wrote, so that series go on (the options `resume`).
 *
 *   first create of a controller and instance --> held --- listing, by pages ---> over: answered VERDICT_AGAIN
 *   the same create once more                 --> its event was found: adopted; else sent
 *
 * A listing begins once the writes of the spool are answered, so that the server's counts are the last ones. It ends
 * after GIVE_UP_AFTER at the latest; without its result series begin anew. An event that was found is also passed to
 * the pipeline (outbox_bring), which then need not create it. Time is that of the sender's clock. For the sender's
 * driver.
 */
#ifndef EVREC_KUBERNETES_RESUME_H
#define EVREC_KUBERNETES_RESUME_H

#include "http/http_client.h"
#include "outbox/outbox.h"
#include "sender/sender.h"

#pragma GCC visibility push(hidden)

struct resume;

/* Copies what it needs of the options. NULL: no memory. */
struct resume *resume_new(const evrec_kubernetes_options *options);
void resume_free(struct resume *r); /* NULL is fine */

enum resume_answer {
	RESUME_SEND,
	RESUME_HOLD,  /* `entry` is held, until resume_take_held returns it */
	RESUME_ADOPT, /* *outcome, which was all zero, names the event to be patched instead */
};
/*
 * Decides what is to be done with a write. `api` is the API in use; a listing falls back to core/v1 if `falls_back`. A
 * patch is always sent; from then on no create adopts the patched event, as the listed count is old.
 */
enum resume_answer resume_ask(struct resume *r, struct sender *s, struct entry *entry, enum evrec_api api,
                              bool falls_back, struct outcome *outcome);
/* A patch was sent, or answered: the server carried it out at some time between, so a list may show what was before. */
void resume_patched(struct resume *r, const struct entry *entry);
/* True: a listing is not over, so requests are to be sent for it. */
bool resume_lists(const struct resume *r);
/* Sends the requests of listings that are due, if the client is `ready`, and ends listings that take too long. */
void resume_step(struct resume *r, struct http_client *client, bool ready);
/* When a step is due if no answer comes before: ns from now; INT64_MAX: never. */
int64_t resume_next_step(const struct resume *r, bool ready);
/* The next entry to be answered by VERDICT_AGAIN; NULL: none. After resume_step. */
struct entry *resume_take_held(struct resume *r);

/* True: `ctx` is that of a request of resume_step, whose answer resume_answered gets. */
bool resume_is_own(const struct resume *r, const void *ctx);
/* `answer` has status and message; a 403 of a server that may have `just_started` is retried. */
void resume_answered(struct resume *r, void *ctx, const struct http_response *response, const evrec_answer *answer,
                     bool just_started);

#pragma GCC visibility pop

#endif
