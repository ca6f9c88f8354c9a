/*
 * origins.h - the counted occurrences of one event that other processes may record here again, as they are not
 * acknowledged yet. A process that records one again says so (`again`), so that it is not counted twice, not even by
 * the next process, which reads the count from a state. One thread at a time.
 */
#ifndef EVREC_ORIGINS_H
#define EVREC_ORIGINS_H

#include "correlate/restored.h"

#pragma GCC visibility push(hidden)

/* The process that has recorded an occurrence. */
struct origin {
	uint64_t process;    /* a random number */
	uint64_t connection; /* over which it came, a number used once; 0: nobody waits for an acknowledgement */
	uint64_t batch;      /* the last batch (origins_tell) that the process had got when the connection began */
	bool again;          /* it was recorded before, over another connection, here or in an earlier process */
	bool unsure;         /* an earlier process may have counted it and left no note */
};

struct origins; /* NULL: none */

/*
 * True: the occurrence is counted already, and from now on belongs to the present connection; *limited is whether it lacked
 * a token. The process first records all that it has to record again: with a new one it says that nothing else comes again.
 */
bool origins_take(struct origins *origins, const struct origin *from, bool *limited);
/*
 * The process of `from` records again, over its connection, the occurrences that it was not told of, and no others of
 * its earlier ones. The first function: whether that is still to be noted.
 */
bool origins_is_to_reconnect(struct origins *origins, const struct origin *from);
void origins_reconnect(struct origins **origins, const struct origin *from);
/*
 * Notes an occurrence that was counted just now. If there is no memory, or too many processes have occurrences, it may
 * be counted twice.
 */
void origins_add(struct origins **origins, const struct origin *from, bool limited);
/*
 * `n` occurrences of this connection are acknowledged next, in the batch with this number: a process that gets a batch gets
 * all of it, and then records none of these again. A state that is read later knows by the number whether it has. Of an
 * earlier batch nothing is left: the process has got that.
 */
void origins_tell(struct origins *origins, uint64_t connection, bool limited, uint32_t n, uint64_t batch);
/* The process has got the batch: `n` occurrences of it are forgotten. */
void origins_acknowledge(struct origins **origins, uint64_t connection, bool limited, uint32_t n);
/* Whether there are occurrences of the process of this connection. */
bool origins_have(struct origins *origins, uint64_t connection);
/* Removes the occurrences of the process of this connection, which records none of them again. */
void origins_leave(struct origins **origins, uint64_t connection);

/* For state.h. origins_load sets *origins, which is NULL at first; the result is the caller's, also after a failure. */
void origins_save(const struct origins *origins, struct buf *out);
enum restored origins_restore(struct origins **origins, evrec_str *bytes);

#pragma GCC visibility pop

#endif
