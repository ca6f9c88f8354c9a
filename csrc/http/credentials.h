/*
 * credentials.h - the bearer token and the client certificate in use, and the files that renew them. Belongs to one
 * client's thread.
 */
#ifndef EVREC_CREDENTIALS_H
#define EVREC_CREDENTIALS_H

#include "http/key_files.h"

#include <sys/stat.h>

#pragma GCC visibility push(hidden)

#define TOKEN_FAULT "token: too long, or a space, line break or other such character in it"

struct credentials {
	char *token;             /* NULL: none */
	char *file;              /* NULL: the token stays */
	int folder;              /* of the file, an O_PATH descriptor, or -1 */
	char *certificate, *key; /* PEM, or NULL */
	struct key_files files;  /* the files of these two */
	unsigned version;        /* changes with any credential; 0: there was never one */
	bool reload;             /* read the file again, whatever its state */
	int64_t looked;          /* when the file was last checked; monotonic */
	struct stat seen;        /* the file's status when it was read */
};

/* The credentials at the beginning; each string may be unset. */
struct credentials_options {
	evrec_str token, file, certificate, key, certificate_file, key_file;
};

/* False: no memory; call credentials_free all the same. */
bool credentials_init(struct credentials *c, const struct credentials_options *options);
void credentials_free(struct credentials *c);
/*
 * Reads the file if it has changed, which is checked once a second at most, or if a reload was requested. `now` is
 * monotonic. EVREC_EINVALID: a token is needed, and the file has none; an older token stays in use.
 */
int credentials_refresh(struct credentials *c, int64_t now, evrec_error *err);
/*
 * Reads certificate and key from their files, if these have changed or a reload was requested; *changed: the pair was
 * replaced. EVREC_EINVALID or EVREC_ENOMEM, only after a reload: the files have no valid pair; the older one stays in
 * use.
 */
int credentials_refresh_pair(struct credentials *c, int64_t now, bool *changed, evrec_error *err);
/* The next refresh reads all files, changed or not. */
void credentials_reload(struct credentials *c);
/*
 * Replaces the token, and the certificate and key unless they are unset; the files of a replaced certificate are not
 * read any more. EVREC_EINVALID: one of them is not valid, and the message begins with its name; EVREC_ENOMEM. After an
 * error the old ones stay in use.
 */
int credentials_replace(struct credentials *c, const struct credentials_options *options, evrec_error *err);
/*
 * Keeps a duplicate of `folder`, a descriptor of the file's folder, for a process in a chroot that cannot open the
 * path. Does nothing if no descriptor is left.
 */
void credentials_keep_folder(struct credentials *c, int folder);
/* An O_PATH descriptor of the folder of a token file, the caller's; -1: it cannot be opened. Any thread. */
int token_folder_open(const char *path);
/* The trimmed contents of a token file, freed with mem_free; NULL: unreadable, empty, too long, or not a token. */
char *token_file_read(const char *path, evrec_error *err);
/* Whether the token is printable ASCII without spaces, and so may be sent in a header. */
bool token_valid(evrec_str token);

#pragma GCC visibility pop

#endif
