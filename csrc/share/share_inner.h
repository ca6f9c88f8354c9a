/*
 * share_inner.h - the inside of a share, for the files that implement it.
 *
 *   share.c       making, options, and what any thread does
 *   share_step.c  a step, and the end; who is the owner
 *   worker.c      the connection to the owner
 *   silence.c     whether the owner answers
 *   owner.c       the connections of the workers
 *   owner_end.c   its end, and its heir
 *   peer.c        what one worker has sent
 *   peer_acks.c   the frames that the owner sends to one worker
 *   ask.c         a worker's question to the owner, and the answer
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
/* Frames that are read from the owner, or sent to it, in one step; connections that an owner accepts. */
#define FRAMES_A_STEP 64
/* Frames and occurrences that an owner takes in one step: the same part from each worker, but at least the latter. */
#define WORK_A_STEP 10000
#define WORK_A_PEER 64
#define HEIR_FIRST (300 * MS) /* the others leave the heir so much time to bind */

/* A connection, at either side. Only the thread that steps uses it. */
struct line_to {
	int fd; /* -1: none */
	struct endpoint_copied copied;
	uint32_t seq_in, seq_out;
	struct buf out; /* a frame that is to be sent; empty: none */
	struct frame_parts parts;
};

/* A worker's question to the owner (share_ask). Under the lock. */
enum ask_phase {
	ASK_NONE,
	ASK_WAITS, /* is to be sent */
	ASK_SENT,
	ASK_ANSWERED,
	ASK_REFUSED, /* the owner has no answer */
};
struct ask {
	enum ask_phase phase;
	uint32_t number;           /* of the last question */
	struct buf object;         /* as bytes */
	struct frame_parts answer; /* as far as it has come */
};

/* An owner's answer that is being sent to a worker. */
struct answer {
	bool sends;
	uint32_t question;
	struct buf whole; /* empty: there is none */
	size_t sent;      /* bytes of it */
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
	uint64_t number;  /* of all connections of the process, from 1 */
	uint64_t process; /* of its instance */
	bool greeted, dead;
	bool pinged;              /* and it got no answer yet */
	bool signs;               /* unasked: an owner that ends reads no question, but lives */
	bool tells_left;          /* it is to be told that it has left its events to this process */
	bool offered, offers;     /* that it may be the heir; the frame is still to be sent */
	bool accepts;             /* the offer: it lives */
	bool closing;             /* it is about to end */
	struct peer_node **nodes; /* by id */
	size_t nodes_len;
	size_t work;     /* frames and occurrences that may be taken in this step */
	struct buf rest; /* frame_times that were read, and are to be recorded in later steps */
	size_t rest_at;  /* bytes of it that are recorded */
	struct answer answer;
	/* Under the lock. */
	uint64_t waiting;  /* its occurrences in the pipelines, for each sink */
	struct buf errors; /* frames to be sent, each behind its length */
	struct buf acks;   /* records to be sent */
	struct buf held;   /* records that wait for share_release; the first `marked` bytes are in the state */
	size_t marked;
	bool failed; /* there was no memory for a record: the worker is to send all again */
	bool left;   /* it ends, and keeps nothing of what it has sent */
};

/* A worker's connection to its owner. */
enum link_phase { LINK_NONE, LINK_GREETING, LINK_READY };
/* The end of a worker, which asks the owner whether it has received all. */
enum link_leave { LEAVE_NOT, LEAVE_SENDS, LEAVE_ASKED, LEAVE_RECEIVED };
struct link {
	enum link_phase phase;
	enum link_leave leave;
	struct line_to line;
	struct buf whole;         /* an event, with its name, that is being sent; empty: none */
	size_t sent;              /* bytes of it */
	struct frame_times times; /* of it */
	uint16_t flags;           /* of it */
	bool unsure;              /* the last connection did not end in order */
	bool accepts;             /* the owner's offer is to be answered */
	bool accepted;            /* that offer was accepted, or will be */
};

/* Whether the owner answers. Times are those of steps; NEVER: not so. */
#define NEVER INT64_MIN
struct silence {
	int pid;       /* of the owner; 0: unknown */
	int64_t since; /* nothing was heard, though something is awaited */
	int64_t asked; /* it was asked for a word */
	bool asks;     /* it is to be asked */
	int64_t told;  /* `since`, of a silence that was told and is not over */
};

struct share {
	const struct share_ops *ops;
	void *ctx;
	struct share_options options;
	struct endpoint endpoint;
	atomic_bool may_own, leaves;
	bool refused;       /* by the owner that was found last, as the options differ */
	bool alone;         /* an owner without an endpoint */
	atomic_int wake_fd; /* an eventfd, from the first step on; -1 */
	unsigned char instance[FRAME_ID_SIZE];
	char *in;              /* FRAME_MAX bytes, for frames that are read */
	char told[256];        /* the last error, which is told once */
	int64_t next_try;      /* to bind or to connect */
	int64_t bind_from;     /* not to bind before that: another process is the heir */
	int64_t closing_since; /* a process that is about to end looks for an owner; 0: it has not begun to */
	int64_t bound_at;      /* in place of the last owner, by the real clock; INT64_MIN: there was none */
	bool was_worker;       /* there was an owner that has gone since */
	bool is_heir;          /* of that one */
	atomic_bool closing;
	bool declines; /* share_decline */
	struct link link;
	struct silence silence;
	_Atomic int64_t silent_since; /* share_silent_since */
	int64_t next_accept;          /* after the system has refused a connection */
	int64_t next_sign;            /* of an owner that leaves */
	unsigned refused_user;        /* the one that was told last; at first the own one */
	int64_t next_refusal;         /* that may be told */
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
	_Atomic size_t sinks; /* written with the lock held */
	bool changed;         /* the options, since the connection was greeted */
	bool flushes;
	uint64_t left_to_owner;     /* share_left_to_owner */
	_Atomic size_t most_events; /* of all limits that were set */
	bool records_own;           /* an event was taken out of the ledger, and is not recorded yet */
	struct ask ask;
};

static inline void share_lock(struct share *s)
{
	(void)pthread_mutex_lock(&s->lock);
}

static inline void share_unlock(struct share *s)
{
	(void)pthread_mutex_unlock(&s->lock);
}

static inline uint64_t share_process(const unsigned char instance[FRAME_ID_SIZE])
{
	uint64_t process;

	memcpy(&process, instance, sizeof(process));
	return process;
}

void share_forget_state(struct share *s);

/* ---- share_step.c ---- */

/* Tells an error, unless it is the one that was told last. */
void share_tell(struct share *s, const char *message, const char *name);
/* s->endpoint is bound from now on. */
void share_has_bound(struct share *s);

/* ---- connections: share_line.c ---- */

/* `fd` and `copied` are a new connection. */
void line_begin(struct line_to *line);
void line_close(struct line_to *line);
/* Sends the frame in `out`, if there is one. True: there is none any more. False: no room yet, or *dead. */
bool line_send(struct line_to *line, bool *dead);
/* As line_send, and the bound socket goes with the frame. */
bool line_give(struct line_to *line, const struct endpoint *e, bool *dead);
/* The next frame, which lies in s->in. 1, 0 if there is none, or -1 with *err: the connection is of no more use. */
int line_receive(struct share *s, struct line_to *line, struct frame *frame, evrec_error *err);

/* ---- worker.c ---- */

/* s->link.line has a new connection. */
void worker_begin(struct share *s, int64_t now);
void worker_end(struct share *s, int64_t next_try);
/*
 * Instead of further steps: sends what can be sent until `deadline` (CLOCK_MONOTONIC), leaves to the owner what that has
 * received, and takes what the owner has said.
 */
void worker_leave(struct share *s, int64_t deadline);
/* Reads and sends what can be at once. */
void worker_step(struct share *s, int64_t now);

/* ---- silence.c ---- */

/* A connection begins. */
void silence_begin(struct share *s, int fd);
/* A connection ended. */
void silence_end(struct share *s);
/* After what can be read was read, or as long as there is an owner that cannot be connected to. */
void silence_step(struct share *s, int64_t now);
/* A frame was read, or this process is the owner. */
void silence_is_over(struct share *s, int64_t now);

/* ---- owner.c ---- */

/* Gives the events of the ledger and the state of the last owner to the pipelines. False: a part has had no memory yet. */
bool owner_begin(struct share *s);
void owner_step(struct share *s, int64_t now);
/* Accepts connections that wait. */
void owner_accept(struct share *s, int64_t now);
void owner_remove_dead(struct share *s);
void owner_free(struct share *s);

/* ---- owner_end.c ---- */

/* The owner is about to end, and reads no more events: asks the worker, once, whether it lives and may be the heir. */
void owner_offer(struct peer *peer);
/* Takes until `deadline` (CLOCK_MONOTONIC) at most. */
void owner_end(struct share *s, int64_t deadline);

/* ---- peer.c ---- */

struct peer *peer_new(uint64_t number); /* without a connection; NULL: no memory */
void peer_free(struct peer *peer);
/* Takes what the worker has sent: frames and occurrences, no more than `work`. */
void peer_receive(struct share *s, struct peer *peer, size_t work);

/* ---- peer_acks.c ---- */

/* Sends acknowledgements as far as there is room. True: all is sent. */
bool peer_send(struct share *s, struct peer *peer);
/* With the lock held. */
void peer_settled(const struct share *s, struct peer *peer, const struct frame_ack *ack);
void peer_release(struct peer *peer);
/* With the lock held: the frame of an error is to be sent, if the peer has to do with it. True: it is. */
bool peer_report(struct peer *peer, evrec_str problem, evrec_str sink_name, evrec_str text);
/* So many acknowledgements wait, or an answer, that no more events are read. */
bool peer_is_full(struct share *s, const struct peer *peer);

/* ---- ask.c ---- */

/* With the lock held: makes the question's frame in line.out, if one is to be sent. */
void ask_put(struct share *s);
/* With the lock held: the connection has ended. A question without an answer is asked again. */
void ask_disconnect(struct share *s);
/* A part of an answer has come. */
int ask_take(struct share *s, const struct frame *f, evrec_error *err);
void ask_free(struct ask *ask);
/* An owner: a question has come. */
int answer_make(struct share *s, struct peer *peer, const struct frame *f, evrec_error *err);
/* Makes the answer's next frame in line.out, if one is to be sent. */
void answer_put(struct peer *peer);

#pragma GCC visibility pop

#endif
