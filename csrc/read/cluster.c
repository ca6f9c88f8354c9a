#include "read/cluster.h"

#include "base/clock.h"
#include "read/connection.h"
#include "sink/sink.h"

struct cluster_source {
	evrec_source base;
	evrec_sink *sink; /* has the server and the credentials */
};

static evrec_reader *open_reader(evrec_source *source, const struct filter *filter, bool watch, evrec_error *err)
{
	return cluster_reader_open(((struct cluster_source *)source)->sink, filter, watch, err);
}

static void free_source(evrec_source *source)
{
	evrec_sink_release(((struct cluster_source *)source)->sink);
	mem_free(source);
}

static const struct source_ops ops = { .open = open_reader, .free = free_source };

evrec_source *evrec_source_cluster(evrec_sink *sink, evrec_error *err)
{
	struct cluster_source *source;

	if (kubernetes_sink_options(sink) == NULL) {
		error_set(err, EVREC_EINVALID, "sink: must be one of an API server");
		return NULL;
	}
	source = source_new(sizeof(*source), &ops, err);
	if (source != NULL) {
		source->sink = evrec_sink_retain(sink);
	}
	return source == NULL ? NULL : &source->base;
}

/* ---- other documents ---- */

/* The body of the answer. NULL and *err. */
static char *take_answer(struct connection *c, evrec_error *err)
{
	char *body;

	if (c->status / 100 != 2) {
		error_set(err, EVREC_ESYSTEM, "%s", c->message);
		return NULL;
	}
	(void)buf_cstr(&c->body);
	if (c->body.failed) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	body = c->body.data;
	c->body = (struct buf){ 0 };
	return body;
}

static char *get(struct connection *c, char *path, int64_t deadline, evrec_error *err)
{
	enum connection_news news;

	connection_get(c, path, 0);
	do {
		news = connection_step(c, deadline);
	} while (news == CONNECTION_BYTES);
	if (news == CONNECTION_ENDED) {
		return take_answer(c, err);
	}
	error_set(err, EVREC_ETIMEOUT, "the API server did not answer in time");
	return NULL;
}

char *evrec_cluster_get(evrec_source *source, evrec_str path, int64_t timeout, evrec_error *err)
{
	const int64_t deadline = reader_deadline(timeout);
	struct connection *c;
	char *text, *body;

	if (source->ops != &ops || path.len == 0 || path.data[0] != '/') {
		error_set(err, EVREC_EINVALID, "%s",
		          source->ops != &ops ? "source: must be a cluster" : "path: must begin with /");
		return NULL;
	}
	c = connection_new(((struct cluster_source *)source)->sink, err);
	if (c == NULL) {
		return NULL;
	}
	text = str_dup(path);
	if (text == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
	}
	body = text == NULL ? NULL : get(c, text, deadline, err);
	connection_free(c);
	return body;
}
