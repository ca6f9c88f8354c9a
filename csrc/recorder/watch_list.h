/*
 * watch_list.h - an array of watches in the order of their start. Belongs to a broadcaster, and to its thread. All zero
 * is an empty list.
 */
#ifndef EVREC_WATCH_LIST_H
#define EVREC_WATCH_LIST_H

#include "recorder/watch.h"

#pragma GCC visibility push(hidden)

struct watch_list {
	evrec_watch **items;
	size_t len, cap;
};

/* Makes room for one more watch. False if there is no memory. */
bool watch_list_reserve(struct watch_list *list);
/* Needs a watch_list_reserve before. Takes over no reference. */
void watch_list_append(struct watch_list *list, evrec_watch *watch);
/* Keeps the first `len` watches, and frees memory if most of it is unused. */
void watch_list_truncate(struct watch_list *list, size_t len);
/* The index of the first sink whose number is `number` or greater; the list's length if there is none. Sinks alone. */
size_t watch_list_find_sink(const struct watch_list *list, size_t number);

#pragma GCC visibility pop

#endif
