"""Requests: tried again where that may help, several at once but not too many, and always an end."""

import json
import os
import pickle
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.errors import InputError, MissingExtraError, ModelError
from fasterce.models.http import MLflowModel
from fasterce.models.predictor import Predictor
from tests.models.http.server import Received, Reply, serving, table

PEOPLE = pd.DataFrame({"age": [41, 57, 23], "name": ["Ottilie", "Jo", "Xaver"], "pay": [1.5, np.nan, 2.25]})


def older_than_30(request: Received) -> object:
    return {"predictions": [int(age > 30) for age in table(request)["age"]]}


def quick(url: str, **more: object) -> MLflowModel:
    return MLflowModel(url, **{"timeout": 5.0, "backoff": 0.001, **more})  # type: ignore[arg-type]


def failing_first(times: int, reply: Reply) -> Callable[[Received], object]:
    left = [times]

    def behave(request: Received) -> object:
        left[0] -= 1
        return reply if left[0] >= 0 else older_than_30(request)

    return behave


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_request_to_a_busy_server_is_repeated(status: int) -> None:
    with serving(failing_first(2, Reply(status, b"busy"))) as far:
        assert quick(far.url).predict(PEOPLE).tolist() == [1, 1, 0]
        assert far.requests == 3


@pytest.mark.parametrize("status", [400, 401, 404, 422, 500])
def test_a_request_that_is_refused_is_not_repeated(status: int) -> None:
    with serving(lambda _: Reply(status, b'{"error": "no"}')) as far:
        with pytest.raises(ModelError, match=f"must accept the request; got {status}: .*no"):
            quick(far.url).predict(PEOPLE)
        assert far.requests == 1


def test_a_far_side_that_stays_busy_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with serving(lambda _: Reply(503, b"down")) as far:
        with pytest.raises(ModelError, match=r"answered 503: down \(tried 4 times\)"):
            quick(far.url, backoff=0.2).predict(PEOPLE)
        assert far.requests == 4
    assert [0.1 <= waits[0] <= 0.2, 0.2 <= waits[1] <= 0.4, 0.4 <= waits[2] <= 0.8] == [True] * 3


@pytest.mark.parametrize(("header", "low", "high"), [("2", 2, 2), ("3600", 10, 10), ("soon", 0, 0.01), ("-5", 0, 0.01)])
def test_retry_after_is_honoured_up_to_a_limit(monkeypatch: pytest.MonkeyPatch, header: str, low: float, high: float) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with serving(failing_first(1, Reply(429, b"", {"Retry-After": header}))) as far:
        quick(far.url, backoff=0.01).predict(PEOPLE)
    assert len(waits) == 1
    assert low <= waits[0] <= high


def test_retry_after_may_be_a_date(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    past = {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}
    with serving(failing_first(1, Reply(503, b"", past))) as far:
        quick(far.url, backoff=5.0).predict(PEOPLE)
    assert waits == [0.0]


def test_a_request_to_a_hanging_server_times_out_and_is_repeated() -> None:
    hang = threading.Event()

    def behave(request: Received) -> object:
        if far.requests == 1:
            hang.wait(5)
        return older_than_30(request)

    with serving(behave) as far:
        assert quick(far.url, timeout=0.2).predict(PEOPLE).tolist() == [1, 1, 0]
        assert far.requests == 2
        hang.set()


def test_a_slow_response_times_out_though_every_chunk_is_in_time() -> None:
    body = json.dumps({"predictions": [1, 1, 0]}).encode() + b" " * 1000
    with serving(lambda _: Reply(body=body, drip=0.01)) as far:
        started = time.perf_counter()
        with pytest.raises(ModelError, match=r"did not finish its answer within 0\.2 s"):
            quick(far.url, timeout=0.2, retries=0).predict(PEOPLE)
        assert time.perf_counter() - started < 2


def test_headers_that_drip_for_ever_do_not_hang_the_caller() -> None:
    stop = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while not stop.wait(0.02):
                try:
                    connection.sendall(b"a")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        started = time.perf_counter()
        with pytest.raises(ModelError, match="without responding"):
            quick(url, timeout=0.2, retries=0, slack=0.2, longest_wait=0.0).predict(PEOPLE)
        assert time.perf_counter() - started < 3
    finally:
        stop.set()
        thread.join()
        listening.close()


def test_nobody_listening_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(ModelError, match=r"/invocations cannot be reached \(ConnectError.*\) \(tried 4 times\)"):
        quick(url).predict(PEOPLE)


def test_batches_come_back_in_order_over_few_connections_and_never_too_many_at_once() -> None:
    frame = pd.DataFrame({"age": np.arange(2_000) % 61})

    def behave(request: Received) -> object:
        time.sleep(0.03 if table(request)["age"].iloc[0] % 2 else 0.005)
        return older_than_30(request)

    with serving(behave) as far, quick(far.url, batch_rows=77, concurrency=3) as model:
        for _ in range(2):
            assert (model.predict(frame) == (frame["age"] > 30)).all()
        assert far.requests == 2 * 26
        assert far.most_at_once == 3
        assert far.connections <= 3


def test_the_bound_holds_for_callers_in_several_threads() -> None:
    def behave(request: Received) -> object:
        time.sleep(0.01)
        return older_than_30(request)

    with serving(behave) as far, quick(far.url, batch_rows=1, concurrency=2) as model, ThreadPoolExecutor(4) as callers:
        predictions = list(callers.map(model.predict, [PEOPLE] * 8))
    assert [answer.tolist() for answer in predictions] == [[1, 1, 0]] * 8
    assert far.most_at_once == 2


def test_one_failed_batch_ends_the_others() -> None:
    frame = pd.DataFrame({"age": np.arange(400)})

    def behave(request: Received) -> object:
        time.sleep(0.01)
        return Reply(422, b"bad") if table(request)["age"].iloc[0] == 2 else older_than_30(request)

    with serving(behave) as far:
        with pytest.raises(ModelError, match="422"):
            quick(far.url, batch_rows=1, concurrency=2).predict(frame)
        assert far.requests < 20


class TestServerDown:
    """A predictor halves what a model fails on: it must not wait for a dead server each time."""

    def predictor(self, model: MLflowModel) -> Predictor:
        frame = pd.DataFrame({"age": np.arange(64)})
        return Predictor(model, Table.like(frame, Schema.infer(frame)), [0, 1])

    def test_halving_does_not_call_a_dead_server_again_and_again(self) -> None:
        with serving(lambda _: Reply(503, b"down")) as far, quick(far.url, backoff=0.05) as model:
            predictor = self.predictor(model)
            started = time.perf_counter()
            predictions = predictor.evaluate_labels(np.arange(64.0)[:, None])
            assert time.perf_counter() - started < 2
            assert (predictions.classes == -1).all()
            assert predictor.usage.calls > 10
            assert far.requests == 4
            assert predictor.failure is not None
            assert "a moment ago" in predictor.failure.text()

    @pytest.mark.parametrize("reply", [Reply(401, b"who?"), Reply(404, b"where?"), Reply(302, b"", {"Location": "/login"})])
    def test_nor_one_that_refuses_everybody(self, reply: Reply) -> None:
        with serving(lambda _: reply) as far, quick(far.url) as model:
            assert (self.predictor(model).evaluate_labels(np.arange(64.0)[:, None]).classes == -1).all()
            assert far.requests == 1

    def test_a_bad_row_is_still_found_by_halving(self) -> None:
        def behave(request: Received) -> object:
            ages = table(request)["age"]
            return Reply(500, b"cannot do 13") if (ages == 13).any() else older_than_30(request)

        with serving(behave) as far, quick(far.url) as model:
            classes = self.predictor(model).evaluate_labels(np.arange(64.0)[:, None]).classes
        assert np.flatnonzero(classes == -1).tolist() == [13]
        assert far.requests == 1 + 2 * 6

    def test_after_a_rest_a_single_try_decides(self) -> None:
        reply: list[object] = [Reply(503, b"down")]
        with serving(lambda request: reply[0] or older_than_30(request)) as far, quick(far.url, rest=0.1) as model:
            for expected in (4, 5):
                with pytest.raises(ModelError, match="answered 503"):
                    model.predict(PEOPLE)
                assert far.requests == expected
                with pytest.raises(ModelError, match="a moment ago"):
                    model.predict(PEOPLE)
                assert far.requests == expected
                time.sleep(0.12)
            reply[0] = None
            assert model.predict(PEOPLE).tolist() == [1, 1, 0]
            assert model.predict(PEOPLE).tolist() == [1, 1, 0]


NONSENSE = {
    "not JSON": (Reply(body=b"<html><body>Please log in</body></html>"), "must answer with JSON; got .*: Please log in"),
    "empty": (Reply(body=b""), "must answer with JSON; got .*an empty body"),
    "binary": (Reply(body=bytes(range(256))), "must answer with JSON"),
    "deep": (Reply(body=b"[" * 200_000), "must answer with JSON"),
    "NaN": (Reply(body=b'{"predictions": [1, NaN, 0]}'), "finite numbers; got NaN"),
    "infinite": (Reply(body=b'{"predictions": [1, Infinity, 0]}'), "finite numbers; got Infinity"),
    "too few": ({"predictions": [1, 0]}, "one value per row; got 2 for 3 rows"),
    "too many": ({"predictions": [1, 0, 1, 0]}, "got 4 for 3 rows"),
    "missing": ({"predictions": [1, None, 0]}, "a label for every row; got a missing one"),
    "nested": ({"predictions": [[1], [[0]], [1]]}, "one label or number per row; got something nested"),
    "ragged": ({"predictions": [[0.5, 0.5], [1.0], [0.5, 0.5]]}, "rows of different lengths"),
    "no chances": ({"predictions": [[0.5, 2.5], [0.1, 0.9], [0.5, 0.5]]}, "between 0 and 1"),
    "wrong sums": ({"predictions": [[0.9, 0.9], [0.1, 0.9], [0.5, 0.5]]}, "sum to 1"),
    "text chances": ({"predictions": [["0.5", "0.5"]] * 3}, "probabilities as finite numbers"),
    "error body": ({"error_code": "BAD_REQUEST", "message": "x"}, "'predictions'; got an error"),
    "something else": ({"answer": [1, 1, 0]}, "'predictions'; got something else"),
    "one value": ({"predictions": 1}, "a list of predictions; got a int"),
    "null": (Reply(body=b"null"), "a list of predictions; got a NoneType"),
    "uneven records": ({"predictions": [{"a": 1}, {"b": 1}, {"a": 0}]}, "records of the same keys"),
    "strange records": (
        {"predictions": [{"a": 1, "b": 2, "c": 3}] * 3},
        r"\(label=, chances=\); got the parts 'a', 'b', 'c'",
    ),
    "redirected": (
        Reply(302, b"", {"Location": "https://sso.example/login?next=secret"}),
        r"302.* https://sso.example/login \(",
    ),
    "broken zip": (Reply(body=b"no zip", headers={"Content-Encoding": "gzip"}), "cannot be unpacked"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_one_sentence(name: str) -> None:
    reply, sentence = NONSENSE[name]
    with serving(lambda _: reply) as far:
        with pytest.raises(ModelError, match=sentence) as caught:
            quick(far.url).predict(PEOPLE)
        assert far.requests == 1
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 220


def test_a_response_too_large_is_not_read() -> None:
    with serving(lambda _: Reply(body=b" " * 100_000)) as far, pytest.raises(ModelError, match="at most 10,000 bytes"):
        quick(far.url, most_bytes=10_000).predict(PEOPLE)


@pytest.mark.parametrize("status", [200, 400, 422, 500, 503])
def test_what_was_sent_is_not_repeated(status: int) -> None:
    """Far sides like to quote their input in errors."""

    def behave(request: Received) -> Reply:
        rows = request.body["dataframe_split"]["data"]
        return Reply(status, f"cannot use {json.dumps(rows)} nor {rows} of {rows[0][1]}".encode())

    with serving(behave) as far, pytest.raises(ModelError) as caught:
        quick(far.url, retries=0).predict(PEOPLE)
    message = str(caught.value).replace(far.url, "")
    assert not any(value in message for value in ("Ottilie", "Jo", "Xaver", "41", "57", "23", "2.25"))
    assert "cannot use" in message


def test_words_that_only_hold_what_was_sent_are_repeated() -> None:
    with serving(lambda _: Reply(500, b"shut down by Jo, who is jobless")) as far, pytest.raises(ModelError) as caught:
        quick(far.url).predict(PEOPLE.assign(name=["own", "Jo", "less"]))
    assert "shut down by …, who is jobless" in str(caught.value)


def test_tokens_and_passwords_are_never_shown() -> None:
    headers = {"X-Token": "s3cret"}
    with serving(lambda request: Reply(500, f"wrong: {request.headers['x-token']}".encode())) as far:
        url = far.url.replace("http://", "http://me:pa55@") + "?key=k3y"
        model = quick(url, headers=headers)
        with pytest.raises(ModelError) as caught:
            model.predict(PEOPLE)
        assert far.usage[0].headers["x-token"] == "s3cret"
        assert far.usage[0].path == "/invocations?key=k3y"
    for text in (repr(model), str(caught.value), repr(model._client.options)):
        assert not any(secret in text for secret in ("s3cret", "pa55", "k3y"))


def test_proxies_of_the_environment_are_used_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(older_than_30) as far, serving(lambda _: Reply(500, b"I am the proxy")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert quick(far.url).predict(PEOPLE).tolist() == [1, 1, 0]
        with pytest.raises(ModelError, match="I am the proxy"):
            quick(far.url, trust_env=True).predict(PEOPLE)


def test_it_is_pickled_without_its_connections() -> None:
    with serving(older_than_30) as far:
        model = quick(far.url, headers={"X-Token": "t"})
        model.predict(PEOPLE)
        again = pickle.loads(pickle.dumps(model))
        assert again.predict(PEOPLE).tolist() == [1, 1, 0]
        assert far.usage[-1].headers["x-token"] == "t"
        assert far.connections == 2


def test_after_closing_it_opens_again() -> None:
    with serving(older_than_30) as far, quick(far.url) as model:
        model.predict(PEOPLE)
        model.close()
        model.close()
        assert model.predict(PEOPLE).tolist() == [1, 1, 0]
        assert far.connections == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_connections_of_its_own() -> None:
    with serving(older_than_30) as far:
        model = quick(far.url)
        model.predict(PEOPLE)
        child = os.fork()
        if child == 0:
            os._exit(0 if model.predict(PEOPLE).tolist() == [1, 1, 0] else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert model.predict(PEOPLE).tolist() == [1, 1, 0]
        assert far.connections == 2


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"timeout": 0}, "timeout must be a number"),
        ({"timeout": float("nan")}, "timeout must be a number"),
        ({"retries": -1}, "retries must be a whole number"),
        ({"retries": 1.5}, "retries must be a whole number"),
        ({"concurrency": 0}, "concurrency must be a whole number"),
        ({"batch_rows": 0}, "batch_rows must be a whole number"),
        ({"classes": ["a"]}, "at least two different"),
        ({"gives": "both"}, "gives must be"),
        ({"headers": {"X-Token": "a\nb"}}, "printable ASCII text; got something else in 'X-Token'"),
        ({"headers": {"X-Token": "ä"}}, "printable ASCII"),
        ({"headers": {"X-Token": 5}}, "printable ASCII"),
    ],
)
def test_wrong_settings_are_reported_at_once(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        MLflowModel("http://127.0.0.1:1", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["model.onnx", "file:///etc/passwd", "http://", "http://a b", "http://a:b/", 5, None])
def test_wrong_addresses_are_reported_at_once(url: object) -> None:
    with pytest.raises(InputError, match="url must be an address"):
        MLflowModel(url)  # type: ignore[arg-type]


def test_a_file_of_certificates_must_be_one(tmp_path: object) -> None:
    with pytest.raises(InputError, match="ca_file must be a file of certificates"):
        MLflowModel("https://127.0.0.1:1", ca_file=f"{tmp_path}/none.pem").predict(PEOPLE)


def test_without_httpx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"fasterce\[http\]"):
        MLflowModel("http://127.0.0.1:1").predict(PEOPLE)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_certificates_are_checked(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    named = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *named], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(older_than_30, context) as far:
        with pytest.raises(ModelError, match=r"cannot be reached \(ConnectError.*CERTIFICATE_VERIFY_FAILED"):
            quick(far.url, retries=0).predict(PEOPLE)
        assert far.requests == 0
        assert quick(far.url, ca_file=certificate).predict(PEOPLE).tolist() == [1, 1, 0]
