/*
 * replay.c - main of a fuzz target without libFuzzer: runs the target once on each file that is named.
 */
#include "fuzz.h"

static bool replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct buf input = { 0 };
	uint8_t *exact;
	size_t n = 0;

	if (file == NULL) {
		return false;
	}
	do {
		input.len += n;
		n = buf_reserve(&input, 4096) ? fread(input.data + input.len, 1, 4096, file) : 0;
	} while (n != 0);
	exact = ferror(file) != 0 || input.failed ? NULL : malloc(input.len + 1);
	(void)fclose(file);
	if (exact != NULL) {
		memcpy(exact, input.data, input.len);
		(void)LLVMFuzzerTestOneInput(exact, input.len);
		free(exact);
	}
	buf_free(&input);
	return exact != NULL;
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		/* If an input crashes the target, the last line names it. */
		(void)fprintf(stderr, "%s\n", argv[i]);
		if (!replay(argv[i])) {
			perror(argv[i]);
			return 1;
		}
	}
	(void)printf("%d inputs\n", argc - 1);
	return 0;
}
