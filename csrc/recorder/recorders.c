/* The recorders of a broadcaster: their list, their stats, and reports of fields with too many values. */
#include "recorder/recorder.h"

#include "base/utf8.h"

void recorders_add(evrec_recorder *r)
{
	evrec_broadcaster *b = r->b;

	r->prev = b->last_recorder;
	*(r->prev != NULL ? &r->prev->next : &b->first_recorder) = r;
	b->last_recorder = r;
	(void)recorder_count(r, &b->components, r->event.component);
}

void recorders_remove(evrec_recorder *r)
{
	evrec_broadcaster *b = r->b;

	*(r->prev != NULL ? &r->prev->next : &b->first_recorder) = r->next;
	*(r->next != NULL ? &r->next->prev : &b->last_recorder) = r->prev;
}

bool recorder_count(evrec_recorder *r, struct cardinality *field, evrec_str value)
{
	const bool is_new = cardinality_add(field, value);

	r->b->suspects |= cardinality_is_due(field);
	return is_new;
}

static void put_name(struct line *line, evrec_str component)
{
	char name[64];

	utf8_copy(name, sizeof(name), component);
	line_printf(line, component.len != 0 ? "recorder " : "recorder without a component");
	line_put_escaped(line, str_from(name));
}

/* Begins a message. False: there is nothing to report about this field. */
static bool put_field(const evrec_recorder *r, struct cardinality *field, const char *values, struct line *line)
{
	if (!cardinality_is_due(field)) {
		return false;
	}
	field->told = true;
	put_name(line, r->event.component);
	line_printf(line, ": ");
	cardinality_put(field, values, line);
	return true;
}

/* Makes the next message. False: there is none. */
static bool next_message(evrec_broadcaster *b, struct line *line)
{
	for (evrec_recorder *r = b->first_recorder; r != NULL; r = r->next) {
		if (put_field(r, &r->reasons, "reasons", line)) {
			line_printf(line, ": a reason is a constant; put data into the message");
			return true;
		}
		if (put_field(r, &r->actions, "actions", line)) {
			line_printf(line, ": an action is a constant; put data into the message");
			return true;
		}
	}
	if (!cardinality_is_due(&b->components)) {
		return false;
	}
	b->components.told = true;
	cardinality_put(&b->components, "components of recorders", line);
	line_printf(line, ": a component is a constant; keep its recorder");
	return true;
}

/* A callback may run a garbage collector that frees recorders: so the search begins anew after each message. */
void recorders_tell(evrec_broadcaster *b)
{
	while (b->suspects) {
		struct line line = { .len = 0 };

		if (next_message(b, &line)) {
			handle_enter(b);
			hub_tell_error(b->hub, line.text, "cardinality", NULL);
			handle_leave(b);
		} else {
			b->suspects = false;
		}
	}
}

const evrec_recorder *evrec_broadcaster_next_recorder(const evrec_broadcaster *b, const evrec_recorder *previous)
{
	return previous != NULL ? previous->next : b->first_recorder;
}

void evrec_recorder_get_stats(const evrec_recorder *r, evrec_recorder_stats *stats)
{
	*stats = (evrec_recorder_stats){
		.component = r->event.component,
		.host = r->event.host,
		.instance = r->event.instance,
		.reasons = r->reasons.len,
		.actions = r->actions.len,
	};
}
