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
	struct key_files files;  /* of these two */
	unsigned version;        /* of all of these; 0: there was never any */
	bool reload;             /* read the file again, whatever its state */
	int64_t looked;          /* when the file was looked at; monotonic */
	struct stat seen;        /* the file as it was read */
};

/* The credentials at the beginning; each string may be unset. */
struct credentials_options {
	evrec_str token, file, certificate, key, certificate_file, key_file;
};

/* False: no memory; what was made is freed by credentials_free. */
bool credentials_init(struct credentials *c, const struct credentials_options *options);
void credentials_free(struct credentials *c);
/*
 * Reads the file where it has changed, which is looked for once a second at most, or a reload was asked for. `now` is
 * monotonic. EVREC_EINVALID where a token is needed and the file has none to give; an older token stays in use.
 */
int credentials_refresh(struct credentials *c, int64_t now, evrec_error *err);
/*
 * Takes the certificate and key that their files hold, if these have changed or a reload was asked for; *changed: they are
 * others. EVREC_EINVALID or EVREC_ENOMEM after a reload if there are none; older ones stay in use.
 */
int credentials_refresh_pair(struct credentials *c, int64_t now, bool *changed, evrec_error *err);
/* The next refresh reads all files, changed or not. */
void credentials_reload(struct credentials *c);
/*
 * Replaces the token, and the certificate and key unless they are unset; the files of a replaced certificate are not
 * looked at any more. EVREC_EINVALID: one of them is not valid, and the message begins with its name; EVREC_ENOMEM. After
 * an error the old ones stay in use.
 */
int credentials_replace(struct credentials *c, const struct credentials_options *options, evrec_error *err);
/*
 * Keeps a descriptor of the file's folder, a duplicate of `folder`, for a process that cannot open the path any more, as it
 * went into a chroot. Does nothing if there is no descriptor left.
 */
void credentials_keep_folder(struct credentials *c, int folder);
/* An O_PATH descriptor of the folder of a token file, the caller's; -1: it cannot be opened. Any thread. */
int token_folder_open(const char *path);
/* The trimmed contents of a token file, freed with mem_free; NULL: unreadable, empty, too long, or not a token. */
char *token_file_read(const char *path, evrec_error *err);
/* Printable ASCII without spaces: what may stand in a header. */
bool token_valid(evrec_str token);

#pragma GCC visibility pop

#endif
