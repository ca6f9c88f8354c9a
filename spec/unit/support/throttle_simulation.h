/*
 * throttle_simulation.h - a throttle before a server with limits that the throttle does not know, in simulated time.
 *
 * A request reaches the server after half of `latency`. The server refuses it at once, or carries it out in about
 * `service`; the answer takes the other half of `latency`. Writes are always due until all are written.
 */
#ifndef EVREC_UNIT_THROTTLE_SIMULATION_H
#define EVREC_UNIT_THROTTLE_SIMULATION_H

#include "unit.h"

#include "outbox/throttle.h"

#define SIMULATION_SLOTS 64
#define SIMULATION_SECONDS 3600
#define MS (EVREC_SECOND / 1000)

struct admission {
	unsigned at_once; /* requests in service; 0: no limit */
	double rate;      /* requests a second, by a token bucket; 0: no limit */
	bool dead;        /* connections are refused */
};

/* Times in ns. */
struct simulated_server {
	struct admission limits, later; /* `later` holds from `cut` (0: never) until `mended` */
	double burst;                   /* size of the token bucket */
	int64_t cut, mended;
	int64_t latency, service, retry_after;
};

enum request_stage { STAGE_FREE, STAGE_REQUEST, STAGE_SERVICE, STAGE_ANSWER };

/* The test owns it; there is nothing to free. */
struct simulation {
	struct simulated_server server;
	struct throttle throttle;
	uint64_t random;
	int64_t now, tokens_at;
	double tokens;
	unsigned busy; /* requests in service */
	struct {
		enum request_stage stage;
		enum request_result result;
		int64_t at; /* end of the stage */
	} slots[SIMULATION_SLOTS];
	uint64_t to_write, written, refused, unanswered;
	uint64_t written_by[SIMULATION_SECONDS]; /* in each second */
	unsigned in_flight, highest;             /* highest: the largest number in flight */
	uint64_t written_at_highest;             /* writes before that number was reached */
	unsigned outages_ended;
};

/* A simulation at time 0 with `to_write` writes; the same seed leads to the same run. */
struct simulation simulation_begin(const struct simulated_server *server, uint64_t to_write, uint64_t seed);

/* Runs until all is written, or until the time `end`. */
void simulation_run(struct simulation *sim, int64_t end);

#endif
