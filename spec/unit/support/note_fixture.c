#include "note_fixture.h"

struct note note_of_occurrence(const char *name, int64_t time)
{
	return (struct note){ .time = time,
		              .count = 1,
		              .texts = { [NOTE_NS] = EVREC_STR("shop"), [NOTE_NAME] = evrec_string(name) } };
}

struct note note_of_suppression(const char *object, const char *reason, int64_t time, uint64_t count)
{
	struct note note = { .suppressed = true, .time = time, .count = count };

	note.texts[NOTE_NS] = EVREC_STR("shop");
	note.texts[NOTE_NAME] = evrec_string(object);
	note.texts[NOTE_KIND] = EVREC_STR("Pod");
	note.texts[NOTE_REASON] = evrec_string(reason);
	note.texts[NOTE_STAGE] = EVREC_STR("rate_limited");
	note.texts[NOTE_MESSAGE] = EVREC_STR("a \"message\"");
	return note;
}
