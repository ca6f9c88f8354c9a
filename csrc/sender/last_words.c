#include "sender/last_words.h"

#include "base/line.h"
#include "sender/sender.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic int64_t untold;
static atomic_uint generation; /* of forks, when it was counted */

static void check_fork(void)
{
	const unsigned now = sender_fork_generation();

	if (atomic_exchange(&generation, now) != now) {
		atomic_store(&untold, 0);
	}
}

void last_words_tell(void)
{
	struct line line = { .len = 0 };
	int64_t n;

	check_fork();
	n = atomic_exchange(&untold, 0);
	if (n > 0) {
		line_printf(&line, "evrec: refused calls, lost events and errors that were not printed: %" PRId64, n);
		(void)evrec_line_to_stderr(line.text);
	}
}

static void begin(void)
{
	(void)atexit(last_words_tell);
}

void last_words_begin(void)
{
	(void)pthread_once(&once, begin);
}

void last_words_add(uint64_t n)
{
	check_fork();
	atomic_fetch_add(&untold, (int64_t)n);
}

void last_words_subtract(uint64_t n)
{
	check_fork();
	atomic_fetch_sub(&untold, (int64_t)n);
}
