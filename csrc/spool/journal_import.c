#define _POSIX_C_SOURCE 200809L /* pread */

#include "spool/journal_import.h"

#include "spool/journal_inner.h"
#include "spool/private_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW 256 /* blocks that are read at once */

/* The file is read, not mapped, so that a failing disk is an error and not a signal. */
struct reader {
	const char *path;
	int fd;
	uint32_t len; /* blocks */
	uint32_t at;  /* the first block of the window */
	union journal_block *window;
	const struct spool_codec *codec;
	struct spool *spool;
	struct outbox *ob; /* gets the items whose counts a state may lack; NULL: none */
	int64_t first;     /* of the notes without a row, note 0 would get this number */
	struct buf text, row_text;
	unsigned damaged;
	evrec_error *err;
};

static bool fail_no_memory(struct reader *r)
{
	(void)error_set(r->err, EVREC_ENOMEM, "no memory");
	return false;
}

static bool fail_read(struct reader *r)
{
	private_file_set_errno(r->err, r->path, errno);
	return false;
}

/* NULL: the file cannot be read. */
static const union journal_block *block_at(struct reader *r, uint32_t block)
{
	const uint32_t at = block / WINDOW * WINDOW;
	ssize_t len;

	if (at != r->at) {
		len = pread(r->fd, r->window, WINDOW * JOURNAL_BLOCK, (off_t)at * JOURNAL_BLOCK);
		if (len < 0) {
			(void)fail_read(r);
			return NULL;
		}
		memset((char *)r->window + len, 0, WINDOW * JOURNAL_BLOCK - (size_t)len);
		r->at = at;
	}
	return &r->window[block - at];
}

/* The text of the slot in r->text, which stays empty if it is damaged. */
static bool read_text(struct reader *r, const struct journal_slot *slot)
{
	struct journal_text block;
	uint32_t at = slot->text;
	size_t left = slot->text_len, len;

	buf_clear(&r->text);
	if (left > (uint64_t)r->len * JOURNAL_BLOCK) {
		return true;
	}
	for (; left != 0; left -= len) {
		len = left < JOURNAL_TEXT ? left : JOURNAL_TEXT;
		if (at == 0 || at >= r->len) {
			buf_clear(&r->text);
			return true;
		}
		if (pread(r->fd, &block, sizeof(block), (off_t)at * JOURNAL_BLOCK) != (ssize_t)sizeof(block)) {
			return fail_read(r);
		}
		buf_put(&r->text, block.text, len);
		at = block.next;
	}
	if (r->text.failed) {
		return fail_no_memory(r);
	}
	if (journal_sum(JOURNAL_SUM_BEGIN, r->text.data, r->text.len) != slot->text_sum) {
		buf_clear(&r->text);
	}
	return true;
}

/* The text of a row: that of the note, with the latest numbers. Empty: it is damaged. */
static bool make_row_text(struct reader *r, const struct journal_slot *slot)
{
	void *item;
	bool ok;

	buf_clear(&r->row_text);
	if (r->text.len == 0) {
		return true;
	}
	item = r->codec->unpack(buf_str(&r->text));
	/* The checksum was right, so this is a failure of memory. */
	if (item == NULL) {
		return fail_no_memory(r);
	}
	r->codec->set_changes(item, &slot->changes);
	ok = r->codec->serialize(item, &r->row_text);
	r->codec->free(item);
	return ok || fail_no_memory(r);
}

static bool import_note(struct reader *r, uint32_t note, const struct journal_slot *slot)
{
	struct spool_row row = {
		.seq = slot->row != 0 ? slot->row : r->first + note,
		.verb = slot->verb == VERB_PATCH ? VERB_PATCH : VERB_CREATE,
		.count = slot->count,
		.maybe_received = slot->maybe_received,
		.last = slot->last,
		.time = slot->changes.last,
	};

	if (slot->answered != 0) {
		return spool_forget(r->spool, row.seq, r->err);
	}
	if (!read_text(r, slot) || !make_row_text(r, slot)) {
		return false;
	}
	if (r->row_text.len == 0) {
		r->damaged++;
		return true;
	}
	row.item = buf_str(&r->row_text);
	return spool_put(r->spool, &row, r->err);
}

/* Calls `func` for the valid slot of each note. Counts damaged notes. */
static bool each_note(struct reader *r, bool (*func)(struct reader *r, uint32_t note, const struct journal_slot *slot))
{
	const union journal_block *block;
	struct journal_slot slot;

	r->damaged = 0;
	for (uint32_t note = 1; note < r->len; note++) {
		block = block_at(r, note);
		if (block == NULL) {
			return false;
		}
		if (block->head.kind != JOURNAL_HEAD) {
			continue;
		}
		slot = block->head.slots[block->head.holds & 1];
		if (slot.sum != journal_slot_sum(&slot) || slot.row < 0) {
			r->damaged++;
		} else if (!func(r, note, &slot)) {
			return false;
		}
	}
	return true;
}

static bool find_last_row(struct reader *r, uint32_t note, const struct journal_slot *slot)
{
	(void)note;
	r->first = slot->row > r->first ? slot->row : r->first;
	return true;
}

/* Chooses numbers that no row has, neither in the file nor about to be written. */
static bool choose_numbers(struct reader *r)
{
	struct journal_start start;

	if (pread(r->fd, &start, sizeof(start), 0) != (ssize_t)sizeof(start)) {
		return fail_read(r);
	}
	r->first = start.first;
	if (r->first != 0) {
		return true;
	}
	if (!spool_last_seq(r->spool, &r->first, r->err) || !each_note(r, find_last_row)) {
		return false;
	}
	r->first++;
	start.first = r->first;
	return pwrite(r->fd, &start, sizeof(start), 0) == (ssize_t)sizeof(start) || fail_read(r);
}

/* True, with r->len == 0: the process died before it made a note. */
static bool check_start(struct reader *r)
{
	struct journal_start start;
	struct stat st;
	ssize_t len;

	if (fstat(r->fd, &st) != 0 || (len = pread(r->fd, &start, sizeof(start), 0)) < 0) {
		return fail_read(r);
	}
	if (len < (ssize_t)sizeof(start) || start.magic == 0) {
		return true;
	}
	if (start.magic != JOURNAL_MAGIC || start.layout != journal_layout()) {
		private_file_set_error(r->err, r->path, " was written by another version of evrec");
		return false;
	}
	st.st_size /= JOURNAL_BLOCK;
	r->len = st.st_size < (off_t)JOURNAL_BLOCKS_MAX ? (uint32_t)st.st_size : JOURNAL_BLOCKS_MAX;
	return true;
}

/* Without memory the counts will lack this note. */
static bool bring_note(struct reader *r, uint32_t note, const struct journal_slot *slot)
{
	void *item = NULL;

	(void)note;
	if (slot->answered == 0 && slot->changes.sure > 0 && read_text(r, slot) && r->text.len != 0) {
		item = r->codec->unpack(buf_str(&r->text));
	}
	if (item != NULL) {
		r->codec->set_changes(item, &slot->changes);
		outbox_bring(r->ob, item);
	}
	return true;
}

/* Called after the commit, as a failed import is repeated. */
static void bring_all(struct reader *r)
{
	const unsigned damaged = r->damaged;

	if (r->ob != NULL) {
		(void)each_note(r, bring_note);
	}
	r->damaged = damaged;
}

static bool import_all(struct reader *r)
{
	bool ok = check_start(r);

	if (!ok || r->len == 0) {
		return ok;
	}
	r->window = mem_alloc(WINDOW * JOURNAL_BLOCK);
	r->at = UINT32_MAX;
	if (r->window == NULL) {
		return fail_no_memory(r);
	}
	ok = choose_numbers(r) && spool_begin(r->spool, r->err);
	if (ok) {
		ok = each_note(r, import_note) && spool_commit(r->spool, r->err);
		if (!ok) {
			spool_rollback(r->spool);
		}
	}
	if (ok) {
		bring_all(r);
	}
	mem_free(r->window);
	return ok;
}

/* True also if the folder cannot be read: then opening the file fails with the reason. */
bool journal_is_there(const char *path)
{
	return access(path, F_OK) == 0 || errno != ENOENT;
}

bool journal_import(const char *path, struct spool *spool, const struct spool_codec *codec, struct outbox *ob,
                    unsigned *damaged, evrec_error *err)
{
	struct reader r = { .path = path, .codec = codec, .spool = spool, .err = err };
	bool ok;

	*damaged = 0;
	if (!journal_is_there(path)) {
		return true;
	}
	r.fd = private_file_open(path, err);
	if (r.fd < 0) {
		return false;
	}
	r.ob = ob != NULL && outbox_sends_rows_first(ob) ? ob : NULL;
	ok = import_all(&r);
	(void)close(r.fd);
	buf_free(&r.text);
	buf_free(&r.row_text);
	*damaged = r.damaged;
	return ok;
}

bool journal_remove(const char *path, evrec_error *err)
{
	if (unlink(path) != 0 && errno != ENOENT && truncate(path, 0) != 0) {
		private_file_set_errno(err, path, errno);
		return false;
	}
	return true;
}
