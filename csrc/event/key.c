#include "event/key.h"

/* The length of a part in a key; FIELD_MAX and messages are far below what it holds. */
typedef uint32_t part_len;

static char *part(char *p, evrec_str s)
{
	part_len len = (part_len)s.len;

	memcpy(p, &len, sizeof(len));
	p += sizeof(len);
	if (s.len != 0) {
		memcpy(p, s.data, s.len);
	}
	return p + s.len;
}

static size_t size_of(const evrec_str *parts, size_t n)
{
	size_t i, size = n * sizeof(part_len);

	for (i = 0; i < n; i++) {
		size += parts[i].len;
	}
	return size;
}

/* The bytes from `start` to where the next key goes. */
static evrec_str since(const char *start, const char *p)
{
	return (evrec_str){ start, (size_t)(p - start) };
}

bool keys_make(struct keys *keys, const evrec_fields *event)
{
	const evrec_reference *r = &event->regarding;
	const evrec_str head[] = { event->component, event->host, r->kind,        r->ns,
		                   r->name,          r->uid,      r->api_version, event->type };
	const evrec_str tails[] = { event->reason, event->controller, event->instance,
		                    r->field_path, event->reason,     event->note };
	const size_t n = sizeof(head) / sizeof(head[0]), m = sizeof(tails) / sizeof(tails[0]);
	evrec_str common, tail;
	uint64_t hash;
	char *p, *start;
	size_t i;

	buf_clear(&keys->text);
	if (!buf_reserve(&keys->text, size_of(head, n) + size_of(tails, m) + 2)) {
		return false;
	}
	p = start = keys->text.data;
	for (i = 0; i < n; i++) {
		p = part(p, head[i]);
	}
	common = since(start, p);
	hash = lru_hash(common);
	keys->spam = (struct key){ common, { NULL, 0 }, hash };
	start = p;
	*p++ = 'a';
	p = part(part(part(p, tails[0]), tails[1]), tails[2]);
	tail = since(start, p);
	keys->aggregate = (struct key){ common, tail, key_hash(hash, lru_hash(tail)) };
	start = p;
	*p++ = 'e';
	p = part(part(part(p, tails[3]), tails[4]), tails[5]);
	tail = since(start, p);
	keys->event = (struct key){ common, tail, key_hash(hash, lru_hash(tail)) };
	return true;
}

void keys_free(struct keys *keys)
{
	buf_free(&keys->text);
}

bool key_join(struct buf *out, const evrec_str *parts, size_t n)
{
	size_t i;

	buf_clear(out);
	for (i = 0; i < n && buf_reserve(out, sizeof(part_len) + parts[i].len); i++) {
		out->len = (size_t)(part(out->data + out->len, parts[i]) - out->data);
	}
	return !out->failed;
}

bool key_split(evrec_str *rest, evrec_str *first)
{
	part_len len;

	if (rest->len < sizeof(len)) {
		return false;
	}
	memcpy(&len, rest->data, sizeof(len));
	*first = (evrec_str){ rest->data + sizeof(len), len };
	*rest = (evrec_str){ first->data + len, rest->len - sizeof(len) - len };
	return true;
}

bool key_custom(struct key *key, struct buf *out, evrec_str chosen)
{
	static const part_len no_part_is_so_long = UINT32_MAX;

	buf_clear(out);
	buf_put(out, &no_part_is_so_long, sizeof(no_part_is_so_long));
	buf_put_str(out, chosen);
	*key = key_of(buf_str(out), (evrec_str){ NULL, 0 });
	return !out->failed;
}
