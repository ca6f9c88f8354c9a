/*
 * explained.h - a worker's question and the owner's answer, as bytes: which events of an object (evrec_reference) the
 * owner's sinks have suppressed (evrec_suppressed). Pure; any thread.
 *
 * An answer is, for each sink, its number and name, followed by its events; then explained_put_end.
 */
#ifndef EVREC_EXPLAINED_H
#define EVREC_EXPLAINED_H

#include "share/bytes.h"

#pragma GCC visibility push(hidden)

/* NULL: all objects. Only the fields by which objects are compared. */
void explained_put_object(struct buf *out, const evrec_reference *object);
/* 0, with *any set if the question is about all objects; or EVREC_EINVALID. The strings of *object are borrowed. */
int explained_read_object(evrec_str bytes, evrec_reference *object, bool *any, evrec_error *err);

void explained_put_sink(struct buf *out, size_t number, evrec_str name);
void explained_put(struct buf *out, const evrec_suppressed *suppressed);
void explained_put_end(struct buf *out);

enum explained_type { EXPLAINED_END, EXPLAINED_SINK, EXPLAINED_EVENT };
struct explained {
	enum explained_type type;
	size_t number; /* sink */
	evrec_str name;
	evrec_suppressed suppressed; /* event */
};
/*
 * Reads the next part of an answer. Strings are borrowed from `in`, and are not checked: a key may have any bytes. 0, or
 * EVREC_EINVALID: the bytes are no answer.
 */
int explained_next(struct bytes *in, struct explained *part, evrec_error *err);

#pragma GCC visibility pop

#endif
