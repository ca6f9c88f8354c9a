#include "event/event.h"

#include "base/short_bytes.h"

#include <endian.h>
#include <stdatomic.h>
#include <sys/random.h>

#define XXH_INLINE_ALL /* no library to link with */
#include <xxhash.h>

/*
 * The suffixes of names are ticks: the time of the event in ns, or a later one if that was used. A slot holds the last
 * tick that was used by a group of names within a stretch of about 9 s. One counter would be enough for the real clock.
 * But fake clocks in one process may show different years, and a name should have the time of its event. A tick is used
 * twice only if clocks go back and forth between two stretches that share a slot.
 */
#define STRETCH_BITS 33
#define SLOT_BITS 12
static _Atomic uint64_t last_used[1 << SLOT_BITS];

static uint64_t stretch(uint64_t tick)
{
	return tick >> STRETCH_BITS;
}

/* Unsigned, as the tick after the last time of 64 bits is later too. */
static uint64_t unique_tick(evrec_str name, uint64_t now)
{
	const uint64_t hash = XXH3_64bits(name.data, name.len);

	for (;;) {
		uint64_t mixed = (hash ^ stretch(now)) * UINT64_C(0x9E3779B97F4A7C15);
		_Atomic uint64_t *slot = &last_used[mixed >> (64 - SLOT_BITS)];
		uint64_t last = atomic_load_explicit(slot, memory_order_relaxed), tick = now;

		if (last >= now && stretch(last) == stretch(now)) {
			tick = last + 1;
		}
		if (stretch(tick) != stretch(now)) {
			now = tick; /* the stretch has no tick left: go on in the next one */
			continue;
		}
		if (atomic_compare_exchange_weak(slot, &last, tick)) {
			return tick;
		}
	}
}

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_dns_label(evrec_str s)
{
	size_t i;

	if (s.len == 0 || s.len > NAMESPACE_MAX || s.data[0] == '-' || s.data[s.len - 1] == '-') {
		return false;
	}
	for (i = 0; i < s.len; i++) {
		if (!is_alphanumeric(s.data[i]) && s.data[i] != '-') {
			return false;
		}
	}
	return true;
}

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS (ONES << 7)

/* A mask with the high bit of each byte that is within these bounds; all bytes are ASCII. */
static inline uint64_t bytes_within(uint64_t word, unsigned char least, unsigned char most)
{
	return (word + ONES * (0x80u - least)) & ~(word + ONES * (0x7fu - most)) & HIGHS;
}

/*
 * Eight bytes, the first one the lowest, behind one that `last` tells: 1 if it was a dot, 2 if it was a hyphen, 0 for
 * others. False: they are no part of a subdomain. A dot follows no dot and no hyphen; a hyphen follows no dot.
 */
static inline bool part_of_subdomain(uint64_t word, unsigned *last)
{
	const uint64_t letters = bytes_within(word, 'a', 'z') | bytes_within(word, '0', '9');
	const uint64_t dots = bytes_within(word, '.', '.'), hyphens = bytes_within(word, '-', '-');
	const uint64_t after_dot = dots << 8 | (*last == 1 ? 0x80u : 0);
	const uint64_t after_hyphen = hyphens << 8 | (*last == 2 ? 0x80u : 0);

	*last = dots >> 63 != 0 ? 1 : hyphens >> 63 != 0 ? 2 : 0;
	return (word & HIGHS) == 0 && (letters | dots | hyphens) == HIGHS &&
	       ((after_dot & (dots | hyphens)) | (after_hyphen & dots)) == 0;
}

/* Checking eight bytes at a time saves 200 of 6,766 instructions of a new event. */
bool is_dns_subdomain(evrec_str s)
{
	unsigned last = 1;
	size_t i;

	if (s.len == 0 || s.len > 253) {
		return false;
	}
	for (i = 0; s.len - i >= sizeof(uint64_t); i += sizeof(uint64_t)) {
		if (!part_of_subdomain(le64toh(bytes_load8(s.data + i)), &last)) {
			return false;
		}
	}
	if (i != s.len) {
		/* Letters behind the rest change nothing but the last byte. */
		uint64_t word = ONES * 'a';

		memcpy(&word, s.data + i, s.len - i);
		if (!part_of_subdomain(le64toh(word), &last)) {
			return false;
		}
	}
	return s.data[s.len - 1] != '.' && s.data[s.len - 1] != '-';
}

/* RFC 4122, version 4. */
static void put_uuid(struct buf *out)
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), GRND_NONBLOCK) != (ssize_t)sizeof(b)) {
		/* The kernel has no random bytes yet: make the UUID unique within this process at least. */
		uint64_t tick = unique_tick(EVREC_STR(""), 0);

		memset(b, 0, sizeof(b));
		memcpy(b, &tick, sizeof(tick));
	}
	b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
	buf_printf(out, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
	           b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

/* The hexadecimal digits of 32 bits, the first one in the lowest byte. */
static inline uint64_t hex_digits(uint32_t value)
{
	uint64_t nibbles = __builtin_bswap64((uint64_t)value), letters;

	/* From eight nibbles in the high half, the first one highest, to one in each byte, the first one lowest. */
	nibbles >>= 32;
	nibbles = (nibbles | nibbles << 16) & UINT64_C(0x0000ffff0000ffff);
	nibbles = (nibbles | nibbles << 8) & UINT64_C(0x00ff00ff00ff00ff);
	nibbles = ((nibbles >> 4) | (nibbles << 8)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	letters = ((nibbles + ONES * 6) >> 4) & ONES;
	return nibbles + ONES * '0' + letters * ('a' - '9' - 1);
}

static void put_hex(struct buf *out, uint64_t value)
{
	const uint64_t digits[] = { htole64(hex_digits((uint32_t)(value >> 32))),
		                    htole64(hex_digits((uint32_t)value)) };
	const size_t zeros = value == 0 ? 15 : (size_t)__builtin_clzll(value) / 4;

	buf_put(out, (const char *)digits + zeros, sizeof(digits) - zeros);
}

void name_make(struct buf *out, evrec_str reference_name, int64_t now)
{
	size_t start = out->len;
	uint64_t tick;

	/* The suffix is a well-formed label by itself, so only the length of the whole is left to check. */
	if (now >= 0 && is_dns_subdomain(reference_name)) {
		tick = unique_tick(reference_name, (uint64_t)now);
		buf_put_str(out, reference_name);
		buf_put(out, ".", 1);
		put_hex(out, tick);
		if (out->len - start <= 253 || out->failed) {
			return;
		}
		out->len = start;
	}
	put_uuid(out);
}
