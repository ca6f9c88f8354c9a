#include "exec/plugin.h"

#include "base/clock.h"
#include "base/phase.h"
#include "base/utf8.h"

#include <stdio.h>

#define BACKOFF_FIRST EVREC_SECOND
#define BACKOFF_MAX (30 * EVREC_SECOND)
/* A credential is fetched anew when a tenth of its life is left, but no earlier than that. */
#define MARGIN_MAX (60 * EVREC_SECOND)
/*
 * The assumed lifetime of a credential that has expired on arrival: if this machine's clock is fast, the server still
 * accepts it.
 */
#define LIFE_LATE (30 * EVREC_SECOND)
#define LIFE_MIN EVREC_SECOND
#define SECRET_MIN 32 /* a word of so many bytes on standard error may be a token */

struct plugin {
	struct exec_command *command;
	evrec_clock *clock;
	enum plugin_state state;
	struct process process;
	bool has_credential;
	bool proven;            /* the server has accepted it */
	int64_t renew, expires; /* monotonic; INT64_MAX: never */
	int64_t not_before;     /* no run starts before that */
	unsigned failures;      /* since the server accepted a credential */
};

static const unsigned legal_steps[PLUGIN_STATES] = {
	[PLUGIN_IDLE] = PHASE_BIT(PLUGIN_WANTED),
	[PLUGIN_WANTED] = PHASE_BIT(PLUGIN_RUNNING) | PHASE_BIT(PLUGIN_IDLE),
	[PLUGIN_RUNNING] = PHASE_BIT(PLUGIN_IDLE),
};

bool plugin_may_step(enum plugin_state from, enum plugin_state to)
{
	return phase_may_step(from, to, legal_steps);
}

static void enter(struct plugin *p, enum plugin_state state)
{
	phase_step(&p->state, state, legal_steps);
}

struct plugin *plugin_new(struct exec_command *command, evrec_clock *clock)
{
	struct plugin *p = mem_zalloc(sizeof(*p));

	if (p != NULL) {
		p->command = exec_command_retain(command);
		p->clock = evrec_clock_retain(clock);
		p->not_before = INT64_MIN;
	}
	return p;
}

void plugin_free(struct plugin *p)
{
	if (p != NULL) {
		process_stop(&p->process);
		exec_command_release(p->command);
		evrec_clock_release(p->clock);
		mem_free(p);
	}
}

/* ---- messages ---- */

static bool is_token_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c != '\0' && strchr("-_.+=~", c) != NULL);
}

/*
 * Appends a line without control bytes and without its long words: a script that traces itself would show a token. A slash
 * is a part of a word, as Base64 has slashes, but ends each word of a path, which begins with one. If the line is cut, its
 * last word may be the beginning of a long one.
 */
static void put_line(struct buf *out, evrec_str line, bool cut)
{
	bool in_path = false;
	size_t word;

	for (size_t i = 0; i < line.len; i += word) {
		in_path = line.data[i] == '/' || (in_path && is_token_byte(line.data[i]));
		for (word = 0; i + word < line.len &&
		               (is_token_byte(line.data[i + word]) || (line.data[i + word] == '/' && !in_path));
		     word++) {
		}
		if (word >= SECRET_MIN || (word != 0 && cut && i + word == line.len)) {
			buf_put_str(out, EVREC_STR("***"));
		} else if (word != 0) {
			buf_put(out, line.data + i, word);
		} else {
			word = 1;
			buf_put(out, (unsigned char)line.data[i] < ' ' || line.data[i] == 0x7f ? " " : line.data + i,
			        1);
		}
	}
}

static void describe_end(const struct process *run, char *text, size_t size)
{
	switch (run->end) {
	case PROCESS_EXITED:
		(void)snprintf(text, size, "exit status %d", run->status);
		break;
	case PROCESS_SIGNALED:
		(void)snprintf(text, size, "ended by signal %d", run->status);
		break;
	case PROCESS_LATE:
		(void)snprintf(text, size, "killed after %d s", (int)(PROCESS_TIME_MAX / EVREC_SECOND));
		break;
	case PROCESS_LONG:
		(void)snprintf(text, size, "killed after %zu bytes of output", PROCESS_BYTES_MAX);
		break;
	case PROCESS_NO_MEMORY:
		(void)snprintf(text, size, "no memory for its output");
		break;
	case PROCESS_REAPED:
		(void)snprintf(text, size, "ended");
		break;
	}
}

static void set_message(const struct plugin *p, const char *why, evrec_error *err)
{
	struct buf text = { 0 }, clean = { 0 };

	buf_printf(&text, "exec plugin '%.60s': %s", p->command->name, why);
	if (p->process.line_len != 0) {
		buf_put_str(&text, EVREC_STR(": "));
		put_line(&text, (evrec_str){ p->process.line, p->process.line_len }, p->process.line_cut);
	}
	utf8_clean(&clean, buf_str(&text));
	error_set(err, EVREC_ESYSTEM, "%s", clean.failed ? why : buf_cstr(&clean));
	buf_free(&text);
	buf_free(&clean);
}

/* ---- the policy ---- */

static int64_t now_of(const struct plugin *p)
{
	return clock_monotonic(p->clock);
}

static void back_off(struct plugin *p)
{
	int64_t length = BACKOFF_FIRST;

	for (unsigned i = 0; i < p->failures && length < BACKOFF_MAX; i++) {
		length *= 2;
	}
	p->failures++;
	p->not_before = now_of(p) + (length < BACKOFF_MAX ? length : BACKOFF_MAX);
}

bool plugin_ready(struct plugin *p)
{
	int64_t now = now_of(p);

	if (p->state == PLUGIN_IDLE && (!p->has_credential || now >= p->renew)) {
		enter(p, PLUGIN_WANTED);
	}
	return p->has_credential && now < p->expires;
}

/* `expires` is ns since 1970. */
static void take_up(struct plugin *p, int64_t expires)
{
	int64_t now = now_of(p), life, margin;

	p->has_credential = true;
	p->proven = false;
	p->not_before = now + BACKOFF_FIRST;
	if (expires == EVREC_UNSET) {
		p->renew = p->expires = INT64_MAX;
		return;
	}
	life = time_since(expires, evrec_clock_now(p->clock));
	life = life < LIFE_MIN ? LIFE_LATE : life;
	margin = life / 10 < MARGIN_MAX ? life / 10 : MARGIN_MAX;
	p->expires = time_after(now, life);
	p->renew = p->expires - margin;
}

static enum plugin_news fail(struct plugin *p, const char *why, evrec_error *err)
{
	set_message(p, why, err);
	back_off(p);
	return PLUGIN_FAILED;
}

static enum plugin_news read_output(struct plugin *p, struct exec_credential *credential, evrec_error *err)
{
	const struct process *run = &p->process;
	evrec_error fault;
	char why[64];

	if (run->end != PROCESS_REAPED && (run->end != PROCESS_EXITED || run->status != 0)) {
		describe_end(run, why, sizeof(why));
		return fail(p, why, err);
	}
	if (exec_credential_read(buf_str(&run->output), p->command->api_version, credential, &fault) != 0) {
		return fail(p, fault.message, err);
	}
	take_up(p, credential->expires);
	return PLUGIN_CREDENTIAL;
}

enum plugin_news plugin_step(struct plugin *p, struct exec_credential *credential, evrec_error *err)
{
	int64_t now = now_of(p);
	enum plugin_news news;
	evrec_error fault;

	if (p->state == PLUGIN_WANTED && now >= p->not_before && !process_is_dying(&p->process)) {
		p->process.line_len = 0;
		if (process_start(&p->process, &p->command->process, now, &fault) != 0) {
			enter(p, PLUGIN_IDLE);
			return fail(p, fault.message, err);
		}
		enter(p, PLUGIN_RUNNING);
	}
	if (!process_step(&p->process, now) || p->state != PLUGIN_RUNNING) {
		return PLUGIN_NO_NEWS;
	}
	enter(p, PLUGIN_IDLE);
	news = read_output(p, credential, err);
	buf_free(&p->process.output); /* it may be a megabyte, and holds the token */
	return news;
}

int64_t plugin_next_step(const struct plugin *p)
{
	int64_t now = now_of(p);
	int64_t due = process_next_step(&p->process, now);

	if (p->state == PLUGIN_WANTED && due == INT64_MAX) {
		due = p->not_before;
	}
	return due == INT64_MAX ? INT64_MAX : time_since(due, now);
}

size_t plugin_descriptors(const struct plugin *p, int fds[2])
{
	return process_descriptors(&p->process, fds);
}

void plugin_accepted(struct plugin *p)
{
	p->proven = true;
	p->failures = 0;
}

void plugin_refused(struct plugin *p)
{
	if (!p->has_credential) {
		return;
	}
	p->has_credential = false;
	if (!p->proven) {
		back_off(p);
	}
}

bool plugin_unusable(struct plugin *p, const char *why, evrec_error *err)
{
	const bool had_credential = p->has_credential;

	p->has_credential = false;
	if (had_credential) {
		(void)fail(p, why, err);
	}
	return had_credential;
}
