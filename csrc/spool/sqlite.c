#define SQLITE_WITHOUT_NAMES /* the list of functions is to be that of SQLite's names */
#include "spool/sqlite.h"

#include "base/library.h"

struct sqlite_functions sqlite_functions;

#define ENTRY(name) { #name, (void **)(void *)&sqlite_functions.name, false },

bool sqlite_load(evrec_error *err)
{
	static const char *const files[] = { "libsqlite3.so.0", NULL };
	static const struct library_function functions[] = { SQLITE_FUNCTIONS(ENTRY) };
	static struct library sqlite = { "SQLite", files, functions, sizeof(functions) / sizeof(functions[0]), false };

	return library_load(&sqlite, err);
}
