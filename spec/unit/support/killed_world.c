#include "killed_world.h"

unsigned killed_world_below(struct killed_world *w, unsigned n)
{
	return (unsigned)(unit_random(&w->random) % n);
}

struct recorded *killed_world_event(struct killed_world *w, const struct fake_write *item)
{
	unsigned n;

	/* An event gets a second name only if another client has the first. */
	assert_int_equal(sscanf(item->name, "e%u", &n), 1);
	return &w->events[n];
}

static int serve(struct recorded *event, bool is_post, unsigned count)
{
	if (is_post && event->stored != 0) {
		return 409;
	}
	if (!is_post && event->stored == 0) {
		return 404;
	}
	event->stored = count;
	return is_post ? 201 : 200;
}

void killed_world_carry_out_late(struct killed_world *w, bool all)
{
	for (unsigned i = 0; i < LATE; i++) {
		struct late *late = &w->late[i];

		if (late->event != 0 && (all || late->due <= w->now)) {
			(void)serve(&w->events[late->event - 1], false, late->count);
			late->event = 0;
		}
	}
}

static bool hold(struct killed_world *w, const struct entry *entry)
{
	const struct fake_write *item = entry->item;

	for (unsigned i = 0; i < LATE; i++) {
		if (w->late[i].event == 0) {
			w->late[i] =
				(struct late){ (unsigned)(killed_world_event(w, item) - w->events) + 1, item->count,
				               w->now + killed_world_below(w, 1500) * (EVREC_SECOND / 1000) };
			return true;
		}
	}
	return false;
}

void killed_world_try(struct killed_world *w, struct entry *entry, evrec_answer *answer)
{
	const struct fake_write *item = entry->item;
	const bool is_post = entry->verb == VERB_CREATE;
	const unsigned dice = w->away ? killed_world_below(w, 4) : 4 + killed_world_below(w, 8);

	switch (dice) {
	case 0: /* the answer is lost */
		(void)serve(killed_world_event(w, item), is_post, item->count);
		break;
	case 1:
		answer->maybe_late = !is_post && hold(w, entry);
		break;
	case 2:
		answer->unsent = true;
		break;
	case 3:
	case 4:
		answer->status = 503;
		break;
	default:
		answer->status = serve(killed_world_event(w, item), is_post, item->count);
	}
}

void killed_world_settle_requests(struct killed_world *w)
{
	killed_world_carry_out_late(w, true);
	for (unsigned i = 0; i < SINKS * IN_FLIGHT; i++) {
		struct late *request = &w->in_flight[i / IN_FLIGHT][i % IN_FLIGHT];

		if (request->event != 0 && killed_world_below(w, 2) == 0) {
			(void)serve(&w->events[request->event - 1], w->in_flight_is_post[i / IN_FLIGHT][i % IN_FLIGHT],
			            request->count);
		}
		request->event = 0;
	}
}
