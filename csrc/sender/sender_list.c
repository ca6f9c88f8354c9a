#include "base/clock.h"
#include "base/wait.h"
#include "sender/sender_inner.h"

#define DISK_LOOK (EVREC_SECOND / 20)

struct senders senders;

static atomic_uint generation;

int64_t sender_real_now(void)
{
	return clock_monotonic(evrec_clock_real());
}

static void make_empty(void)
{
	(void)pthread_mutex_init(&senders.lock, NULL);
	wait_init(&senders.changed);
	senders.head = NULL;
	senders.guests = NULL;
	atomic_store(&senders.orphans, 0);
	senders.away = 0;
	senders.ending = NOT_ENDED;
	senders.has_leaver = false;
}

static void forked(void)
{
	atomic_fetch_add(&generation, 1);
	make_empty();
}

static AT_LOAD(LOAD_INNER_LOCKS) void init(void)
{
	make_empty();
	(void)pthread_atfork(NULL, NULL, forked);
}

HOT unsigned sender_fork_generation(void)
{
	return atomic_load(&generation);
}

bool sender_is_parents(const struct sender *s)
{
	return s->generation != atomic_load(&generation);
}

void senders_add(struct sender *s)
{
	s->prev = NULL;
	s->next = senders.head;
	if (senders.head != NULL) {
		senders.head->prev = s;
	}
	senders.head = s;
	s->listed = true;
}

void senders_remove(struct sender *s)
{
	if (!s->listed) {
		return;
	}
	if (s->prev == NULL) {
		senders.head = s->next;
	} else {
		s->prev->next = s->next;
	}
	if (s->next != NULL) {
		s->next->prev = s->prev;
	}
	s->listed = false;
}

void senders_list_guest(struct sender_guest *guest)
{
	guest->prev = NULL;
	guest->next = senders.guests;
	if (guest->next != NULL) {
		guest->next->prev = guest;
	}
	senders.guests = guest;
	guest->listed = true;
}

static void unlist_guest(struct sender_guest *guest)
{
	if (guest->prev == NULL) {
		senders.guests = guest->next;
	} else {
		guest->prev->next = guest->next;
	}
	if (guest->next != NULL) {
		guest->next->prev = guest->prev;
	}
	guest->listed = false;
}

void senders_remove_guest(struct sender_guest *guest)
{
	if (!guest->listed) {
		return;
	}
	(void)pthread_mutex_lock(&senders.lock);
	while (guest->busy) {
		(void)pthread_cond_wait(&senders.changed, &senders.lock);
	}
	unlist_guest(guest);
	(void)pthread_mutex_unlock(&senders.lock);
}

void senders_adopt_guest(struct sender_guest *guest, bool (*go_on)(void *ctx), void (*let_go)(void *ctx))
{
	(void)pthread_mutex_lock(&senders.lock);
	guest->go_on = go_on;
	guest->let_go = let_go;
	atomic_fetch_add(&senders.orphans, 1);
	(void)pthread_mutex_unlock(&senders.lock);
}

bool senders_run_guest(struct sender_guest *guest)
{
	bool more;

	guest->busy = true;
	(void)pthread_mutex_unlock(&senders.lock);
	more = guest->go_on(guest->ctx);
	(void)pthread_mutex_lock(&senders.lock);
	guest->busy = false;
	(void)pthread_cond_broadcast(&senders.changed);
	return more;
}

/*
 * With the lock held: runs the guests without an owner. Returns the first one with nothing left; NULL: there is none.
 */
static struct sender_guest *run_orphans(void)
{
	for (struct sender_guest *guest = senders.guests; guest != NULL; guest = guest->next) {
		if (guest->let_go != NULL && !guest->busy && !senders_run_guest(guest)) {
			return guest;
		}
	}
	return NULL;
}

void senders_poll_guests(void)
{
	struct sender_guest *over;

	if (atomic_load(&senders.orphans) == 0) {
		return;
	}
	(void)pthread_mutex_lock(&senders.lock);
	over = senders.ending == NOT_ENDED ? run_orphans() : NULL;
	if (over != NULL) {
		unlist_guest(over);
		atomic_fetch_sub(&senders.orphans, 1);
	}
	(void)pthread_mutex_unlock(&senders.lock);
	if (over != NULL) {
		over->let_go(over->ctx);
	}
}

bool senders_leave(pthread_t *before)
{
	bool had_leaver = senders.has_leaver;

	*before = senders.leaver;
	senders.leaver = pthread_self();
	senders.has_leaver = true;
	return had_leaver;
}

void senders_join_leaver(void)
{
	if (senders.has_leaver) {
		senders.has_leaver = false;
		(void)pthread_join(senders.leaver, NULL);
	}
}

bool senders_wait(int64_t deadline)
{
	return wait_until(&senders.changed, &senders.lock, deadline);
}

bool senders_wait_for_disk(void)
{
	(void)senders_wait(sender_real_now() + DISK_LOOK);
	return true;
}
