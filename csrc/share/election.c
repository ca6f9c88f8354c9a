#include "share/share_inner.h"

#define RETRY (100 * MS)          /* until the next try, if nobody could be connected to */
#define RETRY_FAILED EVREC_SECOND /* if the system refuses */

static void try_connect(struct share *s, int64_t now)
{
	evrec_error err = { 0 };
	int fd = -1;

	switch (endpoint_connect(&s->endpoint, &fd, &err)) {
	case ENDPOINT_OK:
		worker_begin(s, fd);
		break;
	case ENDPOINT_FAILED:
		share_tell(s, err.message, "share");
		s->next_try = now + RETRY_FAILED;
		break;
	default:
		s->next_try = now + RETRY;
	}
}

void share_elect(struct share *s, int64_t now)
{
	evrec_error err = { 0 };
	enum endpoint_result result = atomic_load(&s->may_own) ? endpoint_bind(&s->endpoint, &err) : ENDPOINT_IN_USE;

	if (result == ENDPOINT_OK) {
		s->told[0] = '\0';
	} else if (s->refused && atomic_load(&s->leaves)) {
		s->alone = true;
	} else if (result == ENDPOINT_FAILED) {
		share_tell(s, err.message, "share");
		s->next_try = now + RETRY_FAILED;
	} else {
		try_connect(s, now);
	}
}
