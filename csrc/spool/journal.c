#define _GNU_SOURCE /* fallocate */

#include "spool/journal_inner.h"

#include "spool/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#define BYTES_MIN ((size_t)2 * 1024 * 1024)

/* A mapping of the file, and its free blocks. */
struct area {
	union journal_block *blocks;
	uint32_t len;
	uint32_t *free; /* room for all */
	uint32_t free_len;
};

struct journal {
	struct outbox_journal of_outbox; /* first */
	struct spool_codec codec;
	char *path;
	int fd;
	uint32_t max;           /* blocks */
	_Atomic int64_t offset; /* of the wall clock */
	/* With the outbox's lock: */
	struct area area;
	struct area next;      /* a larger mapping, not in use yet; blocks == NULL: none */
	struct buf text;       /* of the item being noted */
	_Atomic uint32_t left; /* free blocks; read without the lock */
	bool full;             /* no new note is made until there is more room */
	atomic_bool lacks;     /* since `renew`, a note failed for want of room or memory */
};

uint64_t journal_layout(void)
{
	return ((uint64_t)sizeof(evrec_fields) << 32) + sizeof(struct journal_slot) * 65536 + JOURNAL_BLOCK;
}

uint64_t journal_sum(uint64_t sum, const void *data, size_t len)
{
	const char *bytes = data;
	uint64_t word;

	for (; len >= sizeof(word); len -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 29;
	}
	if (len != 0) {
		word = 0;
		memcpy(&word, bytes, len);
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 29;
	}
	return sum;
}

uint64_t journal_slot_sum(const struct journal_slot *slot)
{
	return journal_sum(JOURNAL_SUM_BEGIN, slot, offsetof(struct journal_slot, sum));
}

/* ---- notes: with the outbox's lock held ---- */

/* A compiler barrier for stores: the process may be killed between two of them. */
static void order_stores(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static uint32_t take_block(struct journal *j)
{
	atomic_store_explicit(&j->left, j->area.free_len - 1, memory_order_relaxed);
	return j->area.free[--j->area.free_len];
}

static void give_block(struct journal *j, uint32_t block)
{
	j->area.free[j->area.free_len++] = block;
	atomic_store_explicit(&j->left, j->area.free_len, memory_order_relaxed);
}

static void give_chain(struct journal *j, uint32_t block)
{
	while (block != 0) {
		const uint32_t next = j->area.blocks[block].text.next;

		give_block(j, block);
		block = next;
	}
}

/* Serializes the item to j->text, and sets its checksum. */
static bool serialize(struct journal *j, const void *item, const void *follow_up)
{
	buf_clear(&j->text);
	return j->codec.pack(item, follow_up, &j->text) && j->text.len != 0;
}

/* Copies the text into free blocks, of which there are enough. Returns the first one. */
static uint32_t store_text(struct journal *j)
{
	const size_t len = j->text.len;
	uint32_t next = 0;

	/* From its end on, as each block has the number of the next one. */
	for (size_t from = (len - 1) / JOURNAL_TEXT * JOURNAL_TEXT;; from -= JOURNAL_TEXT) {
		const uint32_t block = take_block(j);
		struct journal_text *text = &j->area.blocks[block].text;

		text->next = next;
		memcpy(text->text, j->text.data + from, len - from < JOURNAL_TEXT ? len - from : JOURNAL_TEXT);
		next = block;
		if (from == 0) {
			return next;
		}
	}
}

/* Whether so few blocks are free that after a failed note no new one is tried until there are more. */
static bool is_scarce(const struct journal *j)
{
	return j->area.free_len <= j->area.len / 2;
}

static bool put_text(struct journal *j, struct journal_slot *slot, const void *item, const void *follow_up,
                     unsigned heads)
{
	if (!serialize(j, item, follow_up)) {
		return false;
	}
	if ((j->text.len - 1) / JOURNAL_TEXT + 1 + heads > j->area.free_len) {
		j->full = is_scarce(j);
		return false;
	}
	slot->text = store_text(j);
	slot->text_len = j->text.len;
	slot->text_sum = journal_sum(JOURNAL_SUM_BEGIN, j->text.data, j->text.len);
	return true;
}

static void fill_slot(const struct journal *j, struct journal_slot *slot, const struct outbox_row *row)
{
	const int64_t offset = atomic_load_explicit(&j->offset, memory_order_relaxed);

	slot->row = row->row < 0 ? -row->row : row->row;
	if (__builtin_add_overflow(row->last, offset, &slot->last)) {
		slot->last = row->last;
	}
	slot->count = row->count;
	slot->maybe_received = row->maybe_received;
	slot->verb = (uint8_t)row->verb;
}

static void hold(struct journal_head *head, uint32_t slot)
{
	head->slots[slot].sum = journal_slot_sum(&head->slots[slot]);
	order_stores();
	*(volatile uint32_t *)&head->holds = slot;
	order_stores();
}

static uint32_t note_new(struct journal *j, const struct outbox_row *row, const void *item, const void *follow_up)
{
	struct journal_slot slot = { 0 };
	struct journal_head *head;
	uint32_t note;

	j->codec.get_changes(item, follow_up, &slot.changes);
	if (j->full || !put_text(j, &slot, item, follow_up, 1)) {
		atomic_store_explicit(&j->lacks, true, memory_order_relaxed);
		return 0;
	}
	fill_slot(j, &slot, row);
	note = take_block(j);
	head = &j->area.blocks[note].head;
	head->slots[0] = slot;
	hold(head, 0);
	*(volatile uint32_t *)&head->kind = JOURNAL_HEAD;
	return note;
}

static uint32_t note(struct outbox_journal *of_outbox, uint32_t note, const struct outbox_row *row, const void *item,
                     const void *follow_up, bool whole)
{
	struct journal *j = (struct journal *)of_outbox;
	struct journal_head *head;
	struct journal_slot *now, *next;
	uint32_t old = 0;

	if (note == 0) {
		return note_new(j, row, item, follow_up);
	}
	head = &j->area.blocks[note].head;
	now = &head->slots[head->holds];
	next = &head->slots[1 - head->holds];
	*next = *now;
	fill_slot(j, next, row);
	j->codec.get_changes(item, follow_up, &next->changes);
	if (whole || next->changes.version != now->changes.version) {
		if (put_text(j, next, item, follow_up, 0)) {
			old = now->text;
		} else {
			/*
			 * The old text stays, with the new numbers. The next call stores another one, as its version
			 * differs: no version is the complement of one that the same write has.
			 */
			next->changes.version = ~next->changes.version;
		}
	}
	hold(head, 1 - head->holds);
	give_chain(j, old);
	return note;
}

static void note_answered(struct outbox_journal *of_outbox, uint32_t note)
{
	struct journal *j = (struct journal *)of_outbox;
	struct journal_head *head = &j->area.blocks[note].head;
	struct journal_slot *next = &head->slots[1 - head->holds];

	*next = head->slots[head->holds];
	next->answered = 1;
	hold(head, 1 - head->holds);
}

static void forget(struct outbox_journal *of_outbox, uint32_t note)
{
	struct journal *j = (struct journal *)of_outbox;
	struct journal_head *head = &j->area.blocks[note].head;

	*(volatile uint32_t *)&head->kind = 0;
	order_stores();
	give_chain(j, head->slots[head->holds].text);
	give_block(j, note);
	j->full = j->full && is_scarce(j);
}

/* Both mappings are of the same file, so only the list of free blocks is copied. */
static void renew(struct outbox_journal *of_outbox)
{
	struct journal *j = (struct journal *)of_outbox;
	struct area old = j->area;

	atomic_store_explicit(&j->lacks, false, memory_order_relaxed);
	if (j->next.blocks == NULL) {
		return;
	}
	j->full = false;
	j->area = j->next;
	memcpy(j->area.free + j->area.free_len, old.free, old.free_len * sizeof(*old.free));
	j->area.free_len += old.free_len;
	atomic_store_explicit(&j->left, j->area.free_len, memory_order_relaxed);
	j->next = old;
}

/* ---- the file ---- */

static void drop_area(struct area *area)
{
	if (area->blocks != NULL) {
		(void)munmap(area->blocks, (size_t)area->len * JOURNAL_BLOCK);
	}
	mem_free(area->free);
	*area = (struct area){ 0 };
}

/* Whether the file system overwrites allocated blocks in place. */
static bool is_safe_file_system(int fd)
{
	static const unsigned safe[] = { 0xef53 /* ext2, 3 and 4 */, 0x58465342 /* XFS */, 0x01021994 /* tmpfs */,
		                         0x794c7630 /* overlayfs */ };
	struct statfs fs;

	for (size_t i = 0; i < sizeof(safe) / sizeof(safe[0]) && fstatfs(fd, &fs) == 0; i++) {
		if ((unsigned)fs.f_type == safe[i]) {
			return true;
		}
	}
	return false;
}

/* Makes `area` of the first `len` blocks of the file, of which the first `used` are not listed as free. */
static bool make_area(const struct journal *j, uint32_t len, uint32_t used, struct area *area, evrec_error *err)
{
	const off_t from = (off_t)used * JOURNAL_BLOCK, to = (off_t)len * JOURNAL_BLOCK;
	void *memory;

	if (fallocate(j->fd, 0, from, to - from) != 0) {
		private_file_set_errno(err, j->path, errno);
		return false;
	}
	area->free = mem_alloc(len * sizeof(*area->free));
	if (area->free == NULL) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	memory = mmap(NULL, (size_t)to, PROT_READ | PROT_WRITE, MAP_SHARED, j->fd, 0);
	if (memory == MAP_FAILED) {
		private_file_set_errno(err, j->path, errno);
		drop_area(area);
		return false;
	}
	area->blocks = memory;
	area->len = len;
	area->free_len = 0;
	for (uint32_t block = len; block-- > (used == 0 ? 1 : used);) {
		area->free[area->free_len++] = block;
	}
	return true;
}

static bool make_file(struct journal *j, evrec_error *err)
{
	const uint32_t len = BYTES_MIN / JOURNAL_BLOCK < j->max ? BYTES_MIN / JOURNAL_BLOCK : j->max;

	private_file_protect(j->fd);
	if (!is_safe_file_system(j->fd)) {
		private_file_set_error(err, j->path, ": a file system on which a full disk would end the process");
		return false;
	}
	if (!make_area(j, len, 0, &j->area, err)) {
		return false;
	}
	j->area.blocks[0].start = (struct journal_start){ .layout = journal_layout() };
	order_stores();
	*(volatile uint64_t *)&j->area.blocks[0].start.magic = JOURNAL_MAGIC;
	atomic_store(&j->left, j->area.free_len);
	return true;
}

struct journal *journal_new(const char *path, size_t max_bytes, const struct spool_codec *codec, evrec_error *err)
{
	struct journal *j = mem_zalloc(sizeof(*j));
	const size_t max = max_bytes / JOURNAL_BLOCK;

	if (j == NULL || (j->path = str_dup(str_from(path))) == NULL) {
		(void)error_set(err, EVREC_ENOMEM, "no memory");
		mem_free(j);
		return NULL;
	}
	j->of_outbox = (struct outbox_journal){ note, note_answered, forget, renew };
	j->codec = *codec;
	j->max = max < JOURNAL_BLOCKS_MAX ? (uint32_t)max : JOURNAL_BLOCKS_MAX;
	j->max = j->max < 16 ? 16 : j->max;
	j->fd = private_file_open(j->path, err);
	if (j->fd >= 0 && make_file(j, err)) {
		return j;
	}
	journal_free(j, j->fd >= 0);
	return NULL;
}

void journal_free(struct journal *j, bool remove)
{
	if (j == NULL) {
		return;
	}
	drop_area(&j->area);
	drop_area(&j->next);
	if (remove) {
		(void)unlink(j->path);
	}
	if (j->fd >= 0) {
		(void)close(j->fd);
	}
	buf_free(&j->text);
	mem_free(j->path);
	mem_free(j);
}

struct outbox_journal *journal_of_outbox(struct journal *j)
{
	return &j->of_outbox;
}

void journal_set_offset(struct journal *j, int64_t offset)
{
	atomic_store_explicit(&j->offset, offset, memory_order_relaxed);
}

bool journal_enlarge(struct journal *j, evrec_error *err)
{
	const uint32_t left = atomic_load_explicit(&j->left, memory_order_relaxed);

	err->message[0] = '\0';
	/* `renew` has stopped the use of this area. */
	drop_area(&j->next);
	if (left > j->area.len / 2) {
		return atomic_load_explicit(&j->lacks, memory_order_relaxed);
	}
	if (j->area.len == j->max) {
		return false;
	}
	return make_area(j, j->area.len < j->max / 2 ? 2 * j->area.len : j->max, j->area.len, &j->next, err);
}
