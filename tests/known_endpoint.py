"""An endpoint of OpenAI's chat completions on this machine, which records what it is asked."""

import json
import threading
import time
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple


def completion(text, top=None, usage=(20, 1)):
    """The body of an answer; `top` has the log-probabilities of the first token's candidates."""
    candidates = [{"token": token, "logprob": logprob} for token, logprob in (top or {}).items()]
    first = {"token": text, "logprob": -0.1, "bytes": None, "top_logprobs": candidates}
    asked, answered = usage
    usage = {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": sum(usage)}
    choice = {"index": 0, "finish_reason": "length"}
    choice |= {"message": {"role": "assistant", "content": text}}
    choice |= {"logprobs": None if top is None else {"content": [first]}}
    fields = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return fields | {"usage": usage, "choices": [choice]}


class Raw(NamedTuple):
    """A reply, byte by byte; `lost` bytes of it never come, and of a status of 0 nothing does."""

    data: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    lost: int = 0
    wait: float = 0.0


class Recorded:
    """What was asked: the bodies of the requests, their texts, and the keys that were sent."""

    def __init__(self):
        self.bodies, self.keys = [], []
        self.url = ""

    @property
    def texts(self):
        return [body["messages"][0]["content"] for body in self.bodies]


@contextmanager
def endpoint(answer):
    """Serve `answer`, a function of the body: a body, a status and a body, or a `Raw` reply."""
    asked, lock = Recorded(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                asked.bodies.append(body)
                asked.keys.append(self.headers["authorization"].removeprefix("Bearer "))
                reply = answer(body) if self.path == "/v1/chat/completions" else (404, {})
            if not isinstance(reply, Raw):
                status, content = reply if isinstance(reply, tuple) else (200, reply)
                reply = Raw(json.dumps(content).encode(), status)
            time.sleep(reply.wait)
            if reply.status == 0:
                return
            self.send_response(reply.status)
            usual = {"content-type": "application/json", "retry-after-ms": "1"}
            usual["content-length"] = str(len(reply.data) + reply.lost)
            for header in (usual | {**reply.headers}).items():
                self.send_header(*header)
            with suppress(OSError):  # whoever asked may have seen enough
                self.end_headers()
                self.wfile.write(reply.data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    asked.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
