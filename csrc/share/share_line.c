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

/* `e` goes with the frame, unless it is NULL. */
static bool send_out(struct line_to *line, const struct endpoint *e, bool *dead)
{
	const struct buf *out = &line->out;
	int sent;

	if (out->len == 0) {
		return true;
	}
	frame_set_seq(&line->out, line->seq_out);
	sent = e == NULL ? endpoint_send(line->fd, out->data, out->len)
	                 : endpoint_give(e, line->fd, out->data, out->len);
	if (sent > 0) {
		line->seq_out++;
		buf_clear(&line->out);
	}
	*dead = *dead || sent < 0;
	return sent > 0;
}

bool line_send(struct line_to *line, bool *dead)
{
	return send_out(line, NULL, dead);
}

bool line_give(struct line_to *line, const struct endpoint *e, bool *dead)
{
	return send_out(line, e, dead);
}

int line_receive(struct share *s, struct line_to *line, struct frame *frame, evrec_error *err)
{
	const bool is_link = line == &s->link.line;
	const long len = is_link ? endpoint_take(&s->endpoint, line->fd, s->in, FRAME_MAX)
	                         : endpoint_receive(line->fd, s->in, FRAME_MAX);

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
