#include "share/explained.h"

/* The fields by which objects are compared. NULL: there is no i-th. */
static evrec_str *field_of(evrec_reference *r, size_t i)
{
	evrec_str *const fields[] = { &r->kind, &r->ns, &r->name, &r->uid, &r->api_version };

	return i < sizeof(fields) / sizeof(fields[0]) ? fields[i] : NULL;
}

/* The strings of an event besides those of its object. NULL: there is no i-th. */
static evrec_str *string_of(evrec_suppressed *s, size_t i)
{
	evrec_str *const strings[] = {
		&s->component, &s->host,    &s->controller,    &s->instance, &s->type,
		&s->reason,    &s->message, &s->aggregate_key, &s->spam_key,
	};

	return i < sizeof(strings) / sizeof(strings[0]) ? strings[i] : NULL;
}

/* ---- writing ---- */

static void put_reference(struct buf *out, evrec_reference r)
{
	const evrec_str *field;

	for (size_t i = 0; (field = field_of(&r, i)) != NULL; i++) {
		bytes_put_str(out, *field);
	}
}

void explained_put_object(struct buf *out, const evrec_reference *object)
{
	bytes_put_varint(out, object == NULL);
	if (object != NULL) {
		put_reference(out, *object);
	}
}

void explained_put_sink(struct buf *out, size_t number, evrec_str name)
{
	bytes_put_varint(out, EXPLAINED_SINK);
	bytes_put_varint(out, number);
	bytes_put_str(out, name);
}

void explained_put(struct buf *out, const evrec_suppressed *suppressed)
{
	evrec_suppressed s = *suppressed;
	const evrec_str *string;

	bytes_put_varint(out, EXPLAINED_EVENT);
	bytes_put_varint(out, s.stage);
	bytes_put_varint(out, s.cause);
	bytes_put_varint(out, s.aggregate_kind);
	bytes_put_varint(out, s.spam_kind);
	put_reference(out, s.regarding);
	for (size_t i = 0; (string = string_of(&s, i)) != NULL; i++) {
		bytes_put_str(out, *string);
	}
	buf_put(out, &s.count, sizeof(s.count));
	buf_put(out, &s.first, sizeof(s.first));
	buf_put(out, &s.last, sizeof(s.last));
	buf_put(out, &s.tokens, sizeof(s.tokens));
	buf_put(out, &s.next_token, sizeof(s.next_token));
}

void explained_put_end(struct buf *out)
{
	bytes_put_varint(out, EXPLAINED_END);
}

/* ---- reading ---- */

static void get_reference(struct bytes *in, evrec_reference *r)
{
	evrec_str *field;

	for (size_t i = 0; (field = field_of(r, i)) != NULL; i++) {
		*field = bytes_str(in);
	}
}

int explained_read_object(evrec_str bytes, evrec_reference *object, bool *any, evrec_error *err)
{
	struct bytes in = bytes_of(bytes);
	const uint64_t all = bytes_varint(&in);

	*object = (evrec_reference){ .kind = { NULL, 0 } };
	*any = all == 1;
	if (all == 0) {
		get_reference(&in, object);
	}
	return in.bad || all > 1 || in.left != 0 ? error_set(err, EVREC_EINVALID, "the peer sent no valid question")
	                                         : 0;
}

/* A number from 0 to `max`. */
static unsigned get_small(struct bytes *in, unsigned max)
{
	const uint64_t value = bytes_varint(in);

	in->bad = in->bad || value > max;
	return in->bad ? 0 : (unsigned)value;
}

static void get_event(struct bytes *in, evrec_suppressed *s)
{
	evrec_str *string;

	*s = (evrec_suppressed){ .count = 0 };
	s->stage = (enum evrec_stage)get_small(in, EVREC_STAGES - 1);
	s->cause = (enum evrec_cause)get_small(in, EVREC_CAUSES);
	s->aggregate_kind = (enum evrec_key)get_small(in, EVREC_KEY_UNKNOWN);
	s->spam_kind = (enum evrec_key)get_small(in, EVREC_KEY_UNKNOWN);
	get_reference(in, &s->regarding);
	for (size_t i = 0; (string = string_of(s, i)) != NULL; i++) {
		*string = bytes_str(in);
	}
	bytes_get(in, &s->count, sizeof(s->count));
	bytes_get(in, &s->first, sizeof(s->first));
	bytes_get(in, &s->last, sizeof(s->last));
	bytes_get(in, &s->tokens, sizeof(s->tokens));
	bytes_get(in, &s->next_token, sizeof(s->next_token));
	/* Only a drop has a cause. */
	in->bad = in->bad || (s->stage == EVREC_STAGE_DROPPED) == (s->cause == EVREC_CAUSES);
}

int explained_next(struct bytes *in, struct explained *part, evrec_error *err)
{
	part->type = (enum explained_type)get_small(in, EXPLAINED_EVENT);
	if (part->type == EXPLAINED_SINK) {
		part->number = (size_t)bytes_varint(in);
		part->name = bytes_str(in);
	} else if (part->type == EXPLAINED_EVENT) {
		get_event(in, &part->suppressed);
	}
	return in->bad || (part->type == EXPLAINED_END && in->left != 0)
	               ? error_set(err, EVREC_EINVALID, "the peer sent no valid answer")
	               : 0;
}
