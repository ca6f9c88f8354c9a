#include "sink/resolved.h"

#include "http/addresses.h"
#include "http/http_client.h"
#include "outbox/outbox.h"

#define SERVER_SHOWN 60 /* bytes of it in a message */

bool resolved_look_up(struct resolved *r, evrec_str server)
{
	const int shown = server.len < SERVER_SHOWN ? (int)server.len : SERVER_SHOWN;
	evrec_error why = { 0 };

	if (addresses_look_up(server, &r->addresses, &why) == EVREC_ESYSTEM) {
		error_set(&r->fault, why.code, "no address of %.*s was found when the sink was made: %.60s", shown,
		          server.data, why.message);
	}
	return why.code != EVREC_ENOMEM;
}

bool resolved_use(const struct resolved *r, struct http_client *client, evrec_error *untold)
{
	*untold = r->fault;
	return r->addresses == NULL || http_client_keep_addresses(client, r->addresses);
}

void resolved_tell(evrec_error *untold, struct outbox *ob)
{
	if (untold->code != 0) {
		outbox_report(ob, "transport", untold->message);
		untold->code = 0;
	}
}

void resolved_free(struct resolved *r)
{
	mem_free(r->addresses);
}
