/*
 * key_files.h - the files of a client certificate and its key, which are rewritten when the certificate is renewed.
 * Belongs to one client's thread.
 */
#ifndef EVREC_KEY_FILES_H
#define EVREC_KEY_FILES_H

#include "base/base.h"

#include <sys/stat.h>

#pragma GCC visibility push(hidden)

/* All zero is no files. */
struct key_files {
	char *certificate, *key; /* the paths, both or none */
	struct stat seen[2];     /* the files' status when they were read */
	int64_t look_at;         /* the earliest time of the next check; monotonic */
	bool reload;             /* read them again, whatever their state */
};

/* Two texts in PEM form, of mem_alloc. */
struct key_pair {
	char *certificate, *key;
};

/* False: no memory; call key_files_free all the same. */
bool key_files_init(struct key_files *f, evrec_str certificate, evrec_str key);
/* Forgets the files. */
void key_files_free(struct key_files *f);
/*
 * Reads the files at both paths. EVREC_EINVALID: one cannot be read, or is not in PEM form, and the message begins with
 * "client_certificate_file: " or "client_key_file: "; EVREC_ENOMEM. After an error there is nothing to free.
 */
int key_pair_read(const char *certificate, const char *key, struct key_pair *pair, evrec_error *err);
/*
 * Reads the files if a reload was requested, or one of them has changed, which is checked once a second at most. `now`
 * is monotonic. `pair` is all NULL if they were not read. Errors as above, only after a reload: changed files may be
 * half written, and are read again a second later.
 */
int key_files_refresh(struct key_files *f, int64_t now, struct key_pair *pair, evrec_error *err);
void key_pair_free(struct key_pair *pair);

#pragma GCC visibility pop

#endif
