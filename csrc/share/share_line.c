#include "share/share_inner.h"

void line_begin(struct line_to *line)
{
	line->seq_in = line->seq_out = 0;
	buf_clear(&line->out);
	line->parts.total = 0;
}

void line_close(struct line_to *line)
{
	endpoint_copied_end(&line->copied, &line->fd);
	buf_free(&line->out);
	buf_free(&line->parts.whole);
}

bool line_send(struct line_to *line, bool *dead)
{
	int sent;

	if (line->out.len == 0) {
		return true;
	}
	frame_set_seq(&line->out, line->seq_out);
	sent = endpoint_send(line->fd, line->out.data, line->out.len);
	if (sent > 0) {
		line->seq_out++;
		buf_clear(&line->out);
	}
	*dead = *dead || sent < 0;
	return sent > 0;
}

int line_receive(struct share *s, struct line_to *line, struct frame *frame, evrec_error *err)
{
	const long len = endpoint_receive(line->fd, s->in, FRAME_MAX);

	if (len <= 0) {
		err->message[0] = '\0';
		return (int)len;
	}
	if (frame_read((evrec_str){ s->in, (size_t)len }, frame, err) != 0) {
		return -1;
	}
	if (frame->seq != line->seq_in) {
		(void)error_set(err, EVREC_EINVALID, "the peer sent a frame out of its turn");
		return -1;
	}
	line->seq_in++;
	return 1;
}
