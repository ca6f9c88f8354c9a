/*
 * share_inner.h - the structs and internal functions of a share, for its files.
 *
 *   share.c           making, options, and what any thread does
 *   share_step.c      a step, and the end; who is the owner
 *   worker.c          the connection to the owner, and what the worker sends
 *   worker_receive.c  what the owner has sent
 *   silence.c         whether the owner answers
 *   owner.c           the connections of the workers
 *   owner_end.c       its end, and its heir
 *   peer.c            what one worker has sent
 *   peer_acks.c       the frames that the owner sends to one worker
 *   ask.c             a worker's question to the owner, and the answer
 *   share_line.c      one connection
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
/*
 * The most frames that are read from the owner, or sent to it, in one step, and the most connections that an owner
 * accepts.
 */
#define FRAMES_A_STEP 64
/*
 * Frames and occurrences that an owner takes in one step: an equal part from each worker, but at least WORK_A_PEER.
 */
#define WORK_A_STEP 10000
#define WORK_A_PEER 64
#define RETRY_GREETING (100 * MS) /* after one of the two processes did not send a hello */
#define HEIR_FIRST (300 * MS)     /* the time for which the other workers let the heir bind first */

/* A connection, at either side. Only the stepping thread uses it. */
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
	struct frame_parts answer; /* the parts received so far */
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
	bool pinged;              /* it has sent a ping, which was not answered yet */
	uint64_t had_batch;       /* the last batch that it had got when it connected */
	bool signs;               /* send it unasked pongs: an owner that ends reads no pings, but lives */
	bool tells_left;          /* send it FRAME_LEFT */
	bool offered, offers;     /* it was offered to be the heir; the offer is still to be sent */
	bool accepts;             /* it has accepted the offer */
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
	uint64_t batch; /* of `acks`; 0: its end is sent, too */
	bool failed;    /* there was no memory for a record: the worker is to send all again */
	bool left;      /* it ends, and keeps nothing of what it has sent */
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
	bool unsure;              /* the last owner may have counted what it did not acknowledge */
	bool accepts;             /* the owner's offer is to be answered */
	bool accepted;            /* that offer was accepted, or will be */
	bool tells_batch;         /* it is to be told the last batch */
	struct buf acks;          /* records of a batch whose end has not come yet */
};

/* Whether the owner answers. Times are those of steps; NEVER: no such time. */
#define NEVER INT64_MIN
struct silence {
	int pid;       /* of the owner; 0: unknown */
	int64_t since; /* since when nothing was received, though a frame is expected */
	int64_t asked; /* when a ping was sent */
	bool asks;     /* a ping is to be sent */
	int64_t told;  /* the `since` of a silence that was reported and has not ended */
};

struct share {
	const struct share_ops *ops;
	void *ctx;
	struct share_options options;
	struct endpoint endpoint;
	atomic_bool may_own, leaves;
	bool refused;       /* the last owner refused this process, as the options differ */
	bool alone;         /* an owner without an endpoint */
	atomic_int wake_fd; /* an eventfd, from the first step on; -1 */
	unsigned char instance[FRAME_ID_SIZE];
	char *in;              /* FRAME_MAX bytes, for frames that are read */
	char told[256];        /* the last error that was reported */
	int64_t next_try;      /* when to bind or to connect next */
	int64_t bind_from;     /* do not bind before this time: another process is the heir */
	int64_t closing_since; /* since when a process that is about to end looks for an owner; 0: not yet */
	int64_t bound_at; /* when it took the place of the last owner, by the real clock; INT64_MIN: there was none */
	bool was_worker;  /* it had an owner, which has ended */
	bool is_heir;     /* it is the heir of that owner */
	atomic_bool closing;
	bool declines; /* share_decline */
	struct link link;
	struct silence silence;
	_Atomic int64_t silent_since; /* share_silent_since */
	int64_t next_accept;          /* when to accept again, after accept() has failed */
	int64_t next_sign;            /* when an owner that ends sends the next pongs */
	unsigned refused_user;        /* the refused user that was reported last; at first this user */
	int64_t next_refusal;         /* when the next refusal may be reported */
	struct peer *peers;
	size_t peers_len;
	uint64_t last_number;
	uint64_t batch;     /* share_begin_batch */
	uint64_t got_batch; /* the last one that a worker has got; 0: none */
	struct pollfd *polled;
	size_t polled_room;
	struct buf state[FRAME_SINKS]; /* the state that the last owner has handed over, until another owner is found */

	pthread_mutex_t lock; /* guards all fields below, and some fields of a peer */
	_Atomic enum share_role role;
	struct ledger *ledger;
	struct buf scratch;
	struct frame_option *same; /* the options that all must have alike; their names are in `names` */
	size_t same_len;
	char *names;
	_Atomic size_t sinks; /* written with the lock held */
	bool changed;         /* the options have changed since the hello of the connection */
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

/* Reports an error, unless it is the one that was reported last. */
void share_tell(struct share *s, const char *message, const char *name);
/* s->endpoint is bound from now on. */
void share_has_bound(struct share *s);

/* ---- connections: share_line.c ---- */

/* `fd` and `copied` are a new connection. */
void line_begin(struct line_to *line);
void line_close(struct line_to *line);
/* Sends the frame in `out`, if there is one. True: `out` is empty now. False: no room yet, or *dead. */
bool line_send(struct line_to *line, bool *dead);
/* As line_send, and passes the bound socket with the frame. */
bool line_give(struct line_to *line, const struct endpoint *e, bool *dead);
/* Receives the next frame, which lies in s->in. 1; 0: there is none; -1, with *err: the connection is unusable. */
int line_receive(struct share *s, struct line_to *line, struct frame *frame, evrec_error *err);

/* ---- worker.c ---- */

/* s->link.line has a new connection. */
void worker_begin(struct share *s, int64_t now);
void worker_end(struct share *s, int64_t next_try);
/*
 * In place of further steps: sends events until `deadline` (CLOCK_MONOTONIC), leaves the events that the owner has
 * received to the owner, and handles the frames that the owner has sent.
 */
void worker_leave(struct share *s, int64_t deadline);
/* Receives and sends without waiting. */
void worker_step(struct share *s, int64_t now);

/* ---- worker_receive.c ---- */

/* Takes the frames of the owner that have arrived, FRAMES_A_STEP at most. */
void worker_receive(struct share *s, int64_t now);
/* Takes all of them, of an owner that may have ended. */
void worker_receive_rest(struct share *s, int64_t now);
/* The connection ended, or *err has an error of the owner. */
void worker_lose(struct share *s, int64_t now, const evrec_error *err);

/* ---- silence.c ---- */

/* A connection begins. */
void silence_begin(struct share *s, int fd);
/* A connection ended. */
void silence_end(struct share *s);
/* After all available frames were read, or while there is an owner to which no connection can be made. */
void silence_step(struct share *s, int64_t now);
/* A frame was read, or this process is the owner. */
void silence_is_over(struct share *s, int64_t now);

/* ---- owner.c ---- */

/*
 * Gives the events of the ledger and the state of the last owner to the pipelines. False: there was no memory for a
 * part; call again.
 */
bool owner_begin(struct share *s);
void owner_step(struct share *s, int64_t now);
/* Accepts connections that wait. */
void owner_accept(struct share *s, int64_t now);
void owner_remove_dead(struct share *s);
void owner_free(struct share *s);

/* ---- owner_end.c ---- */

/* The owner is about to end, and reads no more events: offers the worker, once, to be the heir. */
void owner_offer(struct peer *peer);
/* Ends an owner, until `deadline` (CLOCK_MONOTONIC) at the latest. */
void owner_end(struct share *s, int64_t deadline);

/* ---- peer.c ---- */

struct peer *peer_new(uint64_t number); /* without a connection; NULL: no memory */
void peer_free(struct peer *peer);
/* Handles at most `work` frames and occurrences that the worker has sent. */
void peer_receive(struct share *s, struct peer *peer, size_t work);

/* ---- peer_acks.c ---- */

/* Sends acknowledgements as far as there is room. True: all were sent. */
bool peer_send(struct share *s, struct peer *peer);
/* With the lock held. */
void peer_settled(const struct share *s, struct peer *peer, const struct frame_ack *ack);
void peer_release(struct peer *peer, uint64_t batch);
/* With the lock held: queues the frame of an error, if the error concerns the peer. True: it does. */
bool peer_report(struct peer *peer, evrec_str problem, evrec_str sink_name, evrec_str text);
/* Whether too many acknowledgements wait, or an answer, to read more events. */
bool peer_is_full(struct share *s, const struct peer *peer);

/* ---- ask.c ---- */

/* With the lock held: makes the question's frame in line.out, if there is a question to send. */
void ask_put(struct share *s);
/* With the lock held: the connection has ended. A question without an answer is asked again. */
void ask_disconnect(struct share *s);
/* A part of an answer has come. */
int ask_take(struct share *s, const struct frame *f, evrec_error *err);
void ask_free(struct ask *ask);
/* An owner: a question has come. */
int answer_make(struct share *s, struct peer *peer, const struct frame *f, evrec_error *err);
/* Makes the answer's next frame in line.out, if there is an answer to send. */
void answer_put(struct peer *peer);

#pragma GCC visibility pop

#endif
