/*
 * resume_fixture.h - a broadcaster with a Kubernetes sink that resumes series, without a thread, and a stand-in server. The
 * recorder has the component "ctl" and the instance "me".
 */
#ifndef EVREC_UNIT_RESUME_FIXTURE_H
#define EVREC_UNIT_RESUME_FIXTURE_H

#include "http_server.h"
#include "stats_invariants.h"

#define LIST "GET /apis/events.k8s.io/v1/events?limit=500&fieldSelector=reportingController%3Dctl"
#define POST "POST /apis/events.k8s.io/v1/namespaces/shop/events HTTP/1.1\r\n"
#define PATCH(name) "PATCH /apis/events.k8s.io/v1/namespaces/shop/events/" name " HTTP/1.1\r\n"
#define CREATED HTTP_REPLY("201 Created", "", "{\"kind\":\"Event\",\"metadata\":{\"name\":\"stored\"}}")
#define PATCHED HTTP_REPLY("200 OK", "", "{\"kind\":\"Event\",\"metadata\":{\"name\":\"web.old\"}}")
#define FORBIDDEN HTTP_REPLY("403 Forbidden", "", "{\"kind\":\"Status\",\"message\":\"events is forbidden\"}")
#define EXPIRED HTTP_REPLY("410 Gone", "", "{\"kind\":\"Status\",\"message\":\"too old\"}")
#define RESUME_REPLIES 8 /* of one test */

struct resume_fixture {
	struct http_server server;
	struct http_turn turns[RESUME_REPLIES];
	size_t turns_len;
	struct buf replies[RESUME_REPLIES], items;
	evrec_kubernetes_options options;
	evrec_clock *clock; /* the test sets it before the start, and the fixture releases it; NULL: the real one */
	bool started;       /* the server */
	evrec_sink *sink;
	evrec_broadcaster *b;
	evrec_recorder *r;
	evrec_watch *watch, *events;
	char errors[1024];
};

/* Setup and teardown of cmocka. Between them a test may change the options, and add turns of the server. */
int resume_setup(void **state);
int resume_teardown(void **state);

/* The server's next turn; the last one is repeated. */
void resume_reply(struct resume_fixture *f, enum turn_kind kind, const char *text);
/* An event of the pod shop/web, of the controller "ctl", last seen `age` seconds ago; a count below 2: no series. */
void resume_item(struct resume_fixture *f, const char *name, const char *instance, int count, int age);
/* The next turn is a page of the items since the last one. */
void resume_page(struct resume_fixture *f, const char *next);

/* With `options.common.spool`, before resume_start: an earlier process leaves the create of an event there. */
void resume_leave_in_spool(struct resume_fixture *f, const char *pod);
void resume_start(struct resume_fixture *f);
/* The process ends, and the next one begins, which may have other options. */
void resume_restart(struct resume_fixture *f);
void resume_record(struct resume_fixture *f, const char *pod);
/* Polls until the server has seen `n` requests. */
void resume_poll_until_requests(struct resume_fixture *f, size_t n);
evrec_sink_stats resume_flush(struct resume_fixture *f);

#endif
