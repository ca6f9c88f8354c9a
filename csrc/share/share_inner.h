/*
 * share_inner.h - the inside of a share, for the files that implement it.
 *
 *   share.c       making, options, and what any thread does
 *   share_step.c  a step, and the end; who is the owner
 *   worker.c      the connection to the owner
 *   owner.c       the connections of the workers
 *   peer.c        what one worker has sent, and the acknowledgements that it is to get
 *   share_line.c  one connection
 */
#ifndef EVREC_SHARE_INNER_H
#define EVREC_SHARE_INNER_H

#include "share/endpoint.h"
#include "share/share.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

#define MS (EVREC_SECOND / 1000)
#define PEERS_MAX 1024
/* Frames that are read from one connection in one step: others have their turn. */
#define FRAMES_A_STEP 64

/* A connection, at either side. Only the thread that steps uses it. */
struct line_to {
	int fd; /* -1: none */
	struct endpoint_copied copied;
	uint32_t seq_in, seq_out;
	struct buf out; /* a frame that is to be sent; empty: none */
	struct frame_parts parts;
};

/* An event that a worker has sent. `event` lies in `bytes`. */
struct peer_node {
	struct frame_event event;
	char bytes[];
};

/* A worker, for the owner. */
struct peer {
	struct peer *next;
	struct line_to line;
	uint64_t number; /* of all connections of the process, from 1 */
	bool greeted, dead;
	struct peer_node **nodes; /* by id */
	size_t nodes_len;
	/* Under the lock. */
	struct buf acks; /* records to be sent */
	struct buf held; /* records that wait for share_release; the first `marked` bytes are in the state */
	size_t marked;
	bool failed; /* there was no memory for a record: the worker is to send all again */
};

/* A worker's connection to its owner. */
enum link_phase { LINK_NONE, LINK_GREETING, LINK_READY };
struct link {
	enum link_phase phase;
	struct line_to line;
	struct buf whole;         /* an event, with its name, that is being sent; empty: none */
	size_t sent;              /* bytes of it */
	struct frame_times times; /* of it */
	uint16_t flags;           /* of it */
};

struct share {
	const struct share_ops *ops;
	void *ctx;
	struct share_options options;
	struct endpoint endpoint;
	atomic_bool may_own;
	atomic_int wake_fd; /* an eventfd, from the first step on; -1 */
	unsigned char instance[FRAME_ID_SIZE];
	char *in;         /* FRAME_MAX bytes, for frames that are read */
	char told[256];   /* the last error, which is told once */
	int64_t next_try; /* to bind or to connect */
	struct link link;
	struct peer *peers;
	size_t peers_len;
	uint64_t last_number;
	struct pollfd *polled;
	size_t polled_room;
	struct buf state[FRAME_SINKS]; /* that the last owner has handed over, until another one is found */

	pthread_mutex_t lock; /* for all below, and for some fields of a peer */
	_Atomic enum share_role role;
	struct ledger *ledger;
	struct buf scratch;
	struct frame_option *same; /* the options that all must have alike; their names are in `names` */
	size_t same_len;
	char *names;
	size_t sinks;
	bool changed; /* the options, since the connection was greeted */
	bool flushes;
	_Atomic size_t most_events; /* of all limits that were set */
	bool records_own;           /* an event was taken out of the ledger, and is not recorded yet */
};

static inline void share_lock(struct share *s)
{
	(void)pthread_mutex_lock(&s->lock);
}

static inline void share_unlock(struct share *s)
{
	(void)pthread_mutex_unlock(&s->lock);
}

void share_forget_state(struct share *s);

/* ---- share_step.c ---- */

/* Tells an error, unless it is the one that was told last. */
void share_tell(struct share *s, const char *message, const char *name);

/* ---- connections: share_line.c ---- */

void line_open(struct line_to *line, int fd);
void line_close(struct line_to *line);
/* Sends the frame in `out`, if there is one. True: there is none any more. False: no room yet, or *dead. */
bool line_send(struct line_to *line, bool *dead);
/* The next frame, which lies in s->in. 1, 0 if there is none, or -1 with *err: the connection is of no more use. */
int line_receive(struct share *s, struct line_to *line, struct frame *frame, evrec_error *err);

/* ---- worker.c ---- */

void worker_begin(struct share *s, int fd);
void worker_end(struct share *s, int64_t next_try);
/* Reads and sends what can be at once. */
void worker_step(struct share *s, int64_t now);

/* ---- owner.c ---- */

/* Gives the events of the ledger and the state of the last owner to the pipelines. False: a part has had no memory yet. */
bool owner_begin(struct share *s);
void owner_step(struct share *s);
void owner_end(struct share *s, int64_t timeout);
void owner_free(struct share *s);

/* ---- peer.c ---- */

struct peer *peer_new(uint64_t number, int fd); /* NULL: no memory, and the descriptor is the caller's */
void peer_free(struct peer *peer);
/* Reads what the worker has sent. */
void peer_receive(struct share *s, struct peer *peer);
/* Sends acknowledgements as far as there is room. True: all is sent. */
bool peer_send(struct share *s, struct peer *peer);
/* With the lock held. */
void peer_settled(const struct share *s, struct peer *peer, const struct frame_ack *ack);
void peer_release(struct peer *peer);
/* So many acknowledgements wait that no more events are read. */
bool peer_is_full(struct share *s, const struct peer *peer);

#pragma GCC visibility pop

#endif
