#include "exec/exec_info.h"

#include "base/fork_lock.h"

#include <jansson.h>

/* False: no memory. */
static bool put_base64(struct buf *out, evrec_str bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t left = bytes.len - i;
		unsigned bits = 0;
		char text[4];

		for (size_t k = 0; k < 3; k++) {
			bits = bits << 8 | (k < left ? (unsigned char)bytes.data[i + k] : 0);
		}
		for (size_t k = 0; k < 4; k++) {
			text[k] = '=';
			if (k <= left) {
				text[k] = digits[bits >> (18 - 6 * k) & 63];
			}
		}
		buf_put(out, text, sizeof(text));
	}
	return !out->failed;
}

static bool put_authority(json_t *cluster, evrec_str ca)
{
	struct buf text = { 0 };
	bool put = put_base64(&text, ca) &&
	           json_object_set_new(cluster, "certificate-authority-data", json_string(buf_cstr(&text))) == 0;

	buf_free(&text);
	return put;
}

static int put_cluster(json_t *spec, const evrec_exec *exec, const struct exec_cluster *info, evrec_error *err)
{
	json_t *cluster = json_object(), *config = NULL;
	bool put = json_object_set_new(spec, "cluster", cluster) == 0 &&
	           json_object_set_new(cluster, "server", json_stringn(info->server.data, info->server.len)) == 0 &&
	           (info->ca.len == 0 || put_authority(cluster, info->ca)) &&
	           (!info->insecure_skip_tls_verify ||
	            json_object_set_new(cluster, "insecure-skip-tls-verify", json_true()) == 0);

	if (put && exec->cluster_config.len != 0) {
		config = json_loadb(exec->cluster_config.data, exec->cluster_config.len, JSON_DECODE_ANY, NULL);
		if (config == NULL) {
			return error_set(err, EVREC_EINVALID, "exec: cluster_config: no JSON");
		}
		put = json_object_set_new(cluster, "config", config) == 0;
	}
	return put ? 0 : error_set(err, EVREC_ENOMEM, "exec: no memory");
}

static int put_text(const char *data, size_t size, void *out)
{
	buf_put(out, data, size);
	return ((struct buf *)out)->failed ? -1 : 0;
}

static int put_info(struct buf *out, json_t *root, const evrec_exec *exec, const struct exec_cluster *cluster,
                    evrec_error *err)
{
	json_t *spec = json_object();
	bool put = json_object_set_new(root, "kind", json_string("ExecCredential")) == 0 &&
	           json_object_set_new(root, "apiVersion",
	                               json_stringn(exec->api_version.data, exec->api_version.len)) == 0 &&
	           json_object_set_new(root, "spec", spec) == 0 &&
	           json_object_set_new(spec, "interactive", json_false()) == 0;
	int code = put && exec->provide_cluster_info ? put_cluster(spec, exec, cluster, err) : 0;

	if (code != 0) {
		return code;
	}
	return put && json_dump_callback(root, put_text, out, JSON_COMPACT) == 0
	               ? 0
	               : error_set(err, EVREC_ENOMEM, "exec: no memory");
}

int exec_info_put(struct buf *out, const evrec_exec *exec, const struct exec_cluster *cluster, evrec_error *err)
{
	json_t *root;
	int code;

	fork_lock_enter(); /* jansson may set itself up */
	root = json_object();
	code = put_info(out, root, exec, cluster, err);
	json_decref(root);
	fork_lock_leave();
	return code;
}
