/*
 * trouble.h - sums up lost events, refused calls and errors in lines for people: one line for each kind of trouble, the
 * first one at once, and then at most one every 10 s. Pure: the time is an argument. One thread at a time.
 *
 * A kind is known by its name: that of a cause for which events were dropped, that of an error, or "invalid" for
 * refused calls. An error that has the name of a cause, such as "forbidden", explains drops for this cause, so both
 * share a line.
 */
#ifndef EVREC_TROUBLE_H
#define EVREC_TROUBLE_H

#include "base/line.h"

#pragma GCC visibility push(hidden)

#define TROUBLE_PERIOD (10 * EVREC_SECOND)
#define TROUBLE_KINDS 24 /* more than there are names; further kinds are "other" */
#define TROUBLE_TEXT 256

struct trouble {
	const char *name;                /* static */
	uint64_t lost;                   /* events, or refused calls, since the last line */
	uint64_t errors;                 /* since the last line */
	int64_t told_at;                 /* the last line; EVREC_UNSET: none yet */
	char sink[EVREC_SINK_NAME_SIZE]; /* of the last error; empty: of no sink */
	char message[TROUBLE_TEXT];      /* of the last error */
	char example[TROUBLE_TEXT];      /* the first event lost, or the first refusal, since the last line */
	char place[80];                  /* where in the program that was refused */
};

/* All zero is no trouble. The fields that a recording call reads come first, so that they take few cache lines. */
struct troubles {
	uint64_t waiting;                 /* events, refused calls and errors that no line has shown yet */
	uint64_t untold;                  /* those of lines that could not be written: a later line has their number */
	uint64_t taken;                   /* those in the last line */
	int64_t taken_at;                 /* when the last line was taken */
	const struct trouble *last_error; /* the kind of the last error after which writes are tried again */
	size_t len;
	struct trouble kinds[TROUBLE_KINDS];
};

/* An event, or a refused call, as it is shown in a line. */
void trouble_show_event(const evrec_fields *event, char out[TROUBLE_TEXT]);

/*
 * `name` is static. `example` is what trouble_show_event made, or the message of a refusal. troubles_want_example is
 * true if the example would be kept; else it may be NULL.
 */
bool troubles_want_example(const struct troubles *t, const char *name);
void troubles_add_lost(struct troubles *t, const char *name, uint64_t n, const char *example);
/* `sink` is the name of the sink that had the error; NULL: none had. */
void troubles_add_error(struct troubles *t, const char *name, const char *message, const char *sink);
/* Whether the first refused call since the last line lacks its place; and sets the place. */
bool troubles_want_place(const struct troubles *t);
void troubles_set_place(struct troubles *t, const char *place);

/*
 * Makes the next line that is due at `now` (monotonic ns); with `all`, also one that is not due yet. False: there is
 * none. troubles_not_told: the line could not be written, and a later line has the number of its losses and errors.
 */
bool troubles_next_line(struct troubles *t, int64_t now, bool all, struct line *line);
void troubles_not_told(struct troubles *t);

#pragma GCC visibility pop

#endif
