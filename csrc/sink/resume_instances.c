#include "sink/resume_instances.h"

#include "event/fit.h"
#include "sink/sink.h"

#define INSTANCES_MAX 256

static bool is_pattern(evrec_str s)
{
	const char *star = s.len == 0 ? NULL : memchr(s.data, '*', s.len);

	return s.len != 0 && s.len <= FIT_FIELD_MAX && (star == NULL || star == s.data + s.len - 1);
}

int resume_check_options(const evrec_kubernetes_options *options, evrec_error *err)
{
	if (options->resume && !sink_has_series(&options->common)) {
		return error_set(err, EVREC_EINVALID, "resume: only with series (correlate)");
	}
	if (options->resume_instances_len != 0 && !options->resume) {
		return error_set(err, EVREC_EINVALID, "resume_instances: only together with resume");
	}
	if (options->resume_instances_len > INSTANCES_MAX) {
		return error_set(err, EVREC_EINVALID, "resume_instances: must be %d at most", INSTANCES_MAX);
	}
	for (size_t i = 0; i < options->resume_instances_len; i++) {
		if (!is_pattern(options->resume_instances[i])) {
			return error_set(err, EVREC_EINVALID,
			                 "resume_instances: must have 1 to %d bytes each, and a '*' at the end at most",
			                 FIT_FIELD_MAX);
		}
	}
	return 0;
}

evrec_str *resume_instances_copy(const evrec_str *instances, size_t n)
{
	size_t size = (n + 1) * sizeof(*instances);
	evrec_str *copy;
	char *text;

	for (size_t i = 0; i < n; i++) {
		size += instances[i].len;
	}
	copy = mem_zalloc(size);
	if (copy == NULL) {
		return NULL;
	}
	text = (char *)(copy + n + 1);
	for (size_t i = 0; i < n; i++) {
		copy[i] = (evrec_str){ text, instances[i].len };
		memcpy(text, instances[i].data, instances[i].len);
		text += instances[i].len;
	}
	return copy;
}

static bool matches(evrec_str pattern, evrec_str instance)
{
	const size_t start = pattern.len - 1;

	if (pattern.data[start] != '*') {
		return str_eq(pattern, instance);
	}
	return instance.len >= start && memcmp(pattern.data, instance.data, start) == 0;
}

bool resume_instances_match(const evrec_str *instances, size_t n, evrec_str instance)
{
	for (size_t i = 0; i < n; i++) {
		if (instance.len != 0 && matches(instances[i], instance)) {
			return true;
		}
	}
	return false;
}
