/*
 * share_world.h - shares of one process here, an owner and workers, stepped in turns by a clock of the test; and all that
 * each of them was told. share_pair.h has the same with sums alone.
 */
#ifndef EVREC_UNIT_SHARE_WORLD_H
#define EVREC_UNIT_SHARE_WORLD_H

#include "unit.h"

#include "share/share.h"

#define SHARE_WORLD_KEPT 64

/* An occurrence that an owner has recorded. */
struct share_recorded {
	uint64_t source, node;
	char object[64], name[256];
	bool again, unsure;
	uint32_t n;
};

/* A process. */
struct share_process {
	struct share *share;
	struct share_recorded recorded[SHARE_WORLD_KEPT];
	size_t recorded_len;
	uint64_t occurrences; /* recorded */
	bool settles;         /* at once, as written */
	unsigned flushes, errors, begins, begins_late;
	bool alone; /* as it became an owner */
	char error[256], error_name[32];
	uint32_t lost[FRAME_ENDS];
	char lost_object[64];
	const char *state; /* to be handed over */
	char loaded[64];
};

struct share_world {
	char name[64];
	struct share_process processes[3];
	int64_t now;
};

/* cmocka's setup and teardown: *state is a struct share_world that they own. */
int share_world_setup(void **state);
int share_world_teardown(void **state);

#define SHARE_WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, share_world_setup, share_world_teardown)

/* Functions whose context is a struct share_process. */
extern const struct share_ops share_world_ops;

/* Two lists of one option, which differ. */
extern const struct frame_option share_world_options_a[1], share_world_options_b[1];

struct share_options share_world_options(const struct share_world *w);
/* Starts process `i`, with share_world_options and share_world_options_a, or with these. It settles at once. */
struct share_process *share_world_start(struct share_world *w, size_t i);
struct share_process *share_world_start_as(struct share_world *w, size_t i, const struct share_options *options,
                                           const struct frame_option *same);
/* An owner and a worker that know each other. */
void share_world_start_two(struct share_world *w, struct share_process **owner, struct share_process **worker);
/* Steps each, in turns. */
void share_world_step(struct share_world *w, size_t times);

/* As a process that is killed: its sockets are closed. */
void share_process_stop(struct share_process *p);
/* Adds an event about a Service of this name. */
enum share_result share_process_add(struct share_process *p, const char *object);
enum share_result share_process_add_note(struct share_process *p, const char *object, evrec_str note);
struct ledger_counts share_process_counts(const struct share_process *p);

#endif
