/*
 * otlp_fixture.h - a sender with the protocol of the OTLP sink, and a stand-in server. The test steps the sender; its clock is
 * a fake one, at 0. Bodies are JSON, not compressed, so that tests can read them.
 */
#ifndef EVREC_UNIT_OTLP_FIXTURE_H
#define EVREC_UNIT_OTLP_FIXTURE_H

#include "fake_write.h"
#include "http_server.h"

#include "sink/otlp.h"

/* The answers of a receiver: all taken, with the connection kept; and `n` rejected, both in JSON. */
#define OTLP_TAKEN                                                                                                     \
	"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n{\"partialSuccess\":{}}"
#define OTLP_REJECTED(n, message)                                                                                      \
	HTTP_REPLY("200 OK", "Content-Type: application/json\r\n",                                                     \
	           "{\"partialSuccess\":{\"rejectedLogRecords\":\"" #n "\",\"errorMessage\":\"" message "\"}}")
#define OTLP_ANSWER(status, text) HTTP_REPLY(status, "Content-Type: text/plain\r\n", text)

/* The test owns it, and a reference of the clock; the sender owns the outbox. */
struct otlp_fixture {
	struct http_server server;
	struct outbox *ob;
	struct sender *sender;
	evrec_clock *clock;
	evrec_otlp_options options;
	char endpoint[128];
	char names[1024]; /* otlp_fixture_names */
};

/* Opens a sender without a thread, of batches of 4, and a server that answers by these turns. */
void otlp_fixture_open(struct otlp_fixture *f, const struct http_turn *turns, size_t turns_len);

/* The parts of it: options with the address of a server that is not started yet; then a sender with these options. */
void otlp_fixture_prepare(struct otlp_fixture *f);
void otlp_fixture_open_sender(struct otlp_fixture *f, bool threadless);

/* Ends the sender at once and releases it, server and clock. No fake write is left. */
void otlp_fixture_close(struct otlp_fixture *f);

/* The outbox's counters, once their equation is checked. */
struct outbox_stats otlp_fixture_stats(struct otlp_fixture *f);
/* How many writes were dropped for this cause. */
unsigned otlp_fixture_count_dropped(struct otlp_fixture *f, enum evrec_cause cause);

/* Submits new writes `from` to `to`, each named "n<id>"; the time is 0. */
void otlp_fixture_submit(struct otlp_fixture *f, unsigned from, unsigned to);

/* Sets the clock to `now`, and steps the sender until all that is due is answered. */
void otlp_fixture_exchange(struct otlp_fixture *f, int64_t now);
/* The same once all that waits is due: as a flush. */
void otlp_fixture_flush(struct otlp_fixture *f, int64_t now);

/* The names and counts of the records in request `n`, such as "n1:1 n2:3", until the next call. */
const char *otlp_fixture_names(struct otlp_fixture *f, size_t n);
void otlp_fixture_check_names(struct otlp_fixture *f, size_t n, const char *names);

/* The next written or dropped writes are those of these ids, 0 ends them. */
void otlp_fixture_check_collected(struct otlp_fixture *f, bool dropped, const unsigned *ids);

#define OTLP_WRITTEN(f, ...) otlp_fixture_check_collected(f, false, (const unsigned[]){ __VA_ARGS__, 0 })
#define OTLP_DROPPED(f, ...) otlp_fixture_check_collected(f, true, (const unsigned[]){ __VA_ARGS__, 0 })

/* The outbox's next message has this name, and its text contains `text`; or there is none. */
void otlp_fixture_check_message(struct otlp_fixture *f, const char *name, const char *text);
void otlp_fixture_check_silent(struct otlp_fixture *f);

#endif
