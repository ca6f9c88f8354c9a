/*
 * sharing_fixture.h - broadcasters of one process that share one recorder, each with a file as its sink, and what they
 * were told.
 */
#ifndef EVREC_UNIT_SHARING_FIXTURE_H
#define EVREC_UNIT_SHARING_FIXTURE_H

#include "tmpdir.h"

#include "recorder/broadcaster.h"

struct side {
	evrec_broadcaster *b;
	evrec_watch *watch;
	evrec_recorder *r;
	unsigned drops, errors; /* calls of on_drop and on_error */
	char why[64], error[256], error_name[64];
	char name[80];
};

struct sharing_fixture {
	char share[64];
	struct side sides[2]; /* the first is the owner */
};

/* A share of its own, and no side. */
void sharing_fixture_init(struct sharing_fixture *f);
/* Does that, and opens both sides, driven by polls, until the first is the owner and the second its worker. */
void sharing_fixture_open(struct sharing_fixture *f, const char *path, unsigned burst);
/* Polls each side so many times. */
void sharing_fixture_poll(struct sharing_fixture *f, unsigned times);
/* Closes the sides that are open. */
void sharing_fixture_close(struct sharing_fixture *f);

/* The options of side `i`, with a name of its own; the strings are the fixture's and the side's. */
evrec_broadcaster_options sharing_fixture_options(const struct sharing_fixture *f, size_t i, struct side *side);

/*
 * Opens a side that is all zero but for its name: it records to the file `path`, driven by polls, with so many tokens,
 * which do not come back. False: no memory, or a handle of that name has other options.
 */
bool side_open(struct side *side, const evrec_broadcaster_options *options, const char *path, unsigned burst);
/* The same, driven as told. */
bool side_open_driven(struct side *side, const evrec_broadcaster_options *options, const char *path, unsigned burst,
                      enum evrec_drive drive);
/* The same, driven by polls, with these options of its sink. */
bool side_open_limited(struct side *side, const evrec_broadcaster_options *options, const char *path,
                       const evrec_sink_options *common);
/* The same, driven as the options say. */
bool side_open_with(struct side *side, const evrec_broadcaster_options *options, const char *path,
                    const evrec_sink_options *common);
/* Frees all that a side has; it may have nothing. */
void side_close(struct side *side);
/* Records a Normal event of the pod n/p. Returns the code of evrec_recorder_emit. */
int side_record(const struct side *side, const char *note);
evrec_sink_stats side_stats(const struct side *side);

#endif
