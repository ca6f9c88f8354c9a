#include "store/store_inner.h"

#include "event/event.h"

#define WORDS_MAX 8192
#define FACETS_MAX 8192
#define OBJECTS_MAX 16384

static const char *const sources[IDS_STATEMENTS] = {
	[IDS_FIND_WORD] = "SELECT id FROM words WHERE word = ?1",
	[IDS_ADD_WORD] = "INSERT INTO words (word, uses) VALUES (?1, 0)",
	[IDS_USE_WORD] = "UPDATE words SET uses = uses + ?2 WHERE id = ?1",
	[IDS_FORGET_WORD] = "DELETE FROM words WHERE id = ?1 AND uses <= 0",
	[IDS_FIND_FACET] = "SELECT id FROM facets WHERE ns = ?1 AND type = ?2 AND reason = ?3 AND action = ?4 AND "
			   "controller = ?5 AND instance = ?6 AND kind = ?7 AND related_kind = ?8",
	[IDS_ADD_FACET] = "INSERT INTO facets (ns, type, reason, action, controller, instance, kind, related_kind) "
			  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[IDS_UNUSED_FACET] = "SELECT ns, type, reason, action, controller, instance, kind, related_kind FROM facets "
			     "WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM events WHERE facet = ?1)",
	[IDS_FORGET_FACET] = "DELETE FROM facets WHERE id = ?1",
	[IDS_FIND_OBJECT] = "SELECT id FROM objects WHERE name = ?1 AND ns = ?2 AND kind = ?3 AND api_version = ?4 AND "
			    "uid IS ?5",
	[IDS_ADD_OBJECT] = "INSERT INTO objects (name, ns, kind, api_version, uid) VALUES (?1, ?2, ?3, ?4, ?5)",
	[IDS_UNUSED_OBJECT] = "SELECT kind, api_version, ns FROM objects WHERE id = ?1 AND "
			      "NOT EXISTS (SELECT 1 FROM events WHERE regarding = ?1) AND "
			      "NOT EXISTS (SELECT 1 FROM events WHERE related = ?1)",
	[IDS_FORGET_OBJECT] = "DELETE FROM objects WHERE id = ?1",
	[IDS_REMOVALS] = "SELECT removals FROM state WHERE id = 1",
	[IDS_REMOVE] = "UPDATE state SET removals = removals + 1 WHERE id = 1",
};

static const struct lru_type numbers = { .value_size = sizeof(int64_t) };

static void drop_caches(struct ids *ids)
{
	lru_free(ids->words);
	lru_free(ids->facets);
	lru_free(ids->objects);
	ids->words = ids->facets = ids->objects = NULL;
}

void ids_clear(struct ids *ids)
{
	drop_caches(ids);
	ids->removed = false;
}

void ids_close(struct ids *ids)
{
	ids_clear(ids);
	buf_free(&ids->key);
	store_db_finalize_all(ids->statements, IDS_STATEMENTS);
}

bool ids_open(struct ids *ids, struct store_db *d, evrec_error *err)
{
	ids->removals = -1;
	return store_db_prepare_all(d, sources, ids->statements, IDS_STATEMENTS, err);
}

static bool fail_for_memory(evrec_error *err)
{
	(void)error_set(err, EVREC_ENOMEM, "no memory");
	return false;
}

/* Makes the caches unless they are there. False: no memory. */
static bool make_caches(struct ids *ids, evrec_error *err)
{
	if (ids->words != NULL) {
		return true;
	}
	ids->words = lru_new(&numbers, WORDS_MAX);
	ids->facets = lru_new(&numbers, FACETS_MAX);
	ids->objects = lru_new(&numbers, OBJECTS_MAX);
	if (ids->words == NULL || ids->facets == NULL || ids->objects == NULL) {
		drop_caches(ids);
		return fail_for_memory(err);
	}
	return true;
}

bool ids_begin(struct ids *ids, struct store_db *d, evrec_error *err)
{
	sqlite3_stmt *statement = ids->statements[IDS_REMOVALS];
	const int row = store_db_step(d, statement, err);
	const int64_t removals = row == 1 ? sqlite3_column_int64(statement, 0) : -1;

	(void)sqlite3_reset(statement);
	if (row < 0) {
		return false;
	}
	if (removals != ids->removals) {
		ids_clear(ids);
		ids->removals = removals;
	}
	return true;
}

/* The number in the first column, or 0 if there is no row. Resets the statement. False: see *err. */
static bool find(struct store_db *d, sqlite3_stmt *statement, int64_t *id, evrec_error *err)
{
	const int row = store_db_step(d, statement, err);

	*id = row == 1 ? sqlite3_column_int64(statement, 0) : 0;
	(void)sqlite3_reset(statement);
	return row >= 0;
}

static bool add(struct store_db *d, sqlite3_stmt *statement, int64_t *id, evrec_error *err)
{
	if (!store_db_finish(d, statement, err)) {
		return false;
	}
	*id = sqlite3_last_insert_rowid(d->db);
	return true;
}

/* ---- words ---- */

/* The number that the cache has for the key, 0 if none; *cached is where it goes. False: no memory. */
static bool look_up(struct lru *lru, evrec_str text, int64_t **cached, evrec_error *err)
{
	struct key key = key_of(text, EVREC_STR(""));
	bool fresh;

	*cached = lru_put(lru, &key, &fresh);
	return *cached != NULL || fail_for_memory(err);
}

static bool id_of_word(struct ids *ids, struct store_db *d, evrec_str word, int64_t *id, evrec_error *err)
{
	sqlite3_stmt *find_word = ids->statements[IDS_FIND_WORD], *add_word = ids->statements[IDS_ADD_WORD];
	int64_t *cached;

	*id = 0;
	if (word.len == 0) {
		return true;
	}
	if (!look_up(ids->words, word, &cached, err)) {
		return false;
	}
	if (*cached == 0) {
		store_bind_str(find_word, 1, word);
		store_bind_str(add_word, 1, word);
		if (!find(d, find_word, cached, err) || (*cached == 0 && !add(d, add_word, cached, err))) {
			return false;
		}
	}
	*id = *cached;
	return true;
}

/* A facet or an object begins or ends to use these words. */
static bool use_words(struct ids *ids, struct store_db *d, const int64_t *words, size_t n, int64_t change,
                      evrec_error *err)
{
	sqlite3_stmt *use = ids->statements[IDS_USE_WORD], *forget = ids->statements[IDS_FORGET_WORD];

	for (size_t i = 0; i < n; i++) {
		if (words[i] == 0) {
			continue;
		}
		(void)sqlite3_bind_int64(use, 1, words[i]);
		(void)sqlite3_bind_int64(use, 2, change);
		(void)sqlite3_bind_int64(forget, 1, words[i]);
		if (!store_db_finish(d, use, err) || (change < 0 && !store_db_finish(d, forget, err))) {
			return false;
		}
	}
	return true;
}

static void bind_numbers(sqlite3_stmt *statement, int at, const int64_t *numbers_to_bind, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		(void)sqlite3_bind_int64(statement, at + (int)i, numbers_to_bind[i]);
	}
}

static void read_numbers(sqlite3_stmt *statement, int64_t *into, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		into[i] = sqlite3_column_int64(statement, (int)i);
	}
}

/* Statements that remove a facet or an object once no event has it. */
struct release {
	enum ids_statement unused, forget; /* the first one gives its words */
	size_t words;
};
static const struct release facet_release = { IDS_UNUSED_FACET, IDS_FORGET_FACET, FACETS };
static const struct release object_release = { IDS_UNUSED_OBJECT, IDS_FORGET_OBJECT, 3 };

static bool release(struct ids *ids, struct store_db *d, const struct release *r, int64_t id, evrec_error *err)
{
	sqlite3_stmt *unused = ids->statements[r->unused], *forget = ids->statements[r->forget];
	int64_t words[FACETS];
	int row;

	(void)sqlite3_bind_int64(unused, 1, id);
	row = store_db_step(d, unused, err);
	if (row == 1) {
		read_numbers(unused, words, r->words);
	}
	(void)sqlite3_reset(unused);
	if (row != 1) {
		return row == 0;
	}
	/* The next event of this transaction may have the same words. */
	ids->removed = true;
	drop_caches(ids);
	(void)sqlite3_bind_int64(forget, 1, id);
	return store_db_finish(d, forget, err) && use_words(ids, d, words, r->words, -1, err);
}

bool ids_commit(struct ids *ids, struct store_db *d, evrec_error *err)
{
	bool ok = true;

	if (ids->removed) {
		ok = store_db_finish(d, ids->statements[IDS_REMOVE], err);
		ids->removed = false;
		ids->removals++;
	}
	return ok;
}

/* ---- facets ---- */

static bool id_of_facet(struct ids *ids, struct store_db *d, const int64_t words[FACETS], int64_t *id, evrec_error *err)
{
	const evrec_str key = { (const char *)words, FACETS * sizeof(*words) };
	int64_t *cached;

	if (!look_up(ids->facets, key, &cached, err)) {
		return false;
	}
	if (*cached == 0) {
		bind_numbers(ids->statements[IDS_FIND_FACET], 1, words, FACETS);
		if (!find(d, ids->statements[IDS_FIND_FACET], cached, err)) {
			return false;
		}
	}
	if (*cached == 0) {
		bind_numbers(ids->statements[IDS_ADD_FACET], 1, words, FACETS);
		if (!add(d, ids->statements[IDS_ADD_FACET], cached, err) || !use_words(ids, d, words, FACETS, 1, err)) {
			return false;
		}
	}
	*id = *cached;
	return true;
}

bool ids_release_facet(struct ids *ids, struct store_db *d, int64_t facet, evrec_error *err)
{
	return release(ids, d, &facet_release, facet, err);
}

/* ---- objects ---- */

static bool id_of_object(struct ids *ids, struct store_db *d, const evrec_reference *object, int64_t kind, int64_t *id,
                         evrec_error *err)
{
	sqlite3_stmt *statements[] = { ids->statements[IDS_FIND_OBJECT], ids->statements[IDS_ADD_OBJECT] };
	int64_t words[3] = { 0, kind, 0 }, *cached;

	if (!id_of_word(ids, d, object->ns, &words[0], err) ||
	    !id_of_word(ids, d, object->api_version, &words[2], err)) {
		return false;
	}
	buf_clear(&ids->key);
	buf_put(&ids->key, words, sizeof(words));
	buf_put_str(&ids->key, object->name);
	buf_put(&ids->key, "", 1);
	buf_put_str(&ids->key, object->uid);
	if (ids->key.failed) {
		return fail_for_memory(err);
	}
	if (!look_up(ids->objects, buf_str(&ids->key), &cached, err)) {
		return false;
	}
	if (*cached == 0) {
		for (size_t i = 0; i < 2; i++) {
			store_bind_str(statements[i], 1, object->name);
			bind_numbers(statements[i], 2, words, 3);
			(void)sqlite3_bind_null(statements[i], 5);
			if (object->uid.len != 0) {
				store_bind_str(statements[i], 5, object->uid);
			}
		}
		if (!find(d, statements[0], cached, err)) {
			return false;
		}
	}
	if (*cached == 0 && (!add(d, statements[1], cached, err) || !use_words(ids, d, words, 3, 1, err))) {
		return false;
	}
	*id = *cached;
	return true;
}

bool ids_release_object(struct ids *ids, struct store_db *d, int64_t object, evrec_error *err)
{
	return release(ids, d, &object_release, object, err);
}

/* ---- events ---- */

bool ids_of_event(struct ids *ids, struct store_db *d, const evrec_fields *event, struct store_keys *keys,
                  evrec_error *err)
{
	const bool has_related = event->related.kind.len != 0 || event->related.name.len != 0;
	const evrec_str texts[FACETS] = {
		[FACET_NS] = event->ns,
		[FACET_TYPE] = event->type,
		[FACET_REASON] = event->reason,
		[FACET_ACTION] = event->action,
		[FACET_CONTROLLER] = event_controller(event),
		[FACET_INSTANCE] = event_instance(event),
		[FACET_KIND] = event->regarding.kind,
		[FACET_RELATED_KIND] = event->related.kind,
	};
	int64_t words[FACETS];

	*keys = (struct store_keys){ 0 };
	if (!make_caches(ids, err)) {
		return false;
	}
	for (size_t i = 0; i < FACETS; i++) {
		if (!id_of_word(ids, d, texts[i], &words[i], err)) {
			return false;
		}
	}
	keys->ns = words[FACET_NS];
	return id_of_facet(ids, d, words, &keys->facet, err) &&
	       id_of_object(ids, d, &event->regarding, words[FACET_KIND], &keys->regarding, err) &&
	       (!has_related || id_of_object(ids, d, &event->related, words[FACET_RELATED_KIND], &keys->related, err));
}
