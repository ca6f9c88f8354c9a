#define _GNU_SOURCE /* memmem */

#include "http/pem.h"

#define ENCRYPTED_FAULT "is encrypted; a passphrase cannot be given, decrypt it first (openssl pkey)"

/* The text after the first `word` in `text`; its data is NULL if `word` is not there. */
static evrec_str after(evrec_str text, evrec_str word)
{
	const char *found = text.len == 0 ? NULL : memmem(text.data, text.len, word.data, word.len);

	if (found == NULL) {
		return (evrec_str){ NULL, 0 };
	}
	found += word.len;
	return (evrec_str){ found, (size_t)(text.data + text.len - found) };
}

/* The text before the first `word` in `text`; its data is NULL if `word` is not there. */
static evrec_str before(evrec_str text, evrec_str word)
{
	evrec_str rest = after(text, word);

	return rest.data == NULL ? rest : (evrec_str){ text.data, text.len - rest.len - word.len };
}

static bool ends_with(evrec_str text, evrec_str end)
{
	return text.len >= end.len && memcmp(text.data + text.len - end.len, end.data, end.len) == 0;
}

/* OpenSSL's old form (RFC 1421): the block begins with headers, "Proc-Type: 4,ENCRYPTED" is the first one. */
static bool has_encrypted_block(evrec_str pem)
{
	return after(after(pem, EVREC_STR("Proc-Type:")), EVREC_STR("ENCRYPTED")).data != NULL;
}

/* The value of a base64 digit, -1: none. */
static int digit_value(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c == '\0' ? NULL : strchr(digits, c);

	return found == NULL ? -1 : (int)(found - digits);
}

/*
 * Decodes base64, which may have white space, into at most `size` bytes of `out`. Returns the whole decoded length; 0:
 * it is not base64.
 */
static size_t decode(evrec_str text, unsigned char *out, size_t size)
{
	size_t len = 0;
	unsigned bits = 0, pending = 0;

	for (size_t i = 0; i < text.len && text.data[i] != '='; i++) {
		char c = text.data[i];
		int value = digit_value(c);

		if (c == ' ' || (c >= '\t' && c <= '\r')) {
			continue;
		}
		if (value < 0) {
			return 0;
		}
		pending = (pending << 6 | (unsigned)value) & 0xffff;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			if (len < size) {
				out[len] = (unsigned char)(pending >> bits);
			}
			len++;
		}
	}
	return len;
}

/* In DER a key of any kind is one SEQUENCE, which begins with its length. */
static bool is_sequence(evrec_str base64)
{
	unsigned char head[6];
	size_t len = decode(base64, head, sizeof(head)), told = 0, more;

	if (len < sizeof(head) || head[0] != 0x30) {
		return false;
	}
	if (head[1] < 0x80) {
		return len == (size_t)head[1] + 2;
	}
	more = head[1] & 0x7f;
	if (more == 0 || more > 4) {
		return false;
	}
	for (size_t i = 0; i < more; i++) {
		told = told << 8 | head[2 + i];
	}
	return len - 2 - more == told;
}

const char *pem_certificate_fault(evrec_str pem)
{
	if (after(pem, EVREC_STR("-----BEGIN ")).data == NULL || memchr(pem.data, '\0', pem.len) != NULL) {
		return "no certificate in PEM form";
	}
	return has_encrypted_block(pem) ? ENCRYPTED_FAULT : NULL;
}

const char *pem_key_fault(evrec_str pem)
{
	const evrec_str dashes = EVREC_STR("-----");
	evrec_str label, rest = pem;

	/* OpenSSL takes the first block that is a private key; others, such as EC PARAMETERS, may come before it. */
	do {
		rest = after(rest, EVREC_STR("-----BEGIN "));
		label = before(rest, dashes);
		if (label.data == NULL || memchr(pem.data, '\0', pem.len) != NULL) {
			return "no private key in PEM form";
		}
		rest = after(rest, dashes);
	} while (!ends_with(label, EVREC_STR("PRIVATE KEY")));
	if (ends_with(label, EVREC_STR("ENCRYPTED PRIVATE KEY")) || has_encrypted_block(pem)) {
		return ENCRYPTED_FAULT;
	}
	return is_sequence(before(rest, EVREC_STR("-----END "))) ? NULL : "not a private key that can be read";
}
