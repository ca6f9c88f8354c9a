/* The SQL by which a writer puts and deletes events and notes. */
#include "store/store_inner.h"

const char *const store_sources[STORE_STATEMENTS] = {
	[STORE_FIND] = "SELECT rv, ns, facet, regarding, related FROM events WHERE key = ?1 AND ns = ?2",
	[STORE_INSERT] = "INSERT INTO events (ns, key, facet, regarding, related, first, last, body) "
			 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[STORE_DELETE] = "DELETE FROM events WHERE rv = ?1",
	[STORE_OLDEST] = "SELECT rv, ns, facet, regarding, related, length(CAST(body AS BLOB)), last FROM events "
			 "WHERE last < ?1 ORDER BY last, facet, rv LIMIT ?2",
	[STORE_BEGIN] = "BEGIN IMMEDIATE",
	[STORE_COMMIT] = "COMMIT",
};

const char *const note_sources[NOTE_STATEMENTS] = {
	[NOTE_PUT_OCCURRENCE] = "INSERT INTO occurrences (ns, name, time, count) VALUES (?1, ?2, ?3, ?4) "
				"ON CONFLICT (name, ns, time) DO UPDATE SET count = count + excluded.count",
	[NOTE_PUT_SUPPRESSION] =
		"INSERT INTO suppressions (ns, name, kind, api_version, uid, type, reason, stage, cause, key, message, "
		"component, host, span, first, last, count) "
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?15, ?16) "
		"ON CONFLICT (span, name, ns, kind, api_version, uid, type, reason, stage, cause, key, component, "
		"host) DO UPDATE SET "
		"count = count + excluded.count, first = min(first, excluded.first), last = max(last, excluded.last), "
		"message = excluded.message",
	[NOTE_OLD_OCCURRENCE] = "SELECT 1 FROM occurrences WHERE time < ?1 LIMIT 1",
	[NOTE_OLD_SUPPRESSION] = "SELECT 1 FROM suppressions WHERE last < ?1 LIMIT 1",
	[NOTE_EXPIRE_OCCURRENCES] = "DELETE FROM occurrences WHERE id IN "
				    "(SELECT id FROM occurrences WHERE time < ?1 ORDER BY time LIMIT ?2)",
	[NOTE_EXPIRE_SUPPRESSIONS] = "DELETE FROM suppressions WHERE id IN "
				     "(SELECT id FROM suppressions WHERE last < ?1 ORDER BY last LIMIT ?2)",
};
