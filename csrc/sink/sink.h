/*
 * sink.h - a sink: a configuration. A pipeline opens a protocol of it, and another one in a forked child.
 *
 * kubernetes.c, otlp.c, file.c, store.c and callback.c each have a kind of sink, whose struct begins with an evrec_sink. The
 * last three have its protocol, too; those of the first two are in kubernetes_protocol.c and otlp_protocol.c, and the checks
 * of their options in kubernetes_options.c and otlp_options.c.
 */
#ifndef EVREC_SINK_H
#define EVREC_SINK_H

#include "exec/command.h"
#include "http/http_client.h"
#include "outbox/protocol.h"
#include "sink/fingerprint.h"
#include "sink/resolved.h"
#include "sink/write.h"

#include <stdatomic.h>

#pragma GCC visibility push(hidden)

struct evrec_sink {
	atomic_uint refs;
	const char *kind; /* its name unless `options` have one; static */
	evrec_sink_options options;
	char *spool;                     /* what options.spool points to */
	char *state_file;                /* what options.state_file points to */
	char name[EVREC_SINK_NAME_SIZE]; /* what options.name points to */
	bool shows_states;               /* its readers see whether a series is finished; an API server's do not */
	/*
	 * ns between two writes of an event; 0: none. An occurrence within that time of the last write is counted, and
	 * written when the time is over, at a flush or at the end. Not used for series, which have heartbeats. Set by
	 * the constructor.
	 */
	int64_t min_interval;
	/* Makes a protocol of the configuration, without I/O. NULL and *err: no memory. */
	struct protocol *(*open)(evrec_sink *sink, evrec_error *err);
	/* Overwrites secrets in `text`, such as a token; NULL: there are none. */
	void (*hide_secrets)(const evrec_sink *sink, char *text);
	/* Adds the options of the kind; NULL: it has none that two handles of a broadcaster can compare. */
	void (*add_fingerprint)(const evrec_sink *sink, struct fingerprint *f);
	bool traces;                    /* trace.h: its pipeline has no correlator, and items of trace_ops */
	bool calls_embedder;            /* its protocol calls functions, on the thread that polls */
	void (*free)(evrec_sink *sink); /* frees the kind's own fields, but not the sink's block */
};

/*
 * A sink of one reference in a block of `size` bytes, the rest of which is zero. `options` are checked and copied; NULL:
 * the defaults. NULL and *err: EVREC_EINVALID, with the name of the option in the message, or EVREC_ENOMEM.
 */
void *sink_new(size_t size, const evrec_sink_options *options, evrec_error *err);
/* The sink's name in stats and messages; lives as long as the sink. */
const char *sink_name(const evrec_sink *sink);
/* The API by which the sink writes events; with EVREC_SINK_AUTO the one that it tries first. */
enum evrec_api sink_api(const evrec_sink_options *options);
/* True if a sink with these options has series, false if it has a correlator. */
bool sink_has_series(const evrec_sink_options *options);
/* The checks of sink_new. */
int sink_check_options(const evrec_sink_options *options, evrec_error *err);

/*
 * Protocols of the kinds that do I/O. `encode` encodes the outbox's items. NULL and *err: no memory, or an option is
 * wrong.
 *
 * For Kubernetes both `token` and `token_file` may be set here: then `token` is the content of the file when the sink
 * was made, and stays in use if the file cannot be read any more (a chroot).
 */
struct protocol *kubernetes_protocol_new(const evrec_kubernetes_options *options, encode_func *encode,
                                         evrec_error *err);
/* Gets the credentials by this command; retains both. Before the first send. False: no memory. */
bool kubernetes_protocol_use(struct protocol *p, struct exec_command *command, evrec_clock *clock);
/* Keeps a duplicate of this descriptor of the token file's folder, to read the file from within a chroot. */
void kubernetes_protocol_keep_token_folder(struct protocol *p, int folder);
/* Uses the addresses; if there are none, the first send reports why. Before the first send. False: no memory. */
bool kubernetes_protocol_keep_addresses(struct protocol *p, const struct resolved *resolved);
/* The options of a Kubernetes sink's HTTP client; they borrow from `options`. */
struct http_options kubernetes_http_options(const evrec_kubernetes_options *options);
/*
 * The checked options of a Kubernetes sink, with copied strings and the token that the file held when the sink was
 * made; and its credential plugin's command, or NULL. They live as long as the sink. NULL: a sink of another kind.
 */
const evrec_kubernetes_options *kubernetes_sink_options(const evrec_sink *sink);
struct exec_command *kubernetes_sink_command(const evrec_sink *sink);
struct protocol *file_protocol_new(const char *path, enum evrec_api api, encode_func *encode, evrec_error *err);
/* Checks ranges and forms without I/O: 0, or EVREC_EINVALID or EVREC_ENOMEM and a message that names the option. */
int kubernetes_check_options(const evrec_kubernetes_options *options, evrec_error *err);

#pragma GCC visibility pop

#endif
