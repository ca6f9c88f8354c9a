/*
 * selector.h - field selectors of the Kubernetes API for core/v1 events, with the syntax of apimachinery's
 * fields.ParseSelector and the fields of the API server's ToSelectableFields. Immutable once it is parsed: any thread.
 */
#ifndef EVREC_READ_SELECTOR_H
#define EVREC_READ_SELECTOR_H

#include "base/base.h"

#pragma GCC visibility push(hidden)

/* `field=value`, `field==value` or `field!=value`. */
struct selector_term {
	const struct selector_field *field; /* static */
	bool equal;                         /* or unequal */
	char *value;                        /* without escapes; may be empty */
};

/* Terms that must all hold. All zero: none. */
struct selector {
	struct selector_term *terms;
	size_t len;
};

/*
 * Reads "type!=Normal,reason=Killing". In values `\\`, `\,` and `\=` are escapes of the second character. 0;
 * EVREC_EINVALID: an unknown field, or no selector; EVREC_ENOMEM. After an error too, selector_free.
 */
int selector_parse(struct selector *selector, evrec_str text, evrec_error *err);
void selector_free(struct selector *selector);
bool selector_matches(const struct selector *selector, const evrec_fields *event);
/* Appends a term to the text of a selector, after a comma unless the text is empty. The caller checks out->failed. */
void selector_put_term(struct buf *out, const char *field, bool equal, evrec_str value);
/* Appends all terms likewise. */
void selector_put(const struct selector *selector, struct buf *out);

#pragma GCC visibility pop

#endif
