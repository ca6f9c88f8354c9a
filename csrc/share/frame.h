/*
 * frame.h - the messages between the processes of a host that share one recorder. Pure; any thread.
 *
 * A message of a SOCK_SEQPACKET socket is a frame. Both sides run on one machine, so numbers have its byte order; the
 * first frame, hello, shows a peer with another order or version. Frames are untrusted: each length is checked, and an
 * event is checked like that of a recording call.
 *
 *   worker -> owner   hello, batch, event, more, flush, ask, ping, accept, leave
 *   owner -> worker   hello or refuse; ack, batch, answer, error, pong, offer, left, state, bye
 *
 * An event is sent once on a connection, under an id of the worker's choice; further occurrences name the id. An event
 * that is longer than a frame is sent in consecutive parts. So is an answer (explained.h).
 */
#ifndef EVREC_FRAME_H
#define EVREC_FRAME_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

#define FRAME_MAX (64 * 1024)             /* bytes of a frame */
#define FRAME_EVENT_MAX (4 * 1024 * 1024) /* bytes of an event, with its name and keys */
#define FRAME_STATE_MAX (64 * 1024 * 1024)
#define FRAME_ANSWER_MAX (64 * 1024 * 1024)
#define FRAME_BATCH_MAX (64 * 1024 * 1024) /* bytes of the acknowledgements of a batch */
#define FRAME_SINKS 8                      /* sinks of a shared broadcaster */
#define FRAME_ID_SIZE 16                   /* of an instance */
#define FRAME_VERSION 5                    /* changes if an earlier process could not understand a frame */

enum frame_type {
	FRAME_HELLO = 1,
	FRAME_REFUSE,
	FRAME_EVENT,
	FRAME_MORE,
	FRAME_ACK,
	FRAME_FLUSH,
	FRAME_STATE,
	FRAME_BYE,
	FRAME_ASK,
	FRAME_ANSWER,
	FRAME_PING,
	FRAME_PONG,
	FRAME_ERROR,
	FRAME_OFFER,
	FRAME_ACCEPT,
	FRAME_LEAVE, /* the worker ends, and leaves all events sent before to the owner */
	FRAME_LEFT,  /* the owner has received them: the worker need not keep them */
	FRAME_BATCH, /* the owner: all acknowledgements of a batch were sent; the worker: the last batch that it has got */
};

/* Of frame.flags. */
#define FRAME_AGAIN 1  /* event: an earlier owner may have written it under this name */
#define FRAME_RESENT 2 /* event, more: all these occurrences were sent over an earlier connection */
/*
 * event, more: the owner that has got these occurrences did not end in order; bye: the owner has not acknowledged all
 * occurrences of the receiver that it has counted.
 */
#define FRAME_UNSURE 4
#define FRAME_HEIR 1     /* bye: the receiver is to be the next owner; it has the state, if there is one */
#define FRAME_CLOSING 1  /* flush: the worker is about to end, and is to be no owner */
#define FRAME_OF_BATCH 1 /* ack: it counts once all acknowledgements of its batch have come */
#define FRAME_NONE 1     /* answer: the owner cannot answer, for want of memory, or as the answer is too long */
/* event, more: these occurrences have ended for the i-th sink. */
#define FRAME_ENDED(i) (0x100u << (i))

/* An option that all processes must have alike: its name, and a hash of its value. */
struct frame_option {
	evrec_str name;
	uint64_t hash;
};

/* The keys that callbacks of the recording process chose for one sink. Unset: the default. Borrowed. */
struct frame_keys {
	evrec_str aggregate, local, spam;
	bool has_aggregate; /* aggregate and local are set, maybe to "" */
	bool has_spam;
};

/* `n` occurrences of the event with this id. 0: the owner may forget the event. */
struct frame_times {
	uint32_t id, n;
	int64_t first, last; /* when the first and the last of them happened */
};

/* How occurrences ended for a sink: written or spooled, without a token, or (below EVREC_CAUSES) dropped for a cause. */
enum { FRAME_RATE_LIMITED = EVREC_CAUSES, FRAME_FORWARDED, FRAME_ENDS };
struct frame_ack {
	uint32_t id, n;
	uint8_t sink; /* from 0, in the order of start */
	uint8_t end;
	uint16_t unused; /* 0 */
};

/* A part of something longer. */
struct frame_part {
	uint32_t total, offset;
	evrec_str bytes;
};

/* A frame that was read. Strings are borrowed from the bytes that it was read from. */
struct frame {
	enum frame_type type;
	uint16_t flags;
	uint32_t seq;                          /* the number of the frame on its connection, from 0 */
	struct frame_times times;              /* event */
	uint32_t sink;                         /* state */
	struct frame_part part;                /* event, state, answer */
	uint32_t question;                     /* ask, answer: its number */
	uint64_t batch;                        /* batch: its number, used once */
	evrec_str object;                      /* ask: the bytes of explained_put_object */
	evrec_str records;                     /* more, ack: structs, unaligned */
	evrec_str option;                      /* refuse: the option that differs, or empty */
	evrec_str text;                        /* refuse, error: for people */
	evrec_str problem, sink_name;          /* error: its kind, and the sink that had it */
	unsigned char instance[FRAME_ID_SIZE]; /* hello */
	uint32_t options_len;                  /* hello */
	evrec_str options;                     /* hello */
};

/*
 * Reads a frame. 0; or EVREC_EINVALID, with a message: not a frame of this version of the protocol. The message names a
 * hello of another version.
 */
int frame_read(evrec_str bytes, struct frame *frame, evrec_error *err);
/* The records of a frame: their number, and the i-th one. */
size_t frame_times_len(const struct frame *more);
struct frame_times frame_times_at(const struct frame *more, size_t i);
size_t frame_acks_len(const struct frame *ack);
struct frame_ack frame_ack_at(const struct frame *ack, size_t i);
/*
 * Compares the options of a hello with those of this process, in order. True: they are equal. False: *name, borrowed, is
 * the first one that differs or is missing in one of them.
 */
bool frame_options_equal(const struct frame *hello, const struct frame_option *options, size_t n, evrec_str *name);

/*
 * Each makes a whole frame in `out`, whose content is replaced. False: no memory, or the frame would be too long.
 * The sender sets the number of the frame when it is sent (frame_set_seq).
 */
bool frame_hello(struct buf *out, const unsigned char instance[FRAME_ID_SIZE], const struct frame_option *options,
                 size_t n);
bool frame_refuse(struct buf *out, evrec_str option, evrec_str text);
bool frame_error(struct buf *out, evrec_str problem, evrec_str sink_name, evrec_str text);
/* Takes as much of `whole` from `offset` on as fits a frame; *next is the offset of the rest, unchanged if false. */
bool frame_event(struct buf *out, uint16_t flags, const struct frame_times *times, evrec_str whole, size_t offset,
                 size_t *next);
bool frame_state(struct buf *out, uint32_t sink, evrec_str whole, size_t offset, size_t *next);
bool frame_answer(struct buf *out, uint32_t question, evrec_str whole, size_t offset, size_t *next);
bool frame_answer_none(struct buf *out, uint32_t question);
bool frame_ask(struct buf *out, uint32_t question, evrec_str object);
bool frame_batch(struct buf *out, uint64_t batch);
/* Make an empty frame, and add records to it while frame_has_room. */
bool frame_begin(struct buf *out, enum frame_type type, uint16_t flags);
void frame_add_times(struct buf *out, const struct frame_times *times);
void frame_add_ack(struct buf *out, const struct frame_ack *ack);
static inline bool frame_has_room(const struct buf *out)
{
	return out->len + sizeof(struct frame_times) <= FRAME_MAX;
}
void frame_set_seq(struct buf *frame, uint32_t seq);

/*
 * Collects the parts of something longer. All zero at first; buf_free(&parts->whole) frees it. 0, with *complete set if
 * `whole` is complete; EVREC_EINVALID: the part is not the next one, or the whole exceeds `max` bytes; EVREC_ENOMEM.
 */
struct frame_parts {
	struct buf whole;
	uint32_t total; /* 0: none has come */
};
int frame_collect(struct frame_parts *parts, const struct frame_part *part, size_t max, bool *complete,
                  evrec_error *err);

/* ---- events as bytes: frame_event.c ---- */

/*
 * Appends the bytes by which events are equal: all fields but the name and the three times of its occurrence, and the
 * keys for each of `sinks` sinks.
 */
void frame_event_put(struct buf *out, const evrec_fields *event, const struct frame_keys *keys, size_t sinks);

/* An event that was read: its strings lie in the bytes that it was read from. */
struct frame_event {
	evrec_fields fields; /* without a name; the times are unset */
	struct frame_keys keys[FRAME_SINKS];
	size_t sinks;
	evrec_pair *pairs; /* the block of labels and annotations */
	evrec_owner *owners;
};
/*
 * Reads an event, and checks it as a recording call does. 0, EVREC_EINVALID or EVREC_ENOMEM; only after 0 the caller
 * frees it with frame_event_destroy.
 */
int frame_event_read(evrec_str bytes, struct frame_event *event, evrec_error *err);
void frame_event_destroy(struct frame_event *event);

#pragma GCC visibility pop

#endif
