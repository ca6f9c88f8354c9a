#include "spool/spooler_inner.h"

#include "spool/journal_import.h"
#include "spool/spool_folder.h"

/* The most names that a new file may try. A spooler that searches every 0.1 ms takes 2 of 1,000 new lock files. */
#define NAMES_MAX 4
/*
 * The most files that are open at once, each with some descriptors and up to half a MiB of SQLite's memory. Later
 * searches find the others.
 */
#define AHEAD_MAX 32

struct look {
	struct spooler *sp;
	struct outbox *ob;
	evrec_error err;  /* why a file was refused; empty: none was */
	unsigned damaged; /* notes of journals that could not be read */
};

static const char *name_of(const struct spool *spool)
{
	const char *slash = strrchr(spool_path(spool), '/');

	return slash == NULL ? spool_path(spool) : slash + 1;
}

static bool is_aside(const struct spooler *sp, const char *name)
{
	for (size_t i = 0; i < sp->aside_len; i++) {
		if (strcmp(sp->aside[i], name) == 0) {
			return true;
		}
	}
	return false;
}

/* True: the file is open, and the notes of its journal are rows. */
static bool open_file(struct look *look, struct spool *spool)
{
	enum spool_claim claim = spool_claim(spool, &look->err);
	unsigned damaged = 0;
	bool ok;

	ok = claim == SPOOL_CLAIMED && spool_open(spool, spooler_mode(look->sp), &look->err) &&
	     journal_import(spool_pending_path(spool), spool, &look->sp->codec, look->ob, &damaged, &look->err);
	look->damaged += damaged;
	return ok;
}

/* True if rows of the file may be sent. */
static bool try_file(struct look *look, struct spool *spool)
{
	return open_file(look, spool) && journal_remove(spool_pending_path(spool), &look->err) &&
	       spool_last_seq(spool, &look->sp->until, &look->err);
}

static bool look_at(void *ctx, const char *name)
{
	struct look *look = ctx;
	struct spool *spool = is_aside(look->sp, name) ? NULL : spool_folder_file(look->sp->folder, name);

	if (spool == NULL) {
		return true;
	}
	if (!try_file(look, spool)) {
		spool_free(spool);
		return true;
	}
	look->sp->found = spool;
	return false;
}

static void look_at_each(struct look *look, bool (*func)(void *look, const char *name))
{
	struct spooler *sp = look->sp;
	bool ok = spool_folder_prepare(sp->folder, &look->err) && spool_folder_each(sp->folder, func, look, &look->err);

	if (ok && look->err.message[0] == '\0') {
		sp->refusal.message[0] = '\0';
	} else {
		spooler_report_once(look->ob, ok ? "a file stays in the spool" : "the sink goes on without its spool",
		                    &look->err, &sp->refusal);
	}
	if (look->damaged != 0) {
		outbox_report(look->ob, "spool", "a journal in the spool was damaged, and events in it are lost");
	}
}

void spooler_look(struct spooler *sp, struct outbox *ob, int64_t now)
{
	struct look look = { .sp = sp, .ob = ob };

	look_at_each(&look, look_at);
	sp->cursor = sp->reported = 0;
	sp->read = false;
	sp->restore_at = INT64_MIN;
	sp->refused_room = SIZE_MAX;
	sp->look_at = spool_ask_again_at(now);
	outbox_expect(ob, sp->found != NULL);
}

/* Puts aside a file that this process does not read any more. */
static void put_aside(struct spooler *sp, const struct spool *spool)
{
	char **names = mem_realloc(sp->aside, (sp->aside_len + 1) * sizeof(*names));
	char *name = str_dup(str_from(name_of(spool)));

	if (names != NULL) {
		sp->aside = names;
	}
	/* Without memory the file is read again, to no effect. */
	if (names != NULL && name != NULL) {
		names[sp->aside_len++] = name;
	} else {
		mem_free(name);
	}
}

/* ---- before the first step: the counts of processes that were killed ---- */

/* False: no memory. */
static bool keep_ahead(struct spooler *sp, struct spool *spool)
{
	struct spool **ahead = mem_realloc(sp->ahead, (sp->ahead_len + 1) * sizeof(*ahead));

	if (ahead != NULL) {
		sp->ahead = ahead;
		sp->ahead[sp->ahead_len++] = spool;
	}
	return ahead != NULL;
}

static bool look_ahead_at(void *ctx, const char *name)
{
	struct look *look = ctx;
	struct spool *spool = spool_folder_file(look->sp->folder, name);

	if (spool != NULL &&
	    (!journal_is_there(spool_pending_path(spool)) || !open_file(look, spool) || !keep_ahead(look->sp, spool))) {
		spool_free(spool);
	}
	return look->sp->ahead_len < AHEAD_MAX;
}

void spooler_look_ahead(struct spooler *sp, struct outbox *ob, bool quick)
{
	struct look look = { .sp = sp, .ob = ob };

	spooler_set_quick(sp, quick);
	look_at_each(&look, look_ahead_at);
}

void spooler_end_look_ahead(struct spooler *sp, struct outbox *ob)
{
	evrec_error err;

	while (sp->ahead_len != 0) {
		struct spool *spool = sp->ahead[--sp->ahead_len];

		if (!journal_remove(spool_pending_path(spool), &err)) {
			spooler_report_once(ob, "a file stays in the spool", &err, &sp->refusal);
			put_aside(sp, spool);
		}
		spool_free(spool);
	}
}

void spooler_leave_found(struct spooler *sp)
{
	struct spool *found = sp->found;

	sp->found = NULL;
	if (found == sp->own) {
		/* Without rows, only the journal needs the file's name. */
		if (sp->journal != NULL && spool_is_empty(found)) {
			spool_shed(found);
		}
		return;
	}
	if (spool_is_empty(found)) {
		spool_remove(found);
	} else {
		put_aside(sp, found);
	}
	spool_free(found);
}

void spooler_give_up_own(struct spooler *sp)
{
	if (sp->own != sp->found) {
		put_aside(sp, sp->own);
		spool_free(sp->own);
	}
	sp->own = NULL;
}

/* If there is no own file yet, the found file becomes the own one, if possible. */
static void adopt_found(struct spooler *sp)
{
	/* Entries keep the row numbers of a damaged own file: in `found` these are numbers of other rows. */
	if (sp->found != NULL && !spool_is_damaged(sp->found) && sp->next_number == 1 && sp->journal == NULL) {
		spool_free(sp->own);
		sp->own = sp->found;
		sp->next_number = sp->until + 1;
	}
}

/*
 * Another spooler, which searches for files without an owner, may find the new lock file before it is locked here, and
 * lock and remove it. Then the new file tries another name. After any other failure the file keeps its name, so that
 * each reason is reported once.
 */
static bool lock_own(struct spooler *sp, evrec_error *err)
{
	enum spool_claim claim = SPOOL_IN_USE;

	for (int names = 0; claim == SPOOL_IN_USE && names < NAMES_MAX; names++) {
		if (names != 0) {
			spool_free(sp->own);
			sp->own = NULL;
		}
		sp->own = sp->own == NULL ? spool_folder_new_file(sp->folder) : sp->own;
		if (sp->own == NULL) {
			(void)error_set(err, EVREC_ENOMEM, "no memory");
			return false;
		}
		claim = spool_reserve(sp->own, err);
	}
	return claim == SPOOL_CLAIMED;
}

bool spooler_reserve_own(struct spooler *sp, evrec_error *err)
{
	if (sp->own != NULL && spool_is_open(sp->own)) {
		return true;
	}
	adopt_found(sp);
	if (sp->own != NULL && sp->own == sp->found) {
		return true;
	}
	return spool_folder_prepare(sp->folder, err) && lock_own(sp, err);
}

bool spooler_have_own(struct spooler *sp, enum spool_mode mode, evrec_error *err)
{
	bool ok = spooler_reserve_own(sp, err) && spool_open(sp->own, mode, err);

	if (!ok && sp->own != NULL && sp->journal == NULL) {
		spool_release(sp->own);
	}
	return ok;
}

struct spool *spooler_file_of(const struct spooler *sp, int64_t row, int64_t *seq)
{
	*seq = row < 0 ? -row : row;
	return row > 0 ? sp->found : sp->own;
}
