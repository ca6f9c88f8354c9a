#include "share_pair.h"

#include <unistd.h>

#include "share_idle.h"

static void on_record(void *ctx, const struct share_event *e)
{
	struct share_side *side = ctx;

	side->occurrences += e->n;
	if (side->settles && e->source != 0) {
		share_settled(side->share, e->source, e->node, 0, FRAME_FORWARDED, e->n);
	}
}

static void on_left(void *ctx, uint64_t source)
{
	(void)source;
	((struct share_side *)ctx)->left++;
}

static void on_lost(void *ctx, const evrec_fields *event, size_t sink, unsigned end, uint32_t n)
{
	(void)event;
	(void)sink;
	(void)end;
	((struct share_side *)ctx)->dropped += n;
}

static void on_error(void *ctx, const char *message, const char *name)
{
	struct share_side *side = ctx;

	side->errors++;
	(void)snprintf(side->error, sizeof(side->error), "%s", message);
	(void)snprintf(side->error_name, sizeof(side->error_name), "%s", name);
}

static void on_trouble(void *ctx, evrec_str text, evrec_str problem, evrec_str sink_name)
{
	struct share_side *side = ctx;

	side->troubles++;
	(void)snprintf(side->error, sizeof(side->error), "%.*s: %.*s: %.*s", (int)sink_name.len, sink_name.data,
	               (int)problem.len, problem.data, (int)text.len, text.data);
}

static const struct share_ops ops = {
	.record = on_record,
	.flush = share_idle_flush,
	.begin = share_idle_begin,
	.connected = share_idle_connected,
	.left = on_left,
	.lost = on_lost,
	.error = on_error,
	.trouble = on_trouble,
	.save_state = share_idle_save_state,
	.load_state = share_idle_load_state,
};

void share_pair_init(struct share_pair *p)
{
	static unsigned number;

	*p = (struct share_pair){ .now = T0 };
	(void)snprintf(p->name, sizeof(p->name), "@evrec-pair-%ld-%u", (long)getpid(), number++);
}

void share_pair_free(struct share_pair *p)
{
	for (size_t i = 0; i < 3; i++) {
		share_free(p->sides[i].share);
		p->sides[i].share = NULL;
	}
}

struct share_options share_pair_options(const struct share_pair *p)
{
	return (struct share_options){ .name = str_from(p->name), .limits = { 1000, 1 << 24 } };
}

struct share_side *share_pair_start(struct share_pair *p, size_t i, const struct share_options *options)
{
	static const struct frame_option same = { { "qps", 3 }, 1 };
	struct share_side *side = &p->sides[i];

	*side = (struct share_side){ .settles = true };
	side->share = share_new(options, &ops, side, NULL);
	assert_non_null(side->share);
	assert_true(share_set_options(side->share, &same, 1, 1));
	return side;
}

void share_side_step(struct share_pair *p, struct share_side *side)
{
	const uint64_t before = side->occurrences;

	share_step(side->share, p->now, 0);
	if (side->occurrences - before > side->most) {
		side->most = side->occurrences - before;
	}
}

void share_pair_step(struct share_pair *p, unsigned times)
{
	while (times-- > 0) {
		for (size_t i = 0; i < 3; i++) {
			if (p->sides[i].share != NULL) {
				share_side_step(p, &p->sides[i]);
			}
		}
	}
}

void share_pair_start_two(struct share_pair *p)
{
	const struct share_options options = share_pair_options(p);

	(void)share_pair_start(p, 0, &options);
	share_pair_step(p, 1);
	(void)share_pair_start(p, 1, &options);
	share_pair_step(p, 4);
	assert_int_equal(share_role(p->sides[0].share), SHARE_OWNER);
	assert_int_equal(share_role(p->sides[1].share), SHARE_WORKER);
}

enum share_result share_side_add_type(const struct share_side *side, const char *type, const char *object)
{
	enum evrec_cause cause;
	evrec_fields f;

	evrec_fields_init(&f);
	f.ns = EVREC_STR("shop");
	f.regarding = (evrec_reference){ .kind = EVREC_STR("Service"), .name = str_from(object), .ns = f.ns };
	f.type = str_from(type);
	f.reason = EVREC_STR("Failed");
	f.note = EVREC_STR("It failed.");
	f.count = 1;
	return share_add(side->share, &f, NULL, T0, &cause);
}

enum share_result share_side_add(const struct share_side *side, const char *object)
{
	return share_side_add_type(side, "Warning", object);
}

struct ledger_counts share_side_counts(const struct share_side *side)
{
	struct ledger_counts counts;

	share_count(side->share, 0, &counts);
	return counts;
}
