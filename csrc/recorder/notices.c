#include "recorder/notices.h"

void notices_add(struct notices *notices, const evrec_fields *event, const char *name, const char *message)
{
	const size_t size = message != NULL ? strlen(message) + 1 : 0;
	struct notice *notice = notices->len < NOTICES_MAX ? mem_alloc(sizeof(*notice) + size) : NULL;

	if (notice == NULL) {
		return;
	}
	*notice = (struct notice){ .name = name };
	if (size != 0) {
		memcpy(notice->message, message, size);
	}
	if (event != NULL) {
		notice->event = evrec_event_new(event);
		if (notice->event == NULL) {
			mem_free(notice);
			return;
		}
	}
	*(notices->first != NULL ? notices->end : &notices->first) = notice;
	notices->end = &notice->next;
	notices->len++;
}

void notices_move(struct notices *from, struct notices *to)
{
	if (from->first == NULL) {
		return;
	}
	*(to->first != NULL ? to->end : &to->first) = from->first;
	to->end = from->end;
	to->len += from->len;
	*from = (struct notices){ 0 };
}

struct notice *notices_next(struct notices *notices)
{
	struct notice *notice = notices->first;

	if (notice != NULL) {
		notices->first = notice->next;
		notices->len--;
	}
	return notice;
}

void notice_free(struct notice *notice)
{
	evrec_event_release(notice->event);
	mem_free(notice);
}

void notices_clear(struct notices *notices)
{
	struct notice *notice;

	while ((notice = notices_next(notices)) != NULL) {
		notice_free(notice);
	}
}
