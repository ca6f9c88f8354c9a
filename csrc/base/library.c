#include "base/library.h"

#include "base/fork_lock.h"

#include <dlfcn.h>
#include <pthread.h>

static bool fail(const struct library *library, const char *reason, evrec_error *err)
{
	(void)error_set(err, EVREC_ESYSTEM, "%s cannot be loaded: %s", library->title, reason);
	return false;
}

/* The reason of dlopen or dlsym; valid until the next call of one. */
static const char *reason(void)
{
	const char *text = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc's is of the thread */

	return text != NULL ? text : "unknown";
}

/* If none can be opened, the message has the reason for the first name, which is the usual one. */
static void *open_one(const struct library *library, evrec_error *err)
{
	void *handle = dlopen(library->files[0], RTLD_NOW | RTLD_LOCAL);
	evrec_error first;

	if (handle == NULL) {
		(void)fail(library, reason(), &first);
	}
	for (const char *const *file = library->files + 1; *file != NULL && handle == NULL; file++) {
		handle = dlopen(*file, RTLD_NOW | RTLD_LOCAL);
	}
	if (handle == NULL && err != NULL) {
		*err = first;
	}
	return handle;
}

static bool load(struct library *library, evrec_error *err)
{
	void *handle = open_one(library, err);

	if (handle == NULL) {
		return false;
	}
	for (size_t i = 0; i < library->n; i++) {
		const struct library_function *function = &library->functions[i];

		*function->to = dlsym(handle, function->name);
		if (*function->to == NULL && !function->optional) {
			(void)fail(library, reason(), err);
			(void)dlclose(handle);
			return false;
		}
	}
	atomic_store(&library->is_loaded, true);
	return true;
}

bool library_load(struct library *library, evrec_error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool ok = atomic_load(&library->is_loaded);

	if (!ok) {
		fork_lock_enter(); /* before the mutex, so that no forked child finds that locked */
		(void)pthread_mutex_lock(&lock);
		ok = atomic_load(&library->is_loaded) || load(library, err);
		(void)pthread_mutex_unlock(&lock);
		fork_lock_leave();
	}
	return ok;
}
