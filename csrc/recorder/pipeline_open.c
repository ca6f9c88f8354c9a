#define _GNU_SOURCE /* gethostname */

#include "base/phase.h"
#include "recorder/pipeline_inner.h"
#include "sink/trace.h"
#include "spool/spool_folder.h"
#include "spool/sqlite.h"

#include <unistd.h>

static const unsigned legal_steps[] = {
	[PIPELINE_RUNNING] = PHASE_BIT(PIPELINE_STOPPED) | PHASE_BIT(PIPELINE_SHUT),
	[PIPELINE_STOPPED] = PHASE_BIT(PIPELINE_ENDING),
	[PIPELINE_ENDING] = PHASE_BIT(PIPELINE_OVER),
	[PIPELINE_OVER] = 0,
	[PIPELINE_SHUT] = 0,
};

void pipeline_enter_phase(struct pipeline *pipeline, enum pipeline_phase phase)
{
	phase_step(&pipeline->phase, phase, legal_steps);
}

static bool open_correlator(struct pipeline *pipeline, evrec_error *err)
{
	if (pipeline->sink->traces) {
		return correlator_check_options(&pipeline->options, err) == 0;
	}
	if (!sink_has_series(&pipeline->sink->options)) {
		pipeline->correlator = evrec_correlator_new(&pipeline->options, err);
		if (pipeline->correlator == NULL) {
			return false;
		}
		correlator_set_min_interval(pipeline->correlator, pipeline->sink->min_interval);
		if (!evrec_clock_is_fake(pipeline->clock)) {
			correlator_use_real_clock(pipeline->correlator);
		}
		return true;
	}
	if (correlator_check_options(&pipeline->options, err) != 0) {
		return false;
	}
	if (!pipeline_open_series(pipeline, evrec_clock_now(pipeline->clock))) {
		error_set(err, EVREC_ENOMEM, "no memory");
	}
	return pipeline->series != NULL;
}

/*
 * Makes the parts that a forked child has to make again. False, with *err set: no memory, or the protocol could not be
 * made.
 */
static bool open_parts(struct pipeline *pipeline, evrec_error *err)
{
	struct sender_options options = {
		.clock = pipeline->clock,
		.drive = pipeline->drive,
		.name = sink_name(pipeline->sink),
		.loud = pipeline->listener->loud,
	};
	struct protocol *protocol;

	pipeline->fork_generation = sender_fork_generation();
	pipeline->outbox = NULL;
	pipeline->sender = NULL;
	pipeline->noting = NULL;
	if (!open_correlator(pipeline, err)) {
		return false;
	}
	protocol = pipeline->sink->open(pipeline->sink, err);
	if (protocol == NULL) {
		return false;
	}
	pipeline->outbox = outbox_new(pipeline->sink->traces ? &trace_ops : &write_ops, &pipeline->sink->options.limits,
	                              (uint64_t)clock_monotonic(pipeline->clock) ^ (uintptr_t)pipeline);
	if (pipeline->spool.len != 0) {
		options.spooler = spooler_new(pipeline->spool, pipeline->sink->options.spool_after, &write_codec);
	}
	if (options.spooler != NULL && pipeline->sink->options.spool_journal) {
		spooler_use_journal(options.spooler, outbox_limit_of_bytes(&pipeline->sink->options.limits));
	}
	if (pipeline->outbox == NULL || (options.spooler == NULL && pipeline->spool.len != 0)) {
		protocol->ops->free(protocol);
		spooler_free(options.spooler);
		if (pipeline->outbox != NULL) {
			outbox_free(pipeline->outbox);
		}
	} else {
		/* A correlator needs only names, resource versions and drops; a series needs each answer. */
		if (pipeline->series == NULL) {
			outbox_skip_plain_answers(pipeline->outbox);
		}
		pipeline->sender = sender_new(pipeline->outbox, protocol, &options);
	}
	if (pipeline->sender == NULL) {
		pipeline->outbox = NULL;
		error_set(err, EVREC_ENOMEM, "no memory");
	} else if (protocol->ops->notes != NULL && protocol->ops->notes(protocol) != NULL) {
		pipeline->noting = protocol;
	}
	return pipeline->sender != NULL;
}

/* False, with *err: no memory. Without SQLite a state file has no spool, and `no_sqlite` is set. */
static bool set_paths(struct pipeline *pipeline, uint64_t share, evrec_error *no_sqlite, evrec_error *err)
{
	evrec_str *made = NULL;

	pipeline->spool = pipeline->sink->options.spool;
	pipeline->state_path = pipeline->sink->options.state_file;
	if (share == 0 || (pipeline->spool.len != 0) == (pipeline->state_path.len != 0)) {
		return true;
	}
	if (pipeline->spool.len != 0) {
		made = &pipeline->state_path;
		pipeline->made_path = spool_folder_state_path(pipeline->spool.data, share);
	} else if (sqlite_load(no_sqlite)) {
		made = &pipeline->spool;
		pipeline->made_path = spool_folder_beside(pipeline->state_path.data);
	} else {
		return true;
	}
	if (pipeline->made_path == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return false;
	}
	*made = str_from(pipeline->made_path);
	return true;
}

struct pipeline *pipeline_new(evrec_sink *sink, const struct pipeline_options *options, evrec_error *err)
{
	struct pipeline *pipeline = mem_zalloc(sizeof(*pipeline));
	evrec_error no_sqlite = { .code = 0 };

	if (pipeline == NULL) {
		error_set(err, EVREC_ENOMEM, "no memory");
		return NULL;
	}
	pipeline->sink = evrec_sink_retain(sink);
	pipeline->clock = evrec_clock_retain(options->clock);
	pipeline->drive = options->drive;
	pipeline->listener = options->listener;
	pipeline->max_note = options->max_message_bytes;
	pipeline->new_style = sink_has_series(&sink->options) || sink->options.api != EVREC_SINK_CORE_V1;
	if (pipeline->new_style) {
		pipeline->max_note = pipeline->max_note < FIT_NOTE_MAX ? pipeline->max_note : FIT_NOTE_MAX;
		/* If this fails, the name is empty. */
		(void)gethostname(pipeline->host_name, sizeof(pipeline->host_name) - 1);
	}
	if (options->correlator != NULL) {
		pipeline->options = *options->correlator;
	} else {
		evrec_correlator_options_init(&pipeline->options);
	}
	if (set_paths(pipeline, options->share, &no_sqlite, err) && open_parts(pipeline, err)) {
		if (no_sqlite.code != 0) {
			outbox_report(pipeline->outbox, "spool", no_sqlite.message);
		}
		return pipeline;
	}
	pipeline_free(pipeline);
	return NULL;
}

static void free_correlator(struct pipeline *pipeline)
{
	if (pipeline->state == NULL) {
		evrec_correlator_free(pipeline->correlator);
		series_free(pipeline->series);
	}
	pipeline->state = NULL;
	pipeline->series = NULL;
}

void pipeline_free(struct pipeline *pipeline)
{
	if (pipeline->sender != NULL && pipeline->fork_generation == sender_fork_generation()) {
		/* The sender may still write the state after the listener was freed. */
		pipeline_on_state_written(pipeline, NULL, NULL);
		sender_release(pipeline->sender);
	}
	free_correlator(pipeline);
	if (pipeline->fork_generation == sender_fork_generation()) {
		state_file_free(pipeline->state_ahead);
	}
	mem_free(pipeline->made_path);
	suppressed_free(&pipeline->suppressed);
	keys_free(&pipeline->own_keys);
	fit_free(&pipeline->fit);
	buf_free(&pipeline->note);
	evrec_clock_release(pipeline->clock);
	evrec_sink_release(pipeline->sink);
	mem_free(pipeline);
}

void pipeline_renew(struct pipeline *pipeline)
{
	free_correlator(pipeline);
	pipeline->state_ahead = NULL; /* the parent's, which a thread of the parent may have been using */
	suppressed_free(&pipeline->suppressed);
	pipeline->received = pipeline->rate_limited = pipeline->unsure = 0;
	memset(pipeline->dropped, 0, sizeof(pipeline->dropped));
	(void)open_parts(pipeline, NULL);
}

bool pipeline_renew_if_forked(struct pipeline *pipeline)
{
	return pipeline_ready(pipeline);
}
