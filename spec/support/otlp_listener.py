"""A receiver of OTLP over HTTP for a test: prints its port, and then a line of JSON for each request. Ends after COUNT
requests, or if none comes for 30 s.

usage: otlp_listener.py COUNT
"""
import base64
import gzip
import http.server
import json
import sys


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        is_json = self.headers["Content-Type"] == "application/json"
        print(json.dumps({
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "request": json.loads(body) if is_json else None,
            "bytes": base64.b64encode(body).decode(),
        }), flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self.server.left -= 1

    def log_message(self, *_):
        pass


class Server(http.server.HTTPServer):
    timeout = 30

    def handle_timeout(self):
        sys.exit("no request came")


with Server(("127.0.0.1", 0), Receiver) as server:
    server.left = int(sys.argv[1])
    print(server.server_port, flush=True)
    while server.left > 0:
        server.handle_request()
