"""Whatever an endpoint does, who asks it gets one sentence, or a missing value that is counted."""

import gzip
import json
import math
import re
import sqlite3
from collections import Counter

import pandas as pd
import pytest

from known_endpoint import Raw, completion, endpoint
from trajscore import io
from trajscore.cli.main import main
from trajscore.judging import StepJudge

pytest.importorskip("openai")

KEY = "sk-secret-0123456789"
TOP = {"Yes": math.log(0.9), "No": math.log(0.1)}
GOOD = completion("Yes", TOP)
BYTES = json.dumps(GOOD).encode()
PATH = "/v1/chat/completions"
YEAR = {"retry-after-ms": "", "retry-after": "3e7"}
MISSING = math.nan
REFUSED = None


def choice(**fields):
    return GOOD | {"choices": [GOOD["choices"][0] | fields]}


def tokens(*listed):
    return choice(logprobs={"content": [*listed]})


def top(*candidates):
    return tokens({"token": "Yes", "logprob": -0.1, "top_logprobs": candidates})


def yes(logprob):
    return top({"token": "Yes", "logprob": logprob}, {"token": "No", "logprob": -1.0})


def zipped(data):
    return Raw(data, headers={"content-encoding": "gzip"})


def to(address, status=307):
    return Raw(status=status, headers={"location": address})


# What an endpoint does at the third of eight questions, and what comes of it: a probability, a
# missing value, or an error. Redirects lead to THERE, the address of another endpoint, and to PORT.
BEHAVIOURS = {
    "slow": (Raw(BYTES, wait=0.3), 0.9),
    "zipped": (zipped(gzip.compress(BYTES)), 0.9),
    # no answer was begun
    "busy": ((429, {}), REFUSED),
    "broken": ((500, {"error": "broken"}), REFUSED),
    "broken, on a terminal": (Raw(b"<html>\x1b[2J down", 503), REFUSED),
    "broken, deep": (Raw(b"[" * 100_000, 500), REFUSED),
    "broken, cut": (Raw(b"{", 500, lost=9), REFUSED),
    "forbidden, with the key": ((403, {"error": KEY}), REFUSED),
    # the answer is lost, or is not a chat completion
    "cut": (Raw(BYTES[:50], lost=200), REFUSED),
    "cut at once": (Raw(lost=200), REFUSED),
    "not zipped": (zipped(b"Yes"), REFUSED),
    "too long": (Raw(b" " * 2**25), REFUSED),
    "empty": (Raw(), REFUSED),
    "page": (Raw(b"<html>Sign in</html>", headers={"content-type": "text/html"}), REFUSED),
    "garbage": (Raw(bytes(range(256))), REFUSED),
    "deep": (Raw(b"[" * 100_000 + b"]" * 100_000), REFUSED),
    "null": (Raw(b"null"), REFUSED),
    "error, with the key": ({"error": {"message": f"no such model {KEY}"}}, REFUSED),
    "choices null": (GOOD | {"choices": None}, REFUSED),
    "choices text": (GOOD | {"choices": "Yes"}, REFUSED),
    "choice null": (GOOD | {"choices": [None]}, REFUSED),
    "message absent": (GOOD | {"choices": [{"index": 0}]}, REFUSED),
    "message null": (choice(message=None), REFUSED),
    "content list": (choice(message={"content": [{"type": "text", "text": "Yes"}]}), REFUSED),
    "content null": (choice(message={"content": None}, logprobs=None), MISSING),
    "half a character": (choice(message={"content": "\ud800"}), 0.9),
    # log-probabilities
    "logprobs null": (choice(logprobs=None), REFUSED),
    "tokens null": (choice(logprobs={"content": None}), REFUSED),
    "token null": (tokens(None), REFUSED),
    "candidates null": (tokens({"top_logprobs": None}), REFUSED),
    "candidate null": (top(None), MISSING),
    "logprob null": (yes(None), MISSING),
    "logprob NaN": (yes(math.nan), MISSING),
    "logprob of 0": (yes(-math.inf), 0.0),
    "logprob not recorded": (yes(-9999.0), 0.0),
    "logprob huge": (yes(1e308), REFUSED),
    "logprob rounded": (yes(5e-7), 1 / (1 + math.exp(-1))),
    "logprob positive": (yes(0.5), REFUSED),
    # the tokens that were used
    "usage absent": (GOOD | {"usage": None}, 0.9),
    "usage text": (GOOD | {"usage": "20"}, 0.9),
    "usage huge": (completion("Yes", TOP, (10**30, 1)), 0.9),
    "usage null": (GOOD | {"usage": {"prompt_tokens": None, "completion_tokens": -1}}, 0.9),
    # redirects
    "redirect to a port": (to(f"THERE{PATH}"), REFUSED),
    **{f"redirect {code}": (to(f"THERE{PATH}", code), REFUSED) for code in (301, 302, 303, 308)},
    "redirect to a host": (to(f"http://localhost:PORT{PATH}"), REFUSED),
    "redirect to a scheme": (to(f"https://127.0.0.1:PORT{PATH}"), REFUSED),
    "redirect to itself": (to(PATH), REFUSED),
    "redirect to garbage": (to("http://[::1"), REFUSED),
    "redirect to nothing": (Raw(status=307), REFUSED),
}  # fmt: skip
SLOW = {  # it waits as it likes before it asks again
    "closes": (Raw(status=0), REFUSED),
    "busy, not a number": (Raw(status=429, headers={"retry-after-ms": "nan"}), REFUSED),
    "busy, for a year": (Raw(status=429, headers=YEAR), REFUSED),
}
N_ASKED = {name: {5} for name in [*SLOW, *BEHAVIOURS] if re.match("busy|broken|closes", name)}
N_ASKED |= {"broken, cut": {1}, "redirect to garbage": {1, 5}}  # httpx cannot read that address
ROWS = [pytest.param(name, *row, id=name) for name, row in BEHAVIOURS.items()]
ROWS += [pytest.param(n, *row, id=n, marks=pytest.mark.slow) for n, row in SLOW.items()]


@pytest.fixture
def _log(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    said = [(f"Where is bag {k}?", "In Oslo.") for k in range(8)]
    runs = [[{"role": "user", "content": a}, {"role": "assistant", "content": b}] for a, b in said]
    rows = [{"id": k, "outcome": k % 2, "messages": run} for k, run in enumerate(runs)]
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.usefixtures("_log")
@pytest.mark.parametrize(("name", "reply", "expected"), ROWS)
def test_it_is_refused_in_a_sentence_or_missing_and_nothing_is_paid_twice(
    name, reply, expected, capfd
):
    behaves, n_paid = False, Counter()

    def answer(body):
        text = body["messages"][0]["content"]
        own = GOOD if behaves or "bag 2" not in text else reply
        n_paid[text] += not isinstance(own, tuple) or (isinstance(own, Raw) and own.status == 200)
        if isinstance(own, Raw):
            port = asked.url.removesuffix("/v1").rpartition(":")[2]
            location = own.headers.get("location", "").replace("THERE", there.url[:-3])
            location = {"location": location.replace("PORT", port)} if location else {}
            own = own._replace(headers={**own.headers, **location})
        return own

    with endpoint(lambda _: GOOD) as there, endpoint(answer) as asked:
        words = ["judge", "runs.jsonl", "--model", "m", "--base-url", asked.url]
        words += ["--out", "judged.csv", "--concurrency", "4"]
        code = main(words)
        out, err = capfd.readouterr()
        assert KEY not in out + err
        with sqlite3.connect("judged.csv.cache.sqlite") as cache:
            ((n_kept,),) = cache.execute("SELECT COUNT(*) FROM judge_answers")
        assert max(n_paid.values()) == 1
        n_asked = Counter(asked.texts)
        assert max(n_asked.values()) in N_ASKED.get(name, {1})
        if expected is REFUSED:
            assert code == 2
            assert re.fullmatch(r"[^\n]+\n", err)
            assert err[:-1].isprintable()
            assert asked.url in err
            assert "run '2' (row 2), step 1" in err
            assert n_kept == sum(n for text, n in n_paid.items() if "bag 2" not in text)
            behaves = True
            assert main(words) == 0
        else:
            assert (code, err, n_kept) == (0, "", 8)
            assert ("Missing: 1 of 8" in out) == math.isnan(expected)
            assert ("for 1 answer" in out) == name.startswith("usage")
            assert main([*words, "--dry-run"]) == 0
            assert "0 requests, 8 from" in capfd.readouterr().out
        judged = pd.read_csv("judged.csv")["judge"]
        third = 0.9 if expected is REFUSED else expected
        assert judged.tolist() == pytest.approx([0.9, 0.9, third, *[0.9] * 5], nan_ok=True)
        assert [n for text, n in n_paid.items() if "bag 2" not in text] == [1] * 7
    assert not there.bodies


def test_answers_that_are_under_way_when_another_fails_are_kept(tmp_path):
    runs = [io.Run(str(k), [io.Step("agent", f"bag {k}.")]) for k in range(30)]

    def answer(body):
        fails = "bag 3." in body["messages"][0]["content"]
        return (400, {}) if fails else Raw(BYTES, wait=0.3)

    with endpoint(answer) as asked:
        judge = StepJudge("m", asked.url, cache=tmp_path / "c.sqlite")
        with pytest.raises(ValueError, match="run '3'"):
            judge.transform(runs)
        n_asked = len(asked.bodies)
        assert 4 <= n_asked < 30
        judge.transform(runs[:3] + runs[4:])
        assert len(asked.bodies) == 30
        assert len(set(asked.texts)) == 30


def test_a_cache_that_breaks_is_named(tmp_path):
    cache = tmp_path / "c.sqlite"

    def answer(body):
        with sqlite3.connect(cache) as database:
            database.execute("DROP TABLE judge_answers")
        return GOOD

    with endpoint(answer) as asked, pytest.raises(ValueError, match=r"c\.sqlite cannot be used"):
        StepJudge("m", asked.url, cache=cache).transform([io.Run("a", [io.Step("agent", "Hi")])])
