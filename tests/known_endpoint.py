"""An endpoint of OpenAI's chat completions on this machine, which records what it is asked."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


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
    """Serve `answer`, a function of the body that returns a body, or a status and a body."""
    asked, lock = Recorded(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                asked.bodies.append(body)
                asked.keys.append(self.headers["authorization"].removeprefix("Bearer "))
                reply = answer(body) if self.path == "/v1/chat/completions" else (404, {})
            status, content = reply if isinstance(reply, tuple) else (200, reply)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(data)

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
