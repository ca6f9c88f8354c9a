#include "throttle_simulation.h"

static const struct admission *current_limits(const struct simulation *sim)
{
	bool is_cut = sim->server.cut != 0 && sim->now >= sim->server.cut && sim->now < sim->server.mended;

	return is_cut ? &sim->server.later : &sim->server.limits;
}

/* A random duration of 3/4 to 5/4 of `length`. */
static int64_t about(struct simulation *sim, int64_t length)
{
	return length * 3 / 4 + (int64_t)(unit_random(&sim->random) % (uint64_t)(length / 2 + 1));
}

static bool has_token(struct simulation *sim)
{
	const struct admission *limits = current_limits(sim);

	if (limits->rate == 0) {
		return true;
	}
	sim->tokens += limits->rate * (double)(sim->now - sim->tokens_at) / (double)EVREC_SECOND;
	sim->tokens_at = sim->now;
	if (sim->tokens > sim->server.burst) {
		sim->tokens = sim->server.burst;
	}
	if (sim->tokens < 1) {
		return false;
	}
	sim->tokens--;
	return true;
}

static enum request_result admit(struct simulation *sim)
{
	const struct admission *limits = current_limits(sim);

	if (limits->dead) {
		return REQUEST_UNANSWERED;
	}
	if ((limits->at_once != 0 && sim->busy >= limits->at_once) || !has_token(sim)) {
		return REQUEST_REFUSED;
	}
	return REQUEST_SUCCEEDED;
}

/* Fails the test, in any build, if a change of state is illegal. */
static void check_step(const struct simulation *sim, enum throttle_state before)
{
	enum throttle_state after = sim->throttle.state;

	assert_true(before == after || throttle_may_step(before, after));
	assert_in_range(sim->throttle.window, 1, sim->throttle.max_in_flight);
	assert_int_equal(sim->throttle.in_flight, sim->in_flight);
}

static void start_request(struct simulation *sim)
{
	enum throttle_state before = sim->throttle.state;
	size_t i = 0;

	while (sim->slots[i].stage != STAGE_FREE) {
		i++;
	}
	sim->slots[i].stage = STAGE_REQUEST;
	sim->slots[i].at = sim->now + about(sim, sim->server.latency / 2);
	sim->in_flight++;
	if (sim->in_flight > sim->highest) {
		sim->highest = sim->in_flight;
		sim->written_at_highest = sim->written;
	}
	throttle_started(&sim->throttle, sim->now);
	check_step(sim, before);
}

static void end_request(struct simulation *sim, enum request_result result)
{
	enum throttle_state before = sim->throttle.state;
	int64_t retry_after = result == REQUEST_REFUSED ? sim->server.retry_after : 0;

	sim->in_flight--;
	if (result == REQUEST_SUCCEEDED) {
		sim->written++;
		sim->written_by[sim->now / EVREC_SECOND]++;
	}
	sim->refused += result == REQUEST_REFUSED;
	sim->unanswered += result == REQUEST_UNANSWERED;
	sim->outages_ended += throttle_ended(&sim->throttle, result, retry_after, sim->now, unit_random(&sim->random));
	check_step(sim, before);
}

static void advance_slot(struct simulation *sim, size_t i)
{
	switch (sim->slots[i].stage) {
	case STAGE_REQUEST:
		sim->slots[i].result = admit(sim);
		sim->slots[i].stage = STAGE_ANSWER;
		sim->slots[i].at = sim->now + about(sim, sim->server.latency / 2);
		if (sim->slots[i].result == REQUEST_SUCCEEDED) {
			sim->slots[i].stage = STAGE_SERVICE;
			sim->slots[i].at = sim->now + about(sim, sim->server.service);
			sim->busy++;
		}
		break;
	case STAGE_SERVICE:
		sim->busy--;
		sim->slots[i].stage = STAGE_ANSWER;
		sim->slots[i].at = sim->now + about(sim, sim->server.latency / 2);
		break;
	default:
		sim->slots[i].stage = STAGE_FREE;
		end_request(sim, sim->slots[i].result);
	}
}

static int64_t next_event(const struct simulation *sim, size_t *slot)
{
	int64_t at = INT64_MAX;

	for (size_t i = 0; i < SIMULATION_SLOTS; i++) {
		if (sim->slots[i].stage != STAGE_FREE && sim->slots[i].at < at) {
			at = sim->slots[i].at;
			*slot = i;
		}
	}
	return at;
}

void simulation_run(struct simulation *sim, int64_t end)
{
	while (sim->written < sim->to_write && sim->now < end) {
		size_t slot = SIMULATION_SLOTS;
		int64_t at = next_event(sim, &slot);
		int64_t start = throttle_next_start(&sim->throttle, sim->now);

		if (sim->written + sim->in_flight < sim->to_write && start <= at) {
			sim->now = start > sim->now ? start : sim->now;
			start_request(sim);
		} else {
			assert_true(slot != SIMULATION_SLOTS);
			sim->now = at;
			advance_slot(sim, slot);
		}
	}
}

struct simulation simulation_begin(const struct simulated_server *server, uint64_t to_write, uint64_t seed)
{
	struct simulation sim = { .server = *server, .to_write = to_write, .random = seed, .tokens = server->burst };

	throttle_init(&sim.throttle, 32, true);
	return sim;
}
