#include "share_idle.h"

void share_idle_record(void *ctx, const struct share_event *event)
{
	(void)ctx;
	(void)event;
}

void share_idle_flush(void *ctx)
{
	(void)ctx;
}

bool share_idle_begin(void *ctx, bool alone)
{
	(void)ctx;
	(void)alone;
	return true;
}

void share_idle_connected(void *ctx, uint64_t source, uint64_t process, uint64_t batch)
{
	(void)ctx;
	(void)source;
	(void)process;
	(void)batch;
}

void share_idle_left(void *ctx, uint64_t source)
{
	(void)ctx;
	(void)source;
}

void share_idle_lost(void *ctx, const evrec_fields *event, size_t sink, unsigned end, uint32_t n)
{
	(void)ctx;
	(void)event;
	(void)sink;
	(void)end;
	(void)n;
}

bool share_idle_save_state(void *ctx, size_t sink, struct buf *out)
{
	(void)ctx;
	(void)sink;
	(void)out;
	return false;
}

void share_idle_load_state(void *ctx, size_t sink, evrec_str state)
{
	(void)ctx;
	(void)sink;
	(void)state;
}
