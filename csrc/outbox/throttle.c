#include "outbox/throttle.h"

#include "base/phase.h"
#include "outbox/retry.h"

#define WINDOW_FIRST 4
#define GROWS_AFTER 7 /* successes with a full window */

#define WINDOW_PROVEN 32 /* successes with a full window: a window that is too large is refused sooner */

#define PROBE_NEEDS_FIRST 64 /* successes */
#define PROBE_NEEDS_MAX 1024
#define PROBE_PAUSES 16 /* a probe that fails costs its pause: it may cost a 16th of the time */

#define BACKOFF_FIRST (EVREC_SECOND / 10)
#define BACKOFF_MAX (30 * EVREC_SECOND)

#define OUTAGE_AFTER 4
#define OUTAGE_PAUSE_FIRST (EVREC_SECOND / 2)
#define OUTAGE_PAUSE_MAX (3 * EVREC_SECOND)

#define RATE_SHARE 0.9 /* of what the server admitted */
#define RATE_MIN 0.5
#define GROWTH_FIRST 0.02
#define GROWTH_MAX 1.0
#define TURN_STARTS 2     /* a turn is a second, but long enough for so many starts */
#define HOLDING_SHARE 0.8 /* the rate holds requests back if this share of it is used */
#define IDLE_TURNS 3
#define SLOT_CREDIT (EVREC_SECOND / 100) /* a caller that wakes up late catches up with so much */
#define MEASURE_MAX (10 * EVREC_SECOND)  /* older successes count half */
#define MEASURE_IDLE (1 * EVREC_SECOND)  /* after such a pause without requests the measurement begins anew */

static const unsigned legal_steps[THROTTLE_STATES] = {
	[THROTTLE_OPEN] = PHASE_BIT(THROTTLE_PAUSED) | PHASE_BIT(THROTTLE_OUTAGE),
	[THROTTLE_CAUTIOUS] = PHASE_BIT(THROTTLE_PROBING) | PHASE_BIT(THROTTLE_PAUSED) | PHASE_BIT(THROTTLE_OUTAGE),
	[THROTTLE_PROBING] = PHASE_BIT(THROTTLE_OPEN) | PHASE_BIT(THROTTLE_PAUSED) | PHASE_BIT(THROTTLE_OUTAGE),
	[THROTTLE_PAUSED] = PHASE_BIT(THROTTLE_CAUTIOUS) | PHASE_BIT(THROTTLE_OUTAGE),
	[THROTTLE_OUTAGE] = PHASE_BIT(THROTTLE_OPEN) | PHASE_BIT(THROTTLE_PAUSED),
};

bool throttle_may_step(enum throttle_state from, enum throttle_state to)
{
	return phase_may_step(from, to, legal_steps);
}

static void step(struct throttle *t, enum throttle_state to)
{
	phase_step(&t->state, to, legal_steps);
	t->gained = 0;
}

static int64_t min_time(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max_time(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void throttle_init(struct throttle *t, unsigned max_in_flight, bool jitter)
{
	*t = (struct throttle){
		.jitter = jitter,
		.max_in_flight = max_in_flight,
		.window = max_in_flight < WINDOW_FIRST ? max_in_flight : WINDOW_FIRST,
		.probe_needs = PROBE_NEEDS_FIRST,
		.paused_until = INT64_MIN,
		.next_slot = INT64_MIN,
	};
}

unsigned throttle_window(const struct throttle *t, int64_t now)
{
	if (now < t->paused_until) {
		return 0;
	}
	return t->state == THROTTLE_OUTAGE ? 1 : t->window;
}

int64_t throttle_next_start(const struct throttle *t, int64_t now)
{
	int64_t start = t->rate != 0 ? max_time(t->paused_until, t->next_slot) : t->paused_until;

	return t->in_flight >= throttle_window(t, max_time(now, t->paused_until)) ? INT64_MAX : start;
}

/* ---- the rate ---- */

static int64_t interval(const struct throttle *t)
{
	return (int64_t)((double)EVREC_SECOND / t->rate);
}

static void begin_turn(struct throttle *t, int64_t now)
{
	t->turn_from = now;
	t->turn_starts = 0;
}

static void limit_rate(struct throttle *t, int64_t now)
{
	double rate =
		RATE_SHARE * t->successes * (double)EVREC_SECOND / (double)(time_since(now, t->measured_from) + 1);

	/* Without a success there is no rate to go by; the pauses get longer. */
	if (t->successes > 0) {
		t->rate = rate < RATE_MIN ? RATE_MIN : rate;
		t->next_slot = now;
		t->growth = GROWTH_FIRST;
		t->idle_turns = 0;
		t->rate_holds = true;
		begin_turn(t, now);
	}
}

static void review_rate(struct throttle *t, int64_t now)
{
	int64_t elapsed = time_since(now, t->turn_from);

	if (elapsed < max_time(EVREC_SECOND, TURN_STARTS * interval(t))) {
		return;
	}
	t->rate_holds = t->turn_starts * (double)EVREC_SECOND >= HOLDING_SHARE * t->rate * (double)elapsed;
	begin_turn(t, now);
	if (t->rate_holds) {
		t->rate += t->rate * t->growth;
		t->growth = 2 * t->growth < GROWTH_MAX ? 2 * t->growth : GROWTH_MAX;
		t->idle_turns = 0;
	} else if (++t->idle_turns >= IDLE_TURNS) {
		t->rate = 0;
	}
}

static void take_slot(struct throttle *t, int64_t now)
{
	if (t->rate != 0) {
		review_rate(t, now);
	}
	if (t->rate != 0) {
		t->turn_starts++;
		t->next_slot =
			time_after(max_time(t->next_slot, now - max_time(SLOT_CREDIT, interval(t) / 4)), interval(t));
	}
}

static void measure_from(struct throttle *t, int64_t now)
{
	t->measured_from = now;
	t->successes = 0;
}

static void measure_start(struct throttle *t, int64_t now)
{
	int64_t could_start = max_time(t->last_end, t->rate != 0 ? t->next_slot : t->paused_until);

	if (!t->begun || (t->in_flight == 0 && time_since(now, could_start) > MEASURE_IDLE)) {
		measure_from(t, now);
	}
	t->begun = true;
}

static void measure_success(struct throttle *t, int64_t now)
{
	int64_t elapsed = time_since(now, t->measured_from);

	t->successes++;
	if (elapsed > MEASURE_MAX) {
		t->successes /= 2;
		t->measured_from += elapsed / 2;
	}
}

/* ---- starts and ends ---- */

void throttle_started(struct throttle *t, int64_t now)
{
	if (t->state == THROTTLE_PAUSED) {
		step(t, THROTTLE_CAUTIOUS);
	}
	measure_start(t, now);
	take_slot(t, now);
	t->was_alone = t->in_flight == 0;
	t->in_flight++;
	t->was_full = t->in_flight >= t->window;
}

/* The lengths of pauses: `first` and twice as much each time, of which `part` is random. */
static int64_t backoff(const struct throttle *t, unsigned times, int64_t first, int64_t max, int64_t part,
                       uint64_t random)
{
	int64_t length = first;

	for (; times > 1 && length < max; times--) {
		length *= 2;
	}
	length = min_time(length, max);
	return t->jitter ? length - (int64_t)(random % (uint64_t)(length / part + 1)) : length;
}

static int64_t retry_after_pause(const struct throttle *t, int64_t retry_after, uint64_t random)
{
	int64_t length = min_time(retry_after, RETRY_AFTER_MAX);

	return t->jitter ? length + (int64_t)(random % (uint64_t)(length / 10 + 1)) : length;
}

static void succeed(struct throttle *t, bool is_old, int64_t now)
{
	measure_success(t, now);
	if (!is_old) {
		t->refusals = 0;
	}
	if (t->state == THROTTLE_PAUSED || is_old || !t->was_full) {
		return;
	}
	t->gained++;
	if (t->state == THROTTLE_OPEN && t->gained >= GROWS_AFTER && t->window < t->max_in_flight) {
		t->gained = 0;
		t->window++;
	} else if (t->state == THROTTLE_PROBING && t->gained >= t->probe_needs) {
		t->probe_needs = PROBE_NEEDS_FIRST;
		step(t, THROTTLE_OPEN);
	} else if (t->state == THROTTLE_CAUTIOUS && t->gained >= t->probe_needs && now >= t->probe_from &&
	           t->window < t->max_in_flight) {
		t->window++;
		step(t, THROTTLE_PROBING);
	}
}

/* The server has refused one more of the requests that were under way at once. */
static void cut_window(struct throttle *t, unsigned admitted)
{
	t->window = admitted < t->window ? admitted : t->window - 1;
	if (t->window == 0) {
		t->window = 1;
	}
}

static bool is_rate_to_blame(const struct throttle *t)
{
	bool was_alone = t->was_alone && t->in_flight == 0;

	return was_alone || (t->rate != 0 && t->rate_holds) || t->gained >= WINDOW_PROVEN;
}

static void blame(struct throttle *t, bool timed_out, int64_t now)
{
	if (!timed_out && is_rate_to_blame(t)) {
		limit_rate(t, now);
	} else {
		cut_window(t, t->in_flight);
	}
	if (t->state == THROTTLE_PROBING) {
		t->probe_needs = t->probe_needs < PROBE_NEEDS_MAX / 2 ? 2 * t->probe_needs : PROBE_NEEDS_MAX;
	}
	measure_from(t, now);
}

static void pause(struct throttle *t, int64_t length, int64_t probe_cost, int64_t now)
{
	t->paused_until = max_time(t->paused_until, time_after(now, length));
	t->next_slot = max_time(t->next_slot, t->paused_until);
	t->probe_from = max_time(t->probe_from, time_after(t->paused_until, PROBE_PAUSES * probe_cost));
	if (t->state != THROTTLE_PAUSED) {
		step(t, THROTTLE_PAUSED);
	}
}

static void refuse(struct throttle *t, bool timed_out, int64_t retry_after, int64_t now, uint64_t random)
{
	int64_t length;

	t->refused++;
	t->refusals++;
	blame(t, timed_out, now);
	t->old = t->in_flight;
	if (retry_after > 0) {
		length = retry_after_pause(t, retry_after, random);
		pause(t, length, length, now);
	} else {
		/* The first success resets the pauses: a failed probe costs the shortest one. */
		pause(t, backoff(t, t->refusals, BACKOFF_FIRST, BACKOFF_MAX, 2, random), BACKOFF_FIRST, now);
	}
}

/* The refusal of a request that started before the last refusal: the same overload. */
static void refuse_old(struct throttle *t, int64_t retry_after, int64_t now, uint64_t random)
{
	int64_t length = retry_after_pause(t, retry_after, random);

	t->refused++;
	cut_window(t, t->window);
	if (retry_after > 0) {
		pause(t, length, length, now);
	}
}

static bool answered(struct throttle *t)
{
	bool was_out = t->state == THROTTLE_OUTAGE;

	t->unanswered = t->outage_pauses = 0;
	if (was_out) {
		t->window = t->window < WINDOW_FIRST ? t->window : WINDOW_FIRST;
		t->paused_until = INT64_MIN;
		step(t, THROTTLE_OPEN);
	}
	return was_out;
}

static void miss_answer(struct throttle *t, int64_t now, uint64_t random)
{
	bool was_out = t->state == THROTTLE_OUTAGE;
	int64_t length;

	t->unanswered++;
	if (t->unanswered < OUTAGE_AFTER || (was_out && now < t->paused_until)) {
		return;
	}
	t->outage_pauses++;
	length = backoff(t, t->outage_pauses, OUTAGE_PAUSE_FIRST, OUTAGE_PAUSE_MAX, 1, random);
	t->paused_until = max_time(t->paused_until, time_after(now, length));
	if (!was_out) {
		step(t, THROTTLE_OUTAGE);
	}
}

bool throttle_ended(struct throttle *t, enum request_result result, int64_t retry_after, int64_t now, uint64_t random)
{
	bool is_old = t->old != 0;
	bool timed_out = result == REQUEST_TIMED_OUT;
	bool is_answer = !timed_out && result != REQUEST_UNANSWERED;
	bool is_back = is_answer && answered(t);
	bool is_refusal = result == REQUEST_REFUSED || (timed_out && t->state != THROTTLE_OUTAGE);

	t->in_flight--;
	t->old -= is_old ? 1 : 0;
	t->last_end = now;
	if (result == REQUEST_SUCCEEDED) {
		succeed(t, is_old, now);
	} else if (is_refusal && is_old) {
		refuse_old(t, retry_after, now, random);
	} else if (is_refusal) {
		refuse(t, timed_out, retry_after, now, random);
	}
	if (!is_answer) {
		miss_answer(t, now, random);
	}
	return is_back;
}
