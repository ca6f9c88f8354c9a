#include "spool/state_file_inner.h"

#include "base/file.h"
#include "spool/private_file.h"
#include "spool/spool_folder.h"

#include <errno.h>
#include <unistd.h>

#define READ_MAX (1u << 30) /* bytes of a file that is read */

static char *join(evrec_str path, const char *suffix)
{
	struct buf name = { 0 };

	buf_put_str(&name, path);
	buf_put_str(&name, str_from(suffix));
	(void)buf_cstr(&name);
	if (name.failed) {
		buf_free(&name);
	}
	return name.data;
}

struct state_file *state_file_new(evrec_str path, uint32_t version)
{
	struct state_file *f = mem_zalloc(sizeof(*f));

	if (f == NULL) {
		return NULL;
	}
	spool_lock_init(&f->lock);
	(void)pthread_mutex_init(&f->telling, NULL);
	f->version = version;
	f->fd = f->new_fd = -1;
	f->due = INT64_MIN;
	f->path = join(path, "");
	f->new_path = join(path, ".new");
	f->lock_path = join(path, ".lock");
	if (f->path == NULL || f->new_path == NULL || f->lock_path == NULL) {
		state_file_free(f);
		return NULL;
	}
	return f;
}

bool state_file_set_folder(struct state_file *f, evrec_str folder)
{
	f->folder = str_dup(folder);
	return f->folder != NULL;
}

void state_file_close_fd(int *fd)
{
	if (*fd >= 0) {
		(void)close(*fd);
		*fd = -1;
	}
}

void state_file_drop_new(struct state_file *f)
{
	if (f->new_fd >= 0) {
		state_file_close_fd(&f->new_fd);
		(void)unlink(f->new_path);
	}
}

void state_file_close(struct state_file *f)
{
	state_file_drop_new(f);
	state_file_close_fd(&f->fd);
	spool_lock_release(&f->lock);
	f->awaits_lock = false;
}

void state_file_free(struct state_file *f)
{
	if (f == NULL) {
		return;
	}
	state_file_close(f);
	if (f->source != NULL) {
		f->source->free(f->ctx);
	}
	(void)pthread_mutex_destroy(&f->telling);
	buf_free(&f->out);
	buf_free(&f->ahead.contents);
	mem_free(f->path);
	mem_free(f->new_path);
	mem_free(f->lock_path);
	mem_free(f->folder);
	mem_free(f);
}

void state_file_use(struct state_file *f, const struct state_source *source, void *ctx)
{
	f->source = source;
	f->ctx = ctx;
}

/* ---- reading ---- */

static enum state_opened refuse(const struct state_file *f, const char *reason, evrec_error *err)
{
	private_file_set_error(err, f->path, reason);
	return STATE_REFUSED;
}

static enum state_opened ignore(const struct state_file *f, const char *reason, evrec_error *err)
{
	private_file_set_error(err, f->path, reason);
	return STATE_IGNORED;
}

static enum state_opened check_head(const struct state_file *f, const struct buf *contents, evrec_str *records,
                                    evrec_error *err)
{
	struct head head;

	if (contents->len > READ_MAX) {
		return ignore(f, ": the state has more than 1 GiB, and is not used", err);
	}
	if (contents->len == 0) {
		return STATE_OPENED;
	}
	/* Leaves other files alone, as the path may be a mistake. */
	if (memcmp(contents->data, MAGIC, contents->len < MAGIC_LEN ? contents->len : MAGIC_LEN) != 0) {
		return refuse(f, " is not a state file of evrec", err);
	}
	if (contents->len < sizeof(head)) {
		return ignore(f, " is damaged: its head is cut off", err);
	}
	memcpy(&head, contents->data, sizeof(head));
	if (head.version != f->version) {
		return ignore(f, ": a state of another version of evrec, which is not used", err);
	}
	*records = (evrec_str){ contents->data + sizeof(head), contents->len - sizeof(head) };
	return STATE_OPENED;
}

static enum state_opened read_file(struct state_file *f, size_t max, struct buf *contents, evrec_str *records,
                                   evrec_error *err)
{
	int fd = private_file_open(f->path, err), error;
	bool ok;

	if (fd < 0) {
		return STATE_REFUSED;
	}
	ok = file_read_from(fd, max, contents);
	error = errno;
	(void)close(fd);
	if (!ok) {
		private_file_set_errno(err, f->path, error);
		return error == ENOMEM ? STATE_IGNORED : STATE_REFUSED;
	}
	return check_head(f, contents, records, err);
}

enum state_opened state_file_read(struct state_file *f, size_t max, struct buf *contents, evrec_str *records,
                                  evrec_error *err)
{
	enum state_opened opened;

	*records = (evrec_str){ NULL, 0 };
	if ((f->folder != NULL && !spool_folder_prepare(f->folder, err)) || !private_file_check(f->path, err)) {
		return STATE_REFUSED;
	}
	switch (spool_lock_take(&f->lock, f->lock_path, err)) {
	case SPOOL_LOCK_TAKEN:
		break;
	case SPOOL_LOCK_IN_USE:
		private_file_set_error(err, f->path, " is in use by another process or sink");
		return STATE_IN_USE;
	default:
		return STATE_REFUSED;
	}
	opened = read_file(f, max, contents, records, err);
	if (opened == STATE_REFUSED) {
		spool_lock_release(&f->lock);
	}
	return opened;
}

void state_file_open_ahead(struct state_file *f)
{
	f->ahead.opened = state_file_read(f, READ_MAX, &f->ahead.contents, &f->ahead.records, &f->ahead.err);
	f->ahead.done = true;
}

enum state_opened state_file_open(struct state_file *f, struct buf *contents, evrec_str *records, evrec_error *err)
{
	enum state_opened opened;

	if (!f->ahead.done) {
		state_file_open_ahead(f);
	}
	opened = f->ahead.opened;
	*contents = f->ahead.contents;
	*records = f->ahead.records;
	*err = f->ahead.err;
	f->ahead.done = false;
	f->ahead.contents = (struct buf){ .data = NULL };
	f->awaits_lock = opened == STATE_IN_USE;
	atomic_store(&f->useless, f->awaits_lock);
	if (f->awaits_lock) {
		f->failure = *err; /* the caller reports it, once */
	}
	return opened;
}
