/*
 * Kubeconfig files of any bytes. lua/evrec/kubeconfig.lua reads them, spec/fuzz/kubeconfig.lua checks the result, and a
 * sink checks the options that they yield.
 */
#include "fuzz_lua.h"

#include "http/http_client.h"

#include "sink/sink.h"

static evrec_str result(lua_State *L, int index)
{
	evrec_str text = { NULL, 0 };

	if (lua_type(L, index) == LUA_TSTRING) {
		text.data = lua_tolstring(L, index, &text.len);
	}
	return text;
}

static void push(lua_State *L, evrec_str text)
{
	lua_pushlstring(L, text.len == 0 ? "" : text.data, text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static lua_State *L;
	struct input in = { .data = data, .left = size };
	evrec_kubernetes_options options;
	evrec_str first = input_text(&in), other = input_text(&in), context = input_text(&in);
	evrec_error err;
	int code;

	if (L == NULL) {
		L = fuzz_lua_open("spec/fuzz/kubeconfig.lua");
		lua_sethook(L, fuzz_count_line, LUA_MASKLINE, 0);
		(void)http_global_init();
	}
	lua_pushvalue(L, 1);
	push(L, first);
	push(L, other);
	push(L, context);
	lua_pushboolean(L, input_byte(&in) & 1);
	fuzz_lua_call(L, 4, 5);
	evrec_kubernetes_options_init(&options);
	options.server = result(L, 2);
	options.token = result(L, 3);
	options.ca = result(L, 4);
	options.client_certificate = result(L, 5);
	options.client_key = result(L, 6);
	code = kubernetes_check_options(&options, &err);
	CHECK(code == 0 || code == EVREC_EINVALID);
	CHECK(fuzz_blocks == 0);
	lua_settop(L, 1);
	input_end(&in);
	return 0;
}
