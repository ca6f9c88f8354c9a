/*
 * origins.h - the occurrences of one event that other processes have recorded, and that they may record here again: they
 * have not been told that these are counted. A process that does so names them (`again`), and then they are not counted
 * twice, also by the next process that reads the count from a state. One thread at a time.
 */
#ifndef EVREC_ORIGINS_H
#define EVREC_ORIGINS_H

#include "correlate/restored.h"

#pragma GCC visibility push(hidden)

/* The process that has recorded an occurrence. */
struct origin {
	uint64_t process; /* a random number */
	uint64_t
		connection; /* by which it came, never used again by this process; 0: nobody waits for an acknowledgement */
	bool again;         /* it was recorded before, over another connection, here or in an earlier process */
	bool unsure;        /* the earlier one may have counted it without leaving a note of that */
};

struct origins; /* NULL: none */

/*
 * True: the occurrence is counted already, and from now on belongs to the present connection; *limited is whether it lacked
 * a token.
 */
bool origins_take(struct origins *origins, const struct origin *from, bool *limited);
/*
 * The number of counted occurrences that may be recorded again; and the number of those that are, as their connection has
 * ended.
 */
uint32_t origins_sum(const struct origins *origins);
uint32_t origins_expected(const struct origins *origins);
/*
 * Notes an occurrence that was counted just now. If there is no memory, or too many processes have some, it would be
 * counted twice.
 */
void origins_add(struct origins **origins, const struct origin *from, bool limited);
/* `n` occurrences of this connection are not recorded again. Returns how many of them `origins` had. */
uint32_t origins_acknowledge(struct origins **origins, uint64_t connection, bool limited, uint32_t n);
/* Whether there are occurrences of the process of this connection. */
bool origins_have(struct origins *origins, uint64_t connection);
/* Forgets the occurrences of the process of this connection, as the process records none of them again. */
void origins_leave(struct origins **origins, uint64_t connection);

/* For state.h. The latter begins with none; what it has made is the caller's, also after a failure. */
void origins_save(const struct origins *origins, struct buf *out);
enum restored origins_restore(struct origins **origins, evrec_str *bytes);

#pragma GCC visibility pop

#endif
