/*
 * plugin.h - a credential plugin in use: when it is run, and when its credential expires.
 *
 *   IDLE     --a request waits or starts, and the credential is missing or runs out soon--> WANTED
 *   WANTED   --a step, after the backoff--------------------------------------------------> RUNNING
 *            --the command cannot be started----------------------------------------------> IDLE
 *   RUNNING  --the command ends, with a credential or without one-------------------------> IDLE
 *
 * So there is one run at a time, and none while nothing is to be sent. After a failure, and after a credential that the
 * server has never accepted, the next run waits: 1 s, then twice as long each time, 30 s at most. A credential stays in
 * use while the next one is being fetched. A plugin belongs to one thread at a time.
 */
#ifndef EVREC_EXEC_PLUGIN_H
#define EVREC_EXEC_PLUGIN_H

#include "exec/command.h"
#include "exec/credential.h"

#pragma GCC visibility push(hidden)

enum plugin_state { PLUGIN_IDLE, PLUGIN_WANTED, PLUGIN_RUNNING, PLUGIN_STATES };

enum plugin_news {
	PLUGIN_NO_NEWS,
	PLUGIN_CREDENTIAL, /* there is a new one */
	PLUGIN_FAILED,     /* a run failed; an older credential may still be in use */
};

struct plugin;

/* Retains `command` and `clock`. Runs nothing. NULL: no memory. */
struct plugin *plugin_new(struct exec_command *command, evrec_clock *clock);
/* Kills the present run. NULL is fine. */
void plugin_free(struct plugin *p);

/* A request is to be sent. True: there is a credential. */
bool plugin_ready(struct plugin *p);
/*
 * Starts a run, or continues it; never waits. PLUGIN_CREDENTIAL: fills `credential`, now the caller's. PLUGIN_FAILED:
 * fills `err` for people, with the command's name and no part of its output.
 */
enum plugin_news plugin_step(struct plugin *p, struct exec_credential *credential, evrec_error *err);
/* When a step is due even if the descriptors below are not ready: 0 ns or more from now, INT64_MAX: never. */
int64_t plugin_next_step(const struct plugin *p);
/* Fills `fds` with the descriptors from which a run's output is read; returns how many. */
size_t plugin_descriptors(const struct plugin *p, int fds[2]);

/* The server accepted the present credential, or refused it. */
void plugin_accepted(struct plugin *p);
void plugin_refused(struct plugin *p);
/* The credential is unusable: fills `err` as plugin_step does. False: there is no credential, and nothing has changed. */
bool plugin_unusable(struct plugin *p, const char *why, evrec_error *err);

/* Whether this step is legal. A build with -DEVREC_DEBUG traps on an illegal step. */
bool plugin_may_step(enum plugin_state from, enum plugin_state to);

#pragma GCC visibility pop

#endif
