#include "sink/kubernetes_fallback.h"

#include <stdio.h>

enum evrec_api fallback_api(const struct fallback *f, const struct sent *sent)
{
	return sent->refusal == API_NO_NEWS ? f->choice.api : EVREC_CORE_V1;
}

/* Queues the write to be sent once more, by core/v1: the client takes no request inside on_done. */
static void ask_core(struct fallback *f, struct sent *sent, enum api_news refusal, const evrec_answer *answer)
{
	sent->refusal = refusal;
	memcpy(sent->refused, answer->message, sizeof(sent->refused));
	sent->next = f->again;
	f->again = sent;
}

/* Takes the answer of core/v1 to a write that events.k8s.io/v1 had refused. */
static void hear_core(struct fallback *f, struct outbox *ob, const struct sent *sent, enum api_news news,
                      evrec_answer *answer)
{
	if (api_choice_heard_core(&f->choice, news)) {
		outbox_report(ob, sent->refusal == API_MISSING ? "not_found" : "forbidden",
		              api_choice_message(sent->refusal, sent->entry->verb));
	} else if (news == API_FORBIDDEN && sent->refusal == API_FORBIDDEN) {
		/* The message of events.k8s.io/v1, the API that should be permitted. */
		memcpy(answer->message, sent->refused, sizeof(answer->message));
	}
}

bool fallback_takes(struct fallback *f, struct outbox *ob, struct sent *sent, enum api_news news, evrec_answer *answer)
{
	if (api_choice_asks_core(&f->choice, sent->api, news)) {
		ask_core(f, sent, news, answer);
		return true;
	}
	if (sent->refusal != API_NO_NEWS) {
		hear_core(f, ob, sent, news, answer);
	} else if (sent->api == EVREC_EVENTS_V1 && news == API_MISSING) {
		(void)snprintf(answer->message, sizeof(answer->message), "the server does not have events.k8s.io/v1");
	}
	return false;
}

struct sent *fallback_next(struct fallback *f)
{
	struct sent *sent = f->again;

	if (sent != NULL) {
		f->again = sent->next;
	}
	return sent;
}
