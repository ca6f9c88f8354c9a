/* journal_inner.h - the blocks of a journal's file: journal.c writes them, journal_import.c reads those of a dead process. */
#ifndef EVREC_JOURNAL_INNER_H
#define EVREC_JOURNAL_INNER_H

#include "spool/journal.h"

#pragma GCC visibility push(hidden)

/* "evrcjn02". To be changed with each change of a note's text, which a codec makes, or of the blocks' layout. */
#define JOURNAL_MAGIC 0x32306e6a63727665u
#define JOURNAL_HEAD 0x64616568u /* more than the number of blocks of any file, so no block of text begins with it */
#define JOURNAL_TEXT (JOURNAL_BLOCK - sizeof(uint32_t))
#define JOURNAL_BLOCKS_MAX 0x40000000u

/* Block 0. */
struct journal_start {
	uint64_t magic;
	uint64_t layout; /* of the blocks: a build of evrec with another layout ignores the file */
	int64_t first;   /* of the notes without a row, note 0 would get this number; 0: no import has begun */
};

struct journal_slot {
	int64_t row;  /* 0: none */
	int64_t last; /* the wall clock's ns */
	uint32_t count, maybe_received;
	uint8_t verb, answered;
	uint16_t unused;
	uint32_t text; /* the first block of the item's text */
	uint64_t text_len, text_sum;
	struct spool_changes changes;
	uint64_t sum; /* of all before */
};

struct journal_head {
	uint32_t kind;  /* JOURNAL_HEAD; else the block is free, or has text */
	uint32_t holds; /* the valid slot */
	struct journal_slot slots[2];
};

struct journal_text {
	uint32_t next; /* 0: it is the last one */
	char text[JOURNAL_TEXT];
};

union journal_block {
	struct journal_start start;
	struct journal_head head;
	struct journal_text text;
	char bytes[JOURNAL_BLOCK];
};
_Static_assert(sizeof(union journal_block) == JOURNAL_BLOCK, "a block has one size");

uint64_t journal_layout(void);
#define JOURNAL_SUM_BEGIN UINT64_C(0xcbf29ce484222325)
/* Continues the checksum `sum` with `len` more bytes. */
uint64_t journal_sum(uint64_t sum, const void *data, size_t len);
uint64_t journal_slot_sum(const struct journal_slot *slot);

#pragma GCC visibility pop

#endif
