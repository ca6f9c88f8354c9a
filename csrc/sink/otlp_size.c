#include "sink/otlp.h"

#define BYTES_MIN ((size_t)1024) /* `bytes` is not lowered below */
#define PATIENCE_MIN 4u
#define PATIENCE_MAX 512u /* then refused probes are 0.4 % of all bytes */

void otlp_size_begin(struct otlp_size *size, size_t max)
{
	*size = (struct otlp_size){ .bytes = max, .max = max, .patience = PATIENCE_MIN };
}

/* A piece needs no limit, as the part that it was cut from had one. */
size_t otlp_size_limit(const struct otlp_size *size, const struct otlp_part *part)
{
	if (part->piece) {
		return size->max;
	}
	if (size->probing || size->taken < size->patience) {
		return size->bytes;
	}
	return size->bytes < size->max / 2 ? 2 * size->bytes : size->max;
}

/* A single record may be larger than the limit, and is no probe. */
void otlp_size_sent(struct otlp_size *size, struct otlp_part *part)
{
	part->probe = !part->piece && part->records > 1 && part->bytes > size->bytes;
	size->probing = size->probing || part->probe;
}

static void count_taken(struct otlp_size *size, const struct otlp_part *part)
{
	if (size->taken < size->patience) {
		size->taken++;
	}
	if (part->probe && part->bytes > size->bytes) {
		size->bytes = part->bytes;
		size->taken = size->patience = PATIENCE_MIN;
	}
}

static void count_refused(struct otlp_size *size, const struct otlp_part *part)
{
	const size_t half = part->bytes / 2 < BYTES_MIN ? BYTES_MIN : part->bytes / 2;

	size->taken = 0;
	if (part->probe) {
		size->patience = size->patience < PATIENCE_MAX / 2 ? 2 * size->patience : PATIENCE_MAX;
	} else if (half < size->bytes) {
		size->bytes = half;
		size->patience = PATIENCE_MIN;
	}
}

void otlp_size_answered(struct otlp_size *size, const struct otlp_part *part, bool too_large, bool taken)
{
	size->probing = size->probing && !part->probe;
	if (part->piece) {
		return; /* pieces that are small enough are always taken: they do not show the limit */
	}
	if (taken) {
		count_taken(size, part);
	} else if (too_large) {
		count_refused(size, part);
	}
}
