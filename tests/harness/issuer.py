"""A small OpenID issuer on loopback: it signs RS256 tokens, and can be told to err."""

import base64
import contextlib
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT = "parley"


class Issuer:
    """Knows one user, who always signs on."""

    def __init__(self):
        self.own = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.begin_anew()

    def begin_anew(self):
        self.keys, self.kid, self.sign = {"first": self.own}, "first", self.signed
        self.claims, self.discovered = {}, {}  # what differs from what is right
        self.asked = []  # queries of the authorization endpoint
        self.codes = {}
        self.secrets = []  # of clients, as they came
        self.refuses = False

    def tell(self):
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize?tenant=1",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/keys",
            **self.discovered,
        }

    def jwks(self):
        as_jwk = jwt.algorithms.RSAAlgorithm.to_jwk
        return {
            "keys": [
                json.loads(as_jwk(key.public_key())) | {"kid": kid, "use": "sig", "alg": "RS256"}
                for kid, key in self.keys.items()
            ]
        }

    def authorize(self, query):
        """Return where a user who signed on is sent."""
        self.asked.append(query)
        if self.refuses:
            return f"{query['redirect_uri']}?{urlencode({'error': 'no', 'state': query['state']})}"
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form):
        """Return the answer to a code; None if PKCE, the code or the client is wrong."""
        asked = self.codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or (asked["code_challenge"], asked["redirect_uri"]) != (
            challenge, form["redirect_uri"],
        ):  # fmt: skip
            return None
        self.secrets.append(form.get("client_secret"))
        now = int(time.time())
        claims = {
            "iss": self.address, "sub": "alice", "aud": CLIENT, "iat": now, "exp": now + 300,
            "nonce": asked["nonce"], "groups": ["staff"], **self.claims,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        return {"id_token": self.sign(claims)}

    def signed(self, claims):
        return jwt.encode(claims, self.keys[self.kid], "RS256", headers={"kid": self.kid})


@contextlib.contextmanager
def serving_issuer():
    """Serve an issuer on a loopback port for the length of a block."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            parts = urlsplit(self.path)
            pages = {"/.well-known/openid-configuration": issuer.tell, "/keys": issuer.jwks}
            if parts.path == "/authorize":
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("Location", issuer.authorize(query))
                self.end_headers()
            else:
                self.answer(pages[parts.path]())

        def do_POST(self):
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.answer(issuer.token({key: values[0] for key, values in form.items()}))

        def answer(self, document):
            body = json.dumps(document).encode()
            self.send_response(400 if document is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
