/* sender_fixture.h - a sender of fake writes with a fake protocol. */
#ifndef EVREC_UNIT_SENDER_FIXTURE_H
#define EVREC_UNIT_SENDER_FIXTURE_H

#include "fake_protocol.h"

#include "base/clock.h"

#include <unistd.h>

/* The test owns the struct; the sender owns outbox and protocol, both valid until it is released and its thread gone. */
struct sender_fixture {
	struct outbox *ob;
	struct sender *sender;
	struct fake_protocol *protocol;
	evrec_clock *clock; /* the caller's */
	unsigned freed;     /* protocols freed */
};

/* Opens a sender with 1000 writes pending at most, none of which expires. `spooler` becomes the sender's, or is NULL. */
void sender_fixture_open(struct sender_fixture *f, bool threadless, evrec_clock *clock);
void sender_fixture_open_spooled(struct sender_fixture *f, bool threadless, evrec_clock *clock,
                                 struct spooler *spooler);
void sender_fixture_open_limited(struct sender_fixture *f, bool threadless, evrec_clock *clock, struct spooler *spooler,
                                 const evrec_limits *limits);

/* Joins the sender, which must write all before its deadline, and releases it. No fake write is left. */
void sender_fixture_close(struct sender_fixture *f);

/* Sets a flag of the protocol, or the status of its answers, and wakes whoever waits for that. */
void sender_fixture_set(struct sender_fixture *f, bool *flag, bool value);
void sender_fixture_set_status(struct sender_fixture *f, int status);

/* How many requests were sent. */
unsigned sender_fixture_sent(struct sender_fixture *f);

/* The outbox's counters, once their equation is checked. */
struct outbox_stats sender_fixture_stats(struct sender_fixture *f);

/* Each waits for the sender's thread, SOON at most: until nothing is pending (collects all meanwhile), */
void sender_fixture_wait_empty(struct sender_fixture *f);
/* until `n` requests were sent, */
void sender_fixture_wait_sent(struct sender_fixture *f, unsigned n);
/* until it waits in a step with nothing to do, */
void sender_fixture_wait_idle(struct sender_fixture *f);
/* until a released sender has freed its protocol and all fake writes. */
void sender_fixture_wait_freed(struct sender_fixture *f);

#endif
