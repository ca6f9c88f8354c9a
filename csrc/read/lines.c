#define _GNU_SOURCE /* strerror_r */

#include "read/lines.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "event/event.h"
#include "read/line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SHOWN 120 /* bytes of it in a message */

static bool is_stdin(const char *path)
{
	return strcmp(path, "-") == 0;
}

/* The file's name for people. */
static const char *name_of(const char *path)
{
	return is_stdin(path) ? "standard input" : path;
}

static int shown_bytes(const char *path)
{
	return (int)utf8_floor(str_from(path), PATH_SHOWN);
}

int lines_system_error(const char *path, evrec_error *err)
{
	char reason[64];

	path = name_of(path);
	return error_set(err, EVREC_ESYSTEM, "%.*s: %s", shown_bytes(path), path,
	                 strerror_r(errno, reason, sizeof(reason)));
}

int lines_failed(const char *path, int code, evrec_error *err)
{
	evrec_error why;

	path = name_of(path);
	if (err != NULL && code != EVREC_ENOMEM) {
		why = *err;
		(void)error_set(err, code, "%.*s: %s", shown_bytes(path), path, why.message);
	}
	return code;
}

/*
 * Every SQLite database, such as an event store, begins with this header (https://www.sqlite.org/fileformat2.html,
 * 1.3).
 */
static bool is_database(int fd, const struct stat *st)
{
	static const char magic[16] = "SQLite format 3";
	char begin[sizeof(magic)];

	return S_ISREG(st->st_mode) && line_pread(fd, begin, sizeof(begin), 0) == (ssize_t)sizeof(begin) &&
	       memcmp(begin, magic, sizeof(magic)) == 0;
}

int lines_open(const char *path, struct stat *st, evrec_error *err)
{
	/* Without waiting: opening a pipe would wait for a writer. */
	int fd = is_stdin(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, st) != 0) {
		(void)lines_system_error(path, err);
		lines_close(fd);
		return -1;
	}
	if (S_ISDIR(st->st_mode)) {
		errno = EISDIR;
		(void)lines_system_error(path, err);
		lines_close(fd);
		return -1;
	}
	if (is_database(fd, st)) {
		path = name_of(path);
		error_set(err, EVREC_EINVALID, "%.*s is an event store, not lines of events", shown_bytes(path), path);
		lines_close(fd);
		return -1;
	}
	return fd;
}

void lines_close(int fd)
{
	if (fd >= 0 && fd != STDIN_FILENO) {
		(void)close(fd);
	}
}

/* An event has a reason or an object. Other objects of Kubernetes have a name and a namespace, but neither of the two. */
static bool is_about_something(const evrec_event *event)
{
	const evrec_fields *e = evrec_event_fields(event);
	const evrec_reference *object = &e->regarding;

	return e->reason.len != 0 || object->kind.len != 0 || object->ns.len != 0 || object->name.len != 0 ||
	       object->uid.len != 0;
}

int lines_read_event(const char *path, evrec_str line, uint64_t number, evrec_event **event, evrec_error *err)
{
	enum json_fault fault = JSON_SOUND;

	path = name_of(path);
	*event = line.len == 0 ? NULL : event_from_json_or_fault(line, &fault);
	if (*event != NULL && !is_about_something(*event)) {
		evrec_event_release(*event);
		*event = NULL;
		fault = JSON_NO_EVENT;
	}
	switch (fault) {
	case JSON_NO_MEMORY:
		return error_set(err, EVREC_ENOMEM, "no memory");
	case JSON_NO_EVENT:
		return error_set(err, EVREC_EINVALID, "%.*s: line %llu is no event", shown_bytes(path), path,
		                 (unsigned long long)number);
	case JSON_CUT:
	case JSON_SOUND:
		break;
	}
	return 0;
}
