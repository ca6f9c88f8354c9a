/* The callbacks of a handle. */
#include "recorder/broadcaster.h"

void handle_call_on_drop(evrec_broadcaster *b, const evrec_event *event, const char *cause)
{
	const bool busy = b->busy;

	if (b->options.on_drop != NULL) {
		b->dropping = b->busy = true;
		b->options.on_drop(b->options.ctx, event, cause);
		b->dropping = false;
		b->busy = busy;
	}
}

void handle_call_on_error(evrec_broadcaster *b, const char *message, const char *name)
{
	const bool busy = b->busy, reporting = b->reporting;

	if (b->options.on_error != NULL) {
		b->reporting = b->busy = true;
		b->options.on_error(b->options.ctx, message, name);
		b->reporting = reporting;
		b->busy = busy;
	}
}
