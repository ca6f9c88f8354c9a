/*
 * credentials.h - the bearer token in use, and the file that renews it. Belongs to one transport's thread.
 */
#ifndef EVREC_CREDENTIALS_H
#define EVREC_CREDENTIALS_H

#include "base/base.h"

#include <sys/stat.h>

#pragma GCC visibility push(hidden)

struct credentials {
	char *token;      /* NULL: none */
	char *file;       /* NULL: the token stays */
	unsigned version; /* of the token; 0 is none */
	bool reload;      /* read the file again, whatever its state */
	int64_t looked;   /* when the file was looked at; monotonic */
	struct stat seen; /* the file as it was read */
};

/* False: no memory; what was made is freed by credentials_free. */
bool credentials_init(struct credentials *c, evrec_str token, evrec_str file);
void credentials_free(struct credentials *c);
/*
 * Reads the file where it has changed, which is looked for once a second at most, or a reload was asked for. `now` is
 * monotonic. EVREC_EINVALID where a token is needed and the file has none to give; an older token stays in use.
 */
int credentials_refresh(struct credentials *c, int64_t now, evrec_error *err);
/* Printable ASCII without spaces: what may stand in a header. */
bool token_valid(evrec_str token);

#pragma GCC visibility pop

#endif
