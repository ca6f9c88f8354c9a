#include "share_world.h"

#include "share_idle.h"

#include <unistd.h>

static void copy(char *to, size_t size, evrec_str from)
{
	(void)snprintf(to, size, "%.*s", (int)from.len, from.len == 0 ? "" : from.data);
}

/* ---- what a share calls ---- */

static void on_record(void *ctx, const struct share_event *e)
{
	struct share_process *p = ctx;

	if (p->recorded_len < SHARE_WORLD_KEPT) {
		struct share_recorded *r = &p->recorded[p->recorded_len++];

		*r = (struct share_recorded){
			.source = e->source,
			.node = e->node,
			.again = (e->flags & FRAME_AGAIN) != 0,
			.unsure = (e->flags & FRAME_UNSURE) != 0,
			.n = e->n,
		};
		copy(r->object, sizeof(r->object), e->event->fields.regarding.name);
		copy(r->name, sizeof(r->name), e->name);
	}
	p->occurrences += e->n;
	/* A flush must not end between the ledger and the pipelines. */
	assert_true(e->source != 0 || !share_is_settled(p->share));
	if (p->settles && e->source != 0) {
		share_settled(p->share, e->source, e->node, 0, FRAME_FORWARDED, e->n);
	}
}

static void on_flush(void *ctx)
{
	((struct share_process *)ctx)->flushes++;
}

static void on_lost(void *ctx, const evrec_fields *event, size_t sink, unsigned end, uint32_t n)
{
	struct share_process *p = ctx;

	assert_int_equal(sink, 0);
	p->lost[end] += n;
	copy(p->lost_object, sizeof(p->lost_object), event->regarding.name);
}

static void on_error(void *ctx, const char *message, const char *name)
{
	struct share_process *p = ctx;

	p->errors++;
	copy(p->error, sizeof(p->error), str_from(message));
	copy(p->error_name, sizeof(p->error_name), str_from(name));
}

static bool on_save(void *ctx, size_t sink, struct buf *out)
{
	const struct share_process *p = ctx;

	(void)sink;
	buf_put_str(out, str_from(p->state));
	return p->state != NULL;
}

static void on_load(void *ctx, size_t sink, evrec_str state)
{
	struct share_process *p = ctx;

	(void)sink;
	copy(p->loaded, sizeof(p->loaded), state);
}

/* An owner whose state is another process's for a moment. */
static bool on_begin(void *ctx, bool alone)
{
	struct share_process *p = ctx;

	p->begins++;
	p->alone = alone;
	return p->begins > p->begins_late;
}

const struct share_ops share_world_ops = {
	.record = on_record,
	.flush = on_flush,
	.begin = on_begin,
	.connected = share_idle_connected,
	.lost = on_lost,
	.error = on_error,
	.save_state = on_save,
	.load_state = on_load,
};

/* ---- the world ---- */

const struct frame_option share_world_options_a[1] = { { { "qps", 3 }, 1 } };
const struct frame_option share_world_options_b[1] = { { { "qps", 3 }, 2 } };

struct share_options share_world_options(const struct share_world *w)
{
	return (struct share_options){ .name = str_from(w->name), .limits = { 1000, 1 << 24 } };
}

struct share_process *share_world_start_as(struct share_world *w, size_t i, const struct share_options *options,
                                           const struct frame_option *same)
{
	struct share_process *p = &w->processes[i];

	*p = (struct share_process){ .settles = true };
	p->share = share_new(options, &share_world_ops, p, NULL);
	assert_non_null(p->share);
	assert_true(share_set_options(p->share, same, 1, 1));
	return p;
}

struct share_process *share_world_start(struct share_world *w, size_t i)
{
	const struct share_options options = share_world_options(w);

	return share_world_start_as(w, i, &options, share_world_options_a);
}

void share_process_stop(struct share_process *p)
{
	share_free(p->share);
	p->share = NULL;
}

void share_world_step(struct share_world *w, size_t times)
{
	while (times-- > 0) {
		for (size_t i = 0; i < 3; i++) {
			if (w->processes[i].share != NULL) {
				share_step(w->processes[i].share, w->now, 0);
			}
		}
	}
}

enum share_result share_process_add_note(struct share_process *p, const char *object, evrec_str note)
{
	enum evrec_cause cause;
	evrec_fields f;

	evrec_fields_init(&f);
	f.ns = EVREC_STR("shop");
	f.regarding = (evrec_reference){ .kind = EVREC_STR("Service"), .name = str_from(object), .ns = f.ns };
	f.type = EVREC_STR("Warning");
	f.reason = EVREC_STR("Failed");
	f.note = note;
	f.count = 1;
	return share_add(p->share, &f, NULL, T0, &cause);
}

enum share_result share_process_add(struct share_process *p, const char *object)
{
	return share_process_add_note(p, object, EVREC_STR("It failed."));
}

struct ledger_counts share_process_counts(const struct share_process *p)
{
	struct ledger_counts c;

	share_count(p->share, 0, &c);
	return c;
}

int share_world_setup(void **state)
{
	static unsigned number;
	struct share_world *w = calloc(1, sizeof(*w));

	(void)snprintf(w->name, sizeof(w->name), "@evrec-share-test-%ld-%u", (long)getpid(), number++);
	w->now = T0;
	*state = w;
	return 0;
}

int share_world_teardown(void **state)
{
	struct share_world *w = *state;

	for (size_t i = 0; i < 3; i++) {
		share_free(w->processes[i].share);
	}
	free(w);
	return 0;
}

void share_world_start_two(struct share_world *w, struct share_process **owner, struct share_process **worker)
{
	*owner = share_world_start(w, 0);
	share_world_step(w, 1);
	*worker = share_world_start(w, 1);
	share_world_step(w, 4);
	assert_int_equal(share_role((*owner)->share), SHARE_OWNER);
	assert_int_equal(share_role((*worker)->share), SHARE_WORKER);
}
