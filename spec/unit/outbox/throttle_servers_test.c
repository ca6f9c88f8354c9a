/*
 * The throttle before simulated servers with limits: at most 5 % as many requests are refused as are written, and from the
 * third second on the throughput is at least three quarters of the limit. Each with many seeds.
 *
 * EVREC_SEED=n EVREC_SEEDS=1 repeats a run that failed; EVREC_SEEDS / 100 is the number of runs.
 */
#include "throttle_simulation.h"

#define SEEDS 20
#define COST 100 /* lives of the other random tests, which EVREC_SEEDS counts, that take as long as one simulation */
#define REFUSED_SHARE 0.05
#define WRITTEN_SHARE 0.75

static unsigned seed_count(void)
{
	const char *text = getenv("EVREC_SEEDS");
	unsigned seeds = text != NULL ? (unsigned)strtoul(text, NULL, 10) / COST : SEEDS;

	return seeds == 0 ? 1 : seeds;
}

/* A server, the number of writes, and its limit in requests a second, in the mean. */
struct trial {
	const char *name;
	struct simulated_server server;
	uint64_t writes;
	double admits;
	int64_t from; /* when the throughput is measured; 0: from the third second on */
};

static uint64_t written_from(const struct simulation *sim, int64_t from)
{
	uint64_t sum = 0;

	for (int64_t second = from / EVREC_SECOND; second <= sim->now / EVREC_SECOND; second++) {
		sum += sim->written_by[second];
	}
	return sum;
}

static void judge(const struct trial *trial, const struct simulation *sim, uint64_t seed)
{
	int64_t from = trial->from != 0 ? trial->from : 2 * EVREC_SECOND;
	double seconds = (double)(sim->now - from) / (double)EVREC_SECOND;
	double share = (double)written_from(sim, from) / (trial->admits * seconds);

	if ((double)sim->refused > REFUSED_SHARE * (double)sim->written || share < WRITTEN_SHARE) {
		fail_msg("%s, EVREC_SEED=%llu: %llu written, %llu refused, %.2f of what is admitted, in %.2f s",
		         trial->name, (unsigned long long)seed, (unsigned long long)sim->written,
		         (unsigned long long)sim->refused, share, (double)sim->now / (double)EVREC_SECOND);
	}
}

static void run_trials(const struct trial *trials, size_t n)
{
	uint64_t first = unit_seed();

	for (size_t i = 0; i < n; i++) {
		for (uint64_t seed = first; seed < first + seed_count(); seed++) {
			struct simulation sim = simulation_begin(&trials[i].server, trials[i].writes, seed);

			simulation_run(&sim, 3600 * EVREC_SECOND);
			assert_int_equal(sim.written, trials[i].writes);
			judge(&trials[i], &sim, seed);
		}
	}
}

#define RUN_TRIALS(trials) run_trials(trials, sizeof(trials) / sizeof((trials)[0]))

/* A limit on requests in service. The admitted rate is that of a client with as many in flight. */
static void test_limit_on_requests_in_service(void **state)
{
	const struct simulated_server one = {
		.limits.at_once = 1, .latency = MS / 2, .service = 5 * MS, .retry_after = 1000 * MS
	};
	struct trial trials[] = {
		{ "one at a time", one, 3000, 1 / 0.0055, 0 },
		{ "one at a time, for long", one, 20000, 1 / 0.0055, 0 },
		{ "one at a time, no Retry-After", one, 3000, 1 / 0.0055, 0 },
		{ "4 at once", one, 20000, 4 / 0.0055, 0 },
		{ "16 at once", one, 30000, 16 / 0.0055, 0 },
		{ "16 at once, far away", one, 5000, 16 / 0.100, 0 },
		{ "4 at once, Retry-After 30", one, 100000, 4 / 0.0055, 34000 * MS },
	};

	(void)state;
	trials[2].server.retry_after = 0;
	trials[3].server.limits.at_once = 4;
	trials[4].server.limits.at_once = trials[5].server.limits.at_once = 16;
	trials[5].server.latency = trials[5].server.service = 50 * MS;
	trials[6].server.limits.at_once = 4;
	trials[6].server.retry_after = 30000 * MS;
	RUN_TRIALS(trials);
}

/* A limit on requests a second, by a token bucket. */
static void test_limit_on_requests_a_second(void **state)
{
	const struct simulated_server fifty = { .limits.rate = 50, .burst = 50, .latency = MS / 2, .service = 2 * MS };
	struct trial trials[] = {
		{ "50 a second", fifty, 500, 50, 0 },
		{ "50 a second, for long", fifty, 5000, 50, 0 },
		{ "50 a second, Retry-After 1", fifty, 500, 50, 0 },
		{ "50 a second, in bursts of 5", fifty, 500, 50, 0 },
		{ "50 a second, 15 ms away", fifty, 500, 50, 0 },
		{ "50 a second, 45 ms away", fifty, 1000, 50, 0 },
		{ "50 a second, 135 ms away", fifty, 3000, 50, 0 },
		{ "500 a second", fifty, 20000, 500, 0 },
	};

	(void)state;
	trials[2].server.retry_after = EVREC_SECOND;
	trials[3].server.burst = 5;
	trials[4].server.latency = 15 * MS;
	trials[5].server.latency = 45 * MS;
	trials[6].server.latency = 135 * MS;
	trials[7].server.limits.rate = trials[7].server.burst = 500;
	RUN_TRIALS(trials);
}

/* From 20 s to 50 s the limit is a tenth or less. The run is judged until 50 s, then anew from 75 s on. */
static void test_limit_that_shrinks_and_recovers(void **state)
{
	const struct simulated_server fifty = { .limits.rate = 50,
		                                .later.rate = 5,
		                                .burst = 50,
		                                .latency = MS / 2,
		                                .service = 2 * MS,
		                                .cut = 20 * EVREC_SECOND,
		                                .mended = 50 * EVREC_SECOND };
	const struct simulated_server sixteen = { .limits.at_once = 16,
		                                  .later.at_once = 1,
		                                  .latency = MS / 2,
		                                  .service = 5 * MS,
		                                  .retry_after = EVREC_SECOND,
		                                  .cut = 20 * EVREC_SECOND,
		                                  .mended = 50 * EVREC_SECOND };
	struct trial trials[] = {
		{ "50 a second, then 5", fifty, 5000, 50, 0 },
		{ "500 a second, then 50", fifty, 50000, 500, 0 },
		{ "16 at once, then 1", sixteen, 300000, 16 / 0.0055, 0 },
	};
	uint64_t first = unit_seed();

	(void)state;
	trials[1].server.limits.rate = trials[1].server.burst = 500;
	trials[1].server.later.rate = 50;
	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		for (uint64_t seed = first; seed < first + seed_count(); seed++) {
			struct trial cut = trials[i], mended = trials[i];
			struct simulation sim = simulation_begin(&cut.server, cut.writes, seed);

			simulation_run(&sim, 50 * EVREC_SECOND);
			/* Full limit for 18 s of 48, a tenth or a 16th for the others. */
			cut.admits *= (18 + 30 / (i == 2 ? 16. : 10.)) / 48;
			judge(&cut, &sim, seed);
			mended.from = 75 * EVREC_SECOND;
			simulation_run(&sim, 90 * EVREC_SECOND);
			judge(&mended, &sim, seed);
		}
	}
}

static void test_healthy_server_gets_full_throughput(void **state)
{
	const struct simulated_server server = { .latency = MS / 2, .service = MS * 3 / 2 };
	uint64_t first = unit_seed();

	(void)state;
	for (uint64_t seed = first; seed < first + seed_count(); seed++) {
		struct simulation sim = simulation_begin(&server, 50000, seed);

		simulation_run(&sim, 3600 * EVREC_SECOND);
		judge(&(struct trial){ "healthy", server, 50000, 32 / 0.002, EVREC_SECOND }, &sim, seed);
		assert_int_equal(sim.refused, 0);
		assert_int_equal(sim.highest, 32);
		assert_in_range(sim.written_at_highest, 0, 200);
	}
}

/* Dead for a minute: few tries, and full throughput within 3 s after the end of the outage. */
static void test_dead_server_gets_few_tries(void **state)
{
	const struct simulated_server server = { .later.dead = true,
		                                 .latency = MS / 2,
		                                 .service = MS * 3 / 2,
		                                 .cut = EVREC_SECOND,
		                                 .mended = 61 * EVREC_SECOND };
	uint64_t first = unit_seed();

	(void)state;
	for (uint64_t seed = first; seed < first + seed_count(); seed++) {
		struct simulation sim = simulation_begin(&server, UINT64_MAX, seed);
		unsigned ended;

		/* Until 2 s, answers that were in flight mix with the first failures. */
		simulation_run(&sim, 2 * EVREC_SECOND);
		ended = sim.outages_ended;
		simulation_run(&sim, 61 * EVREC_SECOND);
		assert_in_range(sim.unanswered, 20, 200);
		assert_int_equal(sim.outages_ended, ended);
		simulation_run(&sim, 66 * EVREC_SECOND);
		assert_int_equal(sim.outages_ended, ended + 1);
		assert_int_equal(sim.refused, 0);
		assert_int_equal(sim.throttle.window, 32);
		assert_true(sim.written_by[65] > 12000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit_on_requests_in_service),
		cmocka_unit_test(test_limit_on_requests_a_second),
		cmocka_unit_test(test_limit_that_shrinks_and_recovers),
		cmocka_unit_test(test_healthy_server_gets_full_throughput),
		cmocka_unit_test(test_dead_server_gets_few_tries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
