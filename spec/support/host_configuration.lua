-- Configurations of nginx and HAProxy, whose parts that differ are arguments.
local host_configuration = {}

--- nginx, with these directives outside all blocks, in the block http, and in that of a server at the port.
---@param port integer|string
function host_configuration.nginx(port, main, http, server)
	return ([[
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
%s
events { worker_connections 768; }
http {
	access_log off;
%s
	server {
		listen 127.0.0.1:%s;
%s
	}
}
]]):format(main, http, port, server)
end

--- HAProxy, with these lines in the section global. A request at the port calls the action lua.`action`, and its answer
--- has this status. The timeouts are Debian's.
---@param port integer|string
function host_configuration.haproxy(port, global, action, status)
	return ([[
global
	log stdout format short local0
%s
defaults
	mode http
	timeout connect 5000
	timeout client 50000
	timeout server 50000
frontend web
	bind 127.0.0.1:%s
	http-request lua.%s
	http-request return status %d
]]):format(global, port, action, status)
end

return host_configuration
