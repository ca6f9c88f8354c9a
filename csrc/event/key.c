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

/* Replaces what `out` holds by a copy of `head`, a tag, and three parts. */
static void key_make(struct buf *out, evrec_str head, char tag, evrec_str a, evrec_str b, evrec_str c)
{
	char *p;

	buf_clear(out);
	if (!buf_reserve(out, head.len + 1 + 3 * sizeof(part_len) + a.len + b.len + c.len)) {
		return;
	}
	p = out->data;
	if (head.data != p) {
		memcpy(p, head.data, head.len);
	}
	p += head.len;
	*p++ = tag;
	p = part(p, a);
	p = part(p, b);
	p = part(p, c);
	out->len = (size_t)(p - out->data);
}

bool keys_make(struct keys *keys, const evrec_fields *event)
{
	const evrec_reference *r = &event->regarding;
	const evrec_str parts[] = { event->component, event->host, r->kind,        r->ns,
		                    r->name,          r->uid,      r->api_version, event->type };
	const size_t n = sizeof(parts) / sizeof(parts[0]);
	struct buf *head = &keys->aggregate;
	size_t i, len = n * sizeof(part_len);
	char *p;

	for (i = 0; i < n; i++) {
		len += parts[i].len;
	}
	buf_clear(head);
	/* The tail as well, so that key_make does not move what it is given. */
	if (!buf_reserve(head, len + 1 + 3 * sizeof(part_len) + event->reason.len + event->controller.len +
	                               event->instance.len)) {
		return false;
	}
	p = head->data;
	for (i = 0; i < n; i++) {
		p = part(p, parts[i]);
	}
	keys->spam_len = len;
	key_make(&keys->event, (evrec_str){ head->data, len }, 'e', r->field_path, event->reason, event->note);
	key_make(head, (evrec_str){ head->data, len }, 'a', event->reason, event->controller, event->instance);
	return !keys->event.failed && !head->failed;
}

void keys_free(struct keys *keys)
{
	buf_free(&keys->aggregate);
	buf_free(&keys->event);
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

bool key_custom(struct buf *out, evrec_str chosen)
{
	static const part_len no_part_is_so_long = UINT32_MAX;

	buf_clear(out);
	buf_put(out, &no_part_is_so_long, sizeof(no_part_is_so_long));
	buf_put_str(out, chosen);
	return !out->failed;
}
