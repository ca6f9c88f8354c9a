#include "kubernetes/api_choice.h"

bool api_choice_asks_core(struct api_choice *c, enum evrec_api api, enum api_news news)
{
	if (api != EVREC_EVENTS_V1) {
		return false;
	}
	c->served = c->served || news == API_SERVED;
	return c->falls_back && (news == API_MISSING || (news == API_FORBIDDEN && !c->served));
}

bool api_choice_heard_core(struct api_choice *c, enum api_news news)
{
	if (news != API_SERVED || c->api == EVREC_CORE_V1) {
		return false;
	}
	c->api = EVREC_CORE_V1;
	return true;
}

const char *api_choice_message(enum api_news refusal, enum verb verb)
{
	if (refusal == API_MISSING) {
		return "the server does not have events.k8s.io/v1; using core/v1";
	}
	return verb == VERB_CREATE ? "events.k8s.io/v1 is forbidden (create events.events.k8s.io); using core/v1"
	                           : "events.k8s.io/v1 is forbidden (patch events.events.k8s.io); using core/v1";
}
