/* share_idle.h - functions of struct share_ops that do nothing, for what a test does not look at. */
#ifndef EVREC_UNIT_SHARE_IDLE_H
#define EVREC_UNIT_SHARE_IDLE_H

#include "unit.h"

#include "share/share.h"

void share_idle_record(void *ctx, const struct share_event *event);
void share_idle_flush(void *ctx);
bool share_idle_begin(void *ctx, bool alone); /* true: an owner at once */
void share_idle_connected(void *ctx, uint64_t source, uint64_t process, uint64_t batch);
void share_idle_left(void *ctx, uint64_t source);
void share_idle_lost(void *ctx, const evrec_fields *event, size_t sink, unsigned end, uint32_t n);
bool share_idle_save_state(void *ctx, size_t sink, struct buf *out); /* false: there is none */
void share_idle_load_state(void *ctx, size_t sink, evrec_str state);

#endif
