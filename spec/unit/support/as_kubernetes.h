/* as_kubernetes.h - gives an API server's answer to an outbox or a sender, with the outcome that the Kubernetes sink gives it. */
#ifndef EVREC_UNIT_AS_KUBERNETES_H
#define EVREC_UNIT_AS_KUBERNETES_H

#include "kubernetes/verdict.h"
#include "sender/sender.h"

/* Answers a taken entry at the time `now`. */
void answer_entry_as_kubernetes(struct outbox *ob, struct entry *entry, const evrec_answer *answer, int64_t now);

/* Answers and ends the request of a sender that carried `entry` alone. Called from send or step of its protocol. */
void answer_request_as_kubernetes(struct sender *s, struct entry *entry, const evrec_answer *answer);

#endif
