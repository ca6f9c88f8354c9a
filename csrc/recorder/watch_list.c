#include "recorder/watch_list.h"

#define CAP_MIN 4

static bool resize(struct watch_list *list, size_t cap)
{
	evrec_watch **items = mem_realloc(list->items, cap * sizeof(evrec_watch *));

	if (items != NULL) {
		list->items = items;
		list->cap = cap;
	}
	return items != NULL;
}

bool watch_list_reserve(struct watch_list *list)
{
	return list->len < list->cap || resize(list, list->cap == 0 ? CAP_MIN : list->cap * 2);
}

void watch_list_append(struct watch_list *list, evrec_watch *watch)
{
	list->items[list->len++] = watch;
}

void watch_list_truncate(struct watch_list *list, size_t len)
{
	size_t cap = list->cap;

	list->len = len;
	if (len == 0) {
		mem_free(list->items);
		*list = (struct watch_list){ 0 };
		return;
	}
	while (cap > CAP_MIN && len <= cap / 4) {
		cap /= 2;
	}
	if (cap != list->cap) {
		/* Without memory for a smaller array the larger one stays. */
		(void)resize(list, cap);
	}
}

size_t watch_list_find_sink(const struct watch_list *list, size_t number)
{
	size_t low = 0, high = list->len;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (list->items[middle]->number < number) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}
