#include "curl_alloc_failure.h"

#include <curl/curl.h>

bool curl_alloc_fails;

static void *curl_realloc(void *block, size_t size)
{
	return curl_alloc_fails && alloc_failure_is_due() ? NULL : alloc_failure_take(block, size);
}

static void *curl_malloc(size_t size)
{
	return curl_realloc(NULL, size);
}

static void *curl_calloc(size_t n, size_t size)
{
	void *block = curl_realloc(NULL, n * size);

	return block == NULL ? NULL : memset(block, 0, n * size);
}

static char *curl_strdup(const char *text)
{
	char *copy = curl_realloc(NULL, strlen(text) + 1);

	return copy == NULL ? NULL : strcpy(copy, text);
}

void curl_alloc_failure_init(void)
{
	assert_int_equal(curl_global_init_mem(CURL_GLOBAL_DEFAULT, curl_malloc, alloc_failure_free, curl_realloc,
	                                      curl_strdup, curl_calloc),
	                 0);
}
