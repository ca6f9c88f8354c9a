#include "event/event.h"

#include <stdatomic.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/*
 * The last time given out, for each of many groups of names within each of many stretches of time of about 9 s. One
 * counter would do for the real clock, but fake clocks live side by side in different years, and a name should tell
 * the time of its event where it can. Only clocks that step back, or take turns, between stretches that share a slot
 * could see a time twice.
 */
#define STRETCH_BITS 33
#define SLOT_BITS 12
static _Atomic int64_t last_used[1 << SLOT_BITS];

static int64_t stretch(int64_t tick)
{
	return tick >> STRETCH_BITS;
}

static int64_t unique_tick(evrec_str name, int64_t now)
{
	const uint64_t hash = XXH3_64bits(name.data, name.len);

	for (;;) {
		uint64_t mixed = (hash ^ (uint64_t)stretch(now)) * UINT64_C(0x9E3779B97F4A7C15);
		_Atomic int64_t *slot = &last_used[mixed >> (64 - SLOT_BITS)];
		int64_t last = atomic_load_explicit(slot, memory_order_relaxed), tick = now;

		if (last >= now && stretch(last) == stretch(now)) {
			tick = last + 1;
		}
		if (stretch(tick) != stretch(now)) {
			now = tick; /* this stretch is used up */
			continue;
		}
		if (atomic_compare_exchange_weak(slot, &last, tick)) {
			return tick;
		}
	}
}

/* Lower-case letters and digits; asked for each character of every new event's name. */
static const bool alphanumeric[256] = {
	['0'] = true, ['1'] = true, ['2'] = true, ['3'] = true, ['4'] = true, ['5'] = true, ['6'] = true, ['7'] = true,
	['8'] = true, ['9'] = true, ['a'] = true, ['b'] = true, ['c'] = true, ['d'] = true, ['e'] = true, ['f'] = true,
	['g'] = true, ['h'] = true, ['i'] = true, ['j'] = true, ['k'] = true, ['l'] = true, ['m'] = true, ['n'] = true,
	['o'] = true, ['p'] = true, ['q'] = true, ['r'] = true, ['s'] = true, ['t'] = true, ['u'] = true, ['v'] = true,
	['w'] = true, ['x'] = true, ['y'] = true, ['z'] = true,
};

bool is_dns_label(evrec_str s)
{
	size_t i;

	if (s.len == 0 || s.len > NAMESPACE_MAX || s.data[0] == '-' || s.data[s.len - 1] == '-') {
		return false;
	}
	for (i = 0; i < s.len; i++) {
		if (!alphanumeric[(unsigned char)s.data[i]] && s.data[i] != '-') {
			return false;
		}
	}
	return true;
}

/* RFC 1123, at most 253 characters: parts of letters, digits and, not at their ends, hyphens. */
static bool is_dns_subdomain(evrec_str s)
{
	char before = '.';
	size_t i;

	if (s.len > 253) {
		return false;
	}
	for (i = 0; i < s.len; i++) {
		char c = s.data[i];

		if (!alphanumeric[(unsigned char)c] && (before == '.' || (c != '-' && (c != '.' || before == '-')))) {
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
		/* Before the kernel has gathered randomness: unique within this process is what is left. */
		int64_t tick = unique_tick(EVREC_STR(""), 0);

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
	int64_t tick;

	/* The suffix is a part by itself and always well-formed; only the length of the whole is left to check. */
	if (now >= 0 && is_dns_subdomain(reference_name)) {
		tick = unique_tick(reference_name, now);
		buf_put_str(out, reference_name);
		buf_put(out, ".", 1);
		put_hex(out, (uint64_t)tick);
		if (out->len - start <= 253 || out->failed) {
			return;
		}
		out->len = start;
	}
	put_uuid(out);
}
