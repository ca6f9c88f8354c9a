#include "ledger_world.h"

const struct ledger_limits ledger_world_wide = { 1000, 1 << 24 };

int ledger_world_setup(void **state)
{
	struct ledger_world *w = calloc(1, sizeof(*w));

	w->l = ledger_new(&ledger_world_wide);
	ledger_set_sinks(w->l, 1);
	*state = w;
	return w->l == NULL;
}

int ledger_world_teardown(void **state)
{
	struct ledger_world *w = *state;

	ledger_free(w->l);
	buf_free(&w->bytes);
	free(w);
	return 0;
}

evrec_str ledger_world_bytes(struct ledger_world *w, unsigned number)
{
	char name[16];
	evrec_fields f;

	(void)snprintf(name, sizeof(name), "web-%u", number);
	evrec_fields_init(&f);
	f.ns = EVREC_STR("shop");
	f.regarding = (evrec_reference){ .kind = EVREC_STR("Pod"), .name = str_from(name), .ns = f.ns };
	f.type = EVREC_STR("Normal");
	f.reason = EVREC_STR("Started");
	f.count = 1;
	buf_clear(&w->bytes);
	frame_event_put(&w->bytes, &f, NULL, 0);
	return buf_str(&w->bytes);
}

bool ledger_world_add(struct ledger_world *w, unsigned number, int64_t at)
{
	return ledger_add(w->l, ledger_world_bytes(w, number), at, &w->cause);
}

bool ledger_world_next(struct ledger_world *w)
{
	return ledger_next(w->l, &w->item);
}

uint32_t ledger_world_send_all(struct ledger_world *w)
{
	while (ledger_world_next(w)) {
		ledger_sent(w->l);
	}
	return w->item.times.id;
}

uint32_t ledger_world_ack(struct ledger_world *w, uint32_t id, uint32_t n, size_t sink, int end)
{
	return ledger_ack(w->l, &(struct frame_ack){ id, n, (uint8_t)sink, (uint8_t)end, 0 }, &w->ended);
}

struct ledger_counts ledger_world_counts(const struct ledger_world *w, size_t sink)
{
	struct ledger_counts c;

	ledger_count(w->l, sink, &c);
	return c;
}

void ledger_world_check_counts(const struct ledger_world *w, size_t sink, uint64_t forwarded, uint64_t pending)
{
	const struct ledger_counts c = ledger_world_counts(w, sink);

	assert_int_equal(c.forwarded, forwarded);
	assert_int_equal(c.pending, pending);
}
