#include "recorder/chosen.h"

/* A string that a function has left unset means the default. */
static enum choice keep(struct buf *buf, evrec_str text)
{
	buf_clear(buf);
	buf_put_str(buf, text);
	return text.data != NULL ? CHOICE_MADE : CHOICE_NONE;
}

bool chosen_ask(struct chosen *chosen, const evrec_correlator_options *functions, const evrec_fields *event)
{
	evrec_str key = { NULL, 0 }, local = { NULL, 0 }, message = { NULL, 0 }, spam_key = { NULL, 0 };

	chosen->keys = chosen->message = chosen->spam_key = CHOICE_NONE;
	buf_clear(&chosen->aggregate_key);
	buf_clear(&chosen->local_key);
	buf_clear(&chosen->text);
	buf_clear(&chosen->spam);
	if (functions->key_func != NULL) {
		chosen->keys = CHOICE_FAILED;
		if (functions->key_func(functions->ctx, event, &key, &local)) {
			chosen->keys = keep(&chosen->aggregate_key, key);
			(void)keep(&chosen->local_key, local.data != NULL ? local : event->note);
		}
	}
	if (functions->message_func != NULL) {
		chosen->message = CHOICE_FAILED;
		if (functions->message_func(functions->ctx, event, &message)) {
			chosen->message = keep(&chosen->text, message);
		}
	}
	if (functions->spam_key_func != NULL) {
		chosen->spam_key = CHOICE_FAILED;
		if (functions->spam_key_func(functions->ctx, event, &spam_key)) {
			chosen->spam_key = keep(&chosen->spam, spam_key);
		}
	}
	return !chosen->aggregate_key.failed && !chosen->local_key.failed && !chosen->text.failed &&
	       !chosen->spam.failed;
}

void chosen_free(struct chosen *chosen)
{
	buf_free(&chosen->aggregate_key);
	buf_free(&chosen->local_key);
	buf_free(&chosen->text);
	buf_free(&chosen->spam);
}

/* A string without data means the default; an empty one does not. */
static evrec_str string_of(const struct buf *buf)
{
	return buf->len != 0 ? buf_str(buf) : EVREC_STR("");
}

static bool repeat_keys(void *ctx, const evrec_fields *event, evrec_str *aggregate_key, evrec_str *local_key)
{
	const struct chosen *chosen = *(const struct chosen **)ctx;

	(void)event;
	*aggregate_key = *local_key = (evrec_str){ NULL, 0 };
	if (chosen != NULL && chosen->keys == CHOICE_MADE) {
		*aggregate_key = string_of(&chosen->aggregate_key);
		*local_key = string_of(&chosen->local_key);
	}
	return chosen == NULL || chosen->keys != CHOICE_FAILED;
}

static bool repeat(enum choice choice, const struct buf *text, evrec_str *out)
{
	*out = choice == CHOICE_MADE ? string_of(text) : (evrec_str){ NULL, 0 };
	return choice != CHOICE_FAILED;
}

static bool repeat_message(void *ctx, const evrec_fields *event, evrec_str *message)
{
	const struct chosen *chosen = *(const struct chosen **)ctx;

	(void)event;
	return repeat(chosen != NULL ? chosen->message : CHOICE_NONE, chosen != NULL ? &chosen->text : NULL, message);
}

static bool repeat_spam_key(void *ctx, const evrec_fields *event, evrec_str *key)
{
	const struct chosen *chosen = *(const struct chosen **)ctx;

	(void)event;
	return repeat(chosen != NULL ? chosen->spam_key : CHOICE_NONE, chosen != NULL ? &chosen->spam : NULL, key);
}

void chosen_replace(evrec_correlator_options *options, const struct chosen **from)
{
	options->key_func = options->key_func != NULL ? repeat_keys : NULL;
	options->message_func = options->message_func != NULL ? repeat_message : NULL;
	options->spam_key_func = options->spam_key_func != NULL ? repeat_spam_key : NULL;
	options->ctx = from;
}
