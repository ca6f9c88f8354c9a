#include "outbox/outbox_inner.h"

struct brought {
	struct brought *next;
	void *item;
};

void outbox_bring(struct outbox *ob, void *item)
{
	struct brought *brought = mem_zalloc(sizeof(*brought));

	if (brought == NULL) {
		ob->ops.free(item);
		return;
	}
	brought->item = item;
	(void)pthread_mutex_lock(&ob->lock);
	*ob->brought_end = brought;
	ob->brought_end = &brought->next;
	atomic_store_explicit(&ob->news, true, memory_order_relaxed);
	(void)pthread_mutex_unlock(&ob->lock);
}

void *outbox_next_brought(struct outbox *ob)
{
	struct brought *first;
	void *item = NULL;

	(void)pthread_mutex_lock(&ob->lock);
	first = ob->brought;
	if (first != NULL) {
		ob->brought = first->next;
		ob->brought_end = first->next == NULL ? &ob->brought : ob->brought_end;
		item = first->item;
	}
	(void)pthread_mutex_unlock(&ob->lock);
	mem_free(first);
	return item;
}
