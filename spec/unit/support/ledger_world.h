/* ledger_world.h - a ledger of one sink with wide limits, events of pods that are told apart by a number, and its counts. */
#ifndef EVREC_UNIT_LEDGER_WORLD_H
#define EVREC_UNIT_LEDGER_WORLD_H

#include "unit.h"

#include "share/ledger.h"

struct ledger_world {
	struct ledger *l;
	struct buf bytes;       /* of ledger_world_bytes */
	enum evrec_cause cause; /* of the last event that was dropped */
	struct ledger_item item;
	evrec_str ended; /* the event of the last acknowledgement */
};

/* cmocka's setup and teardown: *state is a struct ledger_world that they own. */
int ledger_world_setup(void **state);
int ledger_world_teardown(void **state);

#define LEDGER_WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, ledger_world_setup, ledger_world_teardown)

extern const struct ledger_limits ledger_world_wide; /* limits that no test reaches */

/* The event of this number, until the next call. */
evrec_str ledger_world_bytes(struct ledger_world *w, unsigned number);
/* ledger_add, ledger_next and ledger_ack. */
bool ledger_world_add(struct ledger_world *w, unsigned number, int64_t at);
bool ledger_world_next(struct ledger_world *w);
uint32_t ledger_world_ack(struct ledger_world *w, uint32_t id, uint32_t n, size_t sink, int end);
/* Sends all. The id of the last item. */
uint32_t ledger_world_send_all(struct ledger_world *w);
struct ledger_counts ledger_world_counts(const struct ledger_world *w, size_t sink);
void ledger_world_check_counts(const struct ledger_world *w, size_t sink, uint64_t forwarded, uint64_t pending);

#endif
