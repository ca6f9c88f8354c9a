#define _GNU_SOURCE /* strerror_r */

#include "http/key_files.h"

#include "base/file.h"
#include "http/pem.h"

#include <errno.h>

#define FILE_MAX ((size_t)1024 * 1024)
#define LOOK_EVERY EVREC_SECOND

bool key_files_init(struct key_files *f, evrec_str certificate, evrec_str key)
{
	*f = (struct key_files){ .look_at = INT64_MIN };
	return str_copy(&f->certificate, certificate) && str_copy(&f->key, key);
}

void key_files_free(struct key_files *f)
{
	mem_free(f->certificate);
	mem_free(f->key);
	*f = (struct key_files){ 0 };
}

void key_pair_free(struct key_pair *pair)
{
	mem_free(pair->certificate);
	mem_free(pair->key);
	*pair = (struct key_pair){ NULL, NULL };
}

static int read_pem(const char *option, const char *path, const char *(*fault_of)(evrec_str pem), char **pem,
                    evrec_error *err)
{
	struct buf text = { 0 };
	const char *fault;
	char reason[64];
	int code = 0;

	if (!file_read(path, FILE_MAX, &text)) {
		code = error_set(err, text.failed ? EVREC_ENOMEM : EVREC_EINVALID, "%s: %s: %s", option, path,
		                 strerror_r(errno, reason, sizeof(reason)));
	} else if ((fault = text.len > FILE_MAX ? "is too large" : fault_of(buf_str(&text))) != NULL) {
		code = error_set(err, EVREC_EINVALID, "%s: %s: %s", option, path, fault);
	} else if ((*pem = str_dup(buf_str(&text))) == NULL) {
		code = error_set(err, EVREC_ENOMEM, "%s: no memory", option);
	}
	buf_free(&text);
	return code;
}

int key_pair_read(const char *certificate, const char *key, struct key_pair *pair, evrec_error *err)
{
	int code;

	*pair = (struct key_pair){ NULL, NULL };
	code = read_pem("client_certificate_file", certificate, pem_certificate_fault, &pair->certificate, err);
	if (code == 0) {
		code = read_pem("client_key_file", key, pem_key_fault, &pair->key, err);
	}
	if (code != 0) {
		key_pair_free(pair);
	}
	return code;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int key_files_refresh(struct key_files *f, int64_t now, struct key_pair *pair, evrec_error *err)
{
	const bool reload = f->reload;
	struct stat seen[2] = { 0 };
	bool are_there;
	int code;

	*pair = (struct key_pair){ NULL, NULL };
	if (f->certificate == NULL || (!reload && now < f->look_at)) {
		return 0;
	}
	f->reload = false;
	f->look_at = time_after(now, LOOK_EVERY);
	/* Before the files are read, so that the next check sees a later change. */
	are_there = stat(f->certificate, &seen[0]) == 0 && stat(f->key, &seen[1]) == 0;
	if (!reload && (!are_there || (is_same(&seen[0], &f->seen[0]) && is_same(&seen[1], &f->seen[1])))) {
		return 0;
	}
	code = key_pair_read(f->certificate, f->key, pair, err);
	if (code != 0) {
		return reload ? code : 0;
	}
	memcpy(f->seen, seen, sizeof(seen));
	return 0;
}
