#include "event/event.h"

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

bool is_dns_subdomain(evrec_str s)
{
	char before = '.';
	size_t i;

	if (s.len > 253) {
		return false;
	}
	for (i = 0; i < s.len; i++) {
		char c = s.data[i];

		if (!is_alphanumeric(c) && (before == '.' || (c != '-' && (c != '.' || before == '-')))) {
			return false;
		}
		before = c;
	}
	return before != '.' && before != '-';
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

static void put_hex(struct buf *out, uint64_t value)
{
	char digits[16];
	size_t i = sizeof(digits);

	do {
		digits[--i] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value != 0);
	buf_put(out, digits + i, sizeof(digits) - i);
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
