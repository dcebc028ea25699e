"""The dispatcher with real processes: gathering, deadlines, models that hang, die or eat, reloading, closing."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from time import monotonic
from typing import Any

import pytest

from fasterce.serve.messages import (
    DeadlineExceeded,
    InvalidRequest,
    NotReady,
    Overloaded,
    ReloadError,
    StartError,
    UnknownArtifact,
    WorkerLost,
    WorkerResponse,
)
from fasterce.serve.settings import ServedArtifact, Settings
from fasterce.serve.workers.dispatcher import Dispatcher
from fasterce.serve.workers.explain import BatchExplainer
from tests.serve.models import Moody, saved
from tests.serve.service import alive
from tests.serve.workers.running import ROWS, Running, descriptors, question, running, wait_for

APART = ("ids", "time", "metrics")
SOON = 0.25
# One after another each costs an worker; `HANGS=100` is what the service promises, and takes a minute.
HANGS = int(os.environ.get("HANGS", "20"))


@pytest.fixture(scope="module")
def up(folder: Path) -> Iterator[Running]:
    with running(folder, early=True) as started:
        started.whole()
        yield started


@pytest.fixture(scope="module")
def other_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("workers") / "other.fasterce"
    saved(where, Moody(calm=True), seed=3)
    return where


def replaced(where: Path, by: Path) -> None:
    """Another version in the same place."""
    copytree(by, where.with_suffix(".new"))
    where.rename(where.with_suffix(".old"))
    where.with_suffix(".new").rename(where)


def content(answer: Any) -> dict[str, Any]:
    assert isinstance(answer, WorkerResponse), repr(answer)
    return {part: value for part, value in json.loads(answer.records[0].body).items() if part not in APART}


def statuses(answers: list[Any]) -> list[str]:
    return [one.records[0].status if isinstance(one, WorkerResponse) else type(one).__name__ for one in answers]


def test_answers_are_those_of_one_process(up: Running, folder: Path) -> None:
    here = BatchExplainer(Settings((ServedArtifact("moody", folder, "tests.serve.models:moody"),)))
    for number, answer in enumerate(up.ask(*(question(k) for k in range(12)))):
        alone = here.explain([question(number)]).outcomes[0]
        assert not isinstance(alone, InvalidRequest)
        once = {part: value for part, value in json.loads(alone[0].body).items() if part not in APART}
        assert content(answer) == once


def test_questions_asked_alike_are_asked_together(up: Running) -> None:
    alike = up.ask(*(question(k) for k in range(20)))
    assert max(one.usage.batch_rows for one in alike if isinstance(one, WorkerResponse)) >= 10
    mixed = up.ask(*(question(k, method=method) for k in range(4) for method in ("closest", "sparse")))
    assert statuses(mixed) == ["found"] * 8
    assert max(one.usage.batch_rows for one in mixed if isinstance(one, WorkerResponse)) <= 4
    asked = [content(one)["configuration"]["options"]["method"] for one in mixed]
    assert asked == ["closest", "sparse"] * 4


def test_a_question_of_many_rows_is_cut_and_answered_as_one(up: Running) -> None:
    many = replace(question(0), rows=tuple(ROWS[k % len(ROWS)] for k in range(100)))
    (answer,) = up.ask(many)
    assert isinstance(answer, WorkerResponse)
    assert len(answer.records) == answer.usage.batch_rows == 100
    assert len({one.id for one in answer.records}) == 100
    singles = [content(one) for one in up.ask(*(question(k) for k in range(3)))]
    bodies = [json.loads(one.body) for one in answer.records]
    assert [body["ids"]["row"] for body in bodies] == list(range(100))
    for k, single in enumerate(singles):
        for place in (k, k + 40, k + 80):
            assert {part: value for part, value in bodies[place].items() if part not in APART} == single


def test_small_requests_go_between_the_pieces_of_a_large_one(up: Running) -> None:
    large = replace(question(0), rows=tuple(ROWS[k % len(ROWS)] for k in range(256)), client="large", queue="large")

    async def both() -> list[str]:
        done: list[str] = []

        async def run(request: Any, name: str) -> None:
            await up.dispatcher.explain(request)
            done.append(name)

        tasks = [asyncio.ensure_future(run(large, "large"))]
        await asyncio.sleep(0.01)
        for k in range(3):
            await run(replace(question(k), client="small", queue="small"), "small")
        await asyncio.gather(*tasks)
        return done

    up.whole()
    assert up.run(both()) == ["small"] * 3 + ["large"]


def test_one_client_cannot_fill_the_queue_for_another(folder: Path) -> None:
    with running(folder, most_waiting=8) as few:
        few.whole()
        greedy = [replace(question(k, mood="slow"), client="greedy", queue="greedy") for k in range(30)]
        answers = few.ask(*greedy, *(replace(question(k), client="modest", queue="modest") for k in range(3)))
        assert statuses(answers[:30]).count("Overloaded") == 22
        assert statuses(answers[30:]) == ["found"] * 3


def test_predictions_without_explanations(up: Running) -> None:
    wanted = replace(question(0), rows=tuple(ROWS[:3]), action="predict")
    (answer,) = up.ask(wanted)
    assert isinstance(answer, WorkerResponse)
    assert (answer.predictions, answer.records) == (("bad",) * 3, ())
    (wrong,) = up.ask(replace(wanted, rows=(ROWS[0], ROWS[1] | {"age": "x"})))
    assert isinstance(wrong, InvalidRequest)
    assert wrong.field == "instances[1]"


@pytest.mark.parametrize("mood", ["raises", "nan", "shape", "count", "lies", "eats"])
def test_a_model_that_fails_is_a_status(up: Running, mood: str) -> None:
    assert statuses(up.ask(question(0), question(1, mood=mood), question(2))) == ["found", "model_error", "found"]


def test_wrong_questions_are_refused(up: Running) -> None:
    wrong, unlike, right = up.ask(question(0, n=0), question(ROWS[0] | {"aeg": 3}), question(0))
    assert isinstance(wrong, InvalidRequest)
    assert wrong.field == "n"
    assert isinstance(unlike, InvalidRequest)
    assert unlike.field == "rows[0].aeg"
    assert isinstance(right, WorkerResponse)
    (unknown,) = up.ask(replace(question(0), artifact="nobody"))
    assert isinstance(unknown, UnknownArtifact)
    (unwritable,) = up.ask(replace(question(0), options={"constraints": {1, 2}}))
    assert isinstance(unwritable, InvalidRequest)


def test_a_hanging_model_is_late_in_time_and_the_next_is_answered(up: Running) -> None:
    up.whole()
    restarts, started = up.dispatcher.load().restarts, monotonic()
    (late,) = up.ask(question(0, seconds=0.4, mood="hangs"))
    assert isinstance(late, DeadlineExceeded)
    assert 0.4 <= monotonic() - started < 0.4 + SOON
    began = monotonic()
    assert statuses(up.ask(question(1))) == ["found"]
    assert monotonic() - began < 1.0
    assert up.dispatcher.load().restarts == restarts + 1


def test_company_of_a_hanging_question_is_asked_again(up: Running) -> None:
    up.whole()
    answers = up.ask(question(0), question(1, seconds=0.5, mood="hangs"), question(2, seconds=0.8), question(3))
    assert statuses(answers) in (
        ["found", "DeadlineExceeded", "found", "found"],
        ["found", "DeadlineExceeded", "DeadlineExceeded", "found"],
    )


@pytest.mark.parametrize("mood", ["exits", "killed"])
def test_an_engine_that_dies_takes_only_its_question_with_it(up: Running, mood: str) -> None:
    up.whole()
    answers = up.ask(*(question(k) for k in range(3)), question(3, mood=mood), *(question(k) for k in range(4, 7)))
    assert statuses(answers) == ["found"] * 3 + ["WorkerLost"] + ["found"] * 3
    assert isinstance(answers[3], WorkerLost)


def test_an_engine_killed_from_outside_is_replaced(up: Running) -> None:
    up.whole()
    restarts = up.dispatcher.load().restarts
    os.kill(up.pids()[0], signal.SIGKILL)
    wait_for(lambda: up.dispatcher.load().restarts == restarts + 1)
    assert up.dispatcher.ready
    assert statuses(up.ask(question(1))) == ["found"]
    up.whole(5.0)


def test_a_long_search_ends_by_itself(up: Running) -> None:
    up.whole()
    restarts = up.dispatcher.load().restarts
    (answer,) = up.ask(question(0, seconds=1.0, mood="slow", method="all", n=3))
    assert isinstance(answer, WorkerResponse)
    found = json.loads(answer.records[0].body)
    assert not found["replayable"]
    assert found["configuration"]["options"]["deadline"] < 1.0
    assert up.dispatcher.load().restarts == restarts


def test_what_may_not_wait_is_told_at_once(folder: Path) -> None:
    with running(folder, most_waiting=8) as few:
        few.whole()
        began = monotonic()
        answers = few.ask(*(question(k, mood="slow") for k in range(30)))
        told = [one for one in answers if isinstance(one, Overloaded)]
        assert len(told) == 22
        assert all(0 < one.retry_after <= 10 for one in told)
        assert statuses(answers)[:8] == ["found"] * 8
        assert monotonic() - began < 20
        assert few.dispatcher.load().waiting_rows == few.dispatcher.load().running_rows == 0
        assert statuses(few.ask(question(1))) == ["found"]


def test_hanging_questions_leave_nothing_behind(folder: Path) -> None:
    threads = threading.active_count()
    with running(folder, environment={"PYTHONWARNINGS": "ignore"}) as up:
        up.whole()
        pids, before = set(up.pids()), descriptors()
        for _ in range(HANGS):
            wait_for(lambda: up.dispatcher.load().workers and not up.dispatcher.load().busy)
            pids |= set(up.pids())
            assert statuses(up.ask(question(0, seconds=0.03, mood="hangs"))) == ["DeadlineExceeded"]
        at_once = up.ask(*(question(k % 40, seconds=0.3, mood="hangs", n=1 + k % 3) for k in range(100)))
        # Some are sent away at once, since they would be late.
        assert set(statuses(at_once)) <= {"DeadlineExceeded", "Overloaded"}
        assert "DeadlineExceeded" in statuses(at_once)
        up.whole()
        assert up.dispatcher.load().restarts >= HANGS
        assert statuses(up.ask(question(1))) == ["found"]
        assert descriptors() <= before
        assert len([pid for pid in pids if alive(pid)]) <= 3
        pids |= set(up.pids())
        up.stop()
    assert not [pid for pid in pids if alive(pid)]
    assert threading.active_count() == threads


def test_a_model_that_takes_all_memory_is_stopped(folder: Path) -> None:
    with running(folder, most_memory_mb=700) as up:
        up.whole()
        assert statuses(up.ask(question(0), question(1, mood="grows"), question(2))) == ["found", "model_error", "found"]


def test_a_caller_who_goes_away_is_forgotten(up: Running) -> None:
    async def gone() -> None:
        task = asyncio.ensure_future(up.dispatcher.explain(question(0, seconds=0.6, mood="hangs")))
        waiting = asyncio.ensure_future(up.dispatcher.explain(question(0, seconds=0.6, mood="slow")))
        await asyncio.sleep(0.05)
        task.cancel()
        waiting.cancel()
        await asyncio.gather(task, waiting, return_exceptions=True)

    up.whole()
    up.run(gone())
    assert up.dispatcher.load().waiting_rows == 0
    assert statuses(up.ask(question(1))) == ["found"]
    wait_for(lambda: up.dispatcher.load().running_rows == 0)


def test_a_new_version_takes_over_without_a_request_dropped(folder: Path, other_folder: Path, tmp_path: Path) -> None:
    where = tmp_path / "served.fasterce"
    copytree(folder, where)
    with running(where, workers=2) as up:
        first = up.dispatcher.describe().artifact_digest
        under_way: list[Any] = []
        stop = threading.Event()

        def keep_asking() -> None:
            while not stop.is_set():
                under_way.extend(up.ask(*(question(k) for k in range(3))))

        asking = threading.Thread(target=keep_asking)
        asking.start()
        replaced(where, other_folder)
        (described,) = up.run(up.dispatcher.reload())
        stop.set()
        asking.join()
        assert described.artifact_digest != first
        assert up.dispatcher.describe("moody").artifact_digest == described.artifact_digest
        assert up.dispatcher.load().generation == 2
        assert set(statuses(under_way)) == {"found"}
        (after,) = up.ask(question(0))
        assert isinstance(after, WorkerResponse), repr(after)
        assert content(after)["digests"]["artifact"] == described.artifact_digest == after.description.artifact_digest
        up.whole()
        assert len(up.dispatcher._pool.workers) == 3
        (where / "manifest.json").write_text("{}")
        with pytest.raises(ReloadError):
            up.run(up.dispatcher.reload())
        assert up.dispatcher.load().generation == 2
        assert statuses(up.ask(question(0))) == ["found"]


def test_engines_that_start_later_serve_the_same_version_or_all_change(
    folder: Path, other_folder: Path, tmp_path: Path
) -> None:
    where = tmp_path / "served.fasterce"
    copytree(folder, where)
    with running(where) as up:
        up.whole()
        replaced(where, other_folder)
        os.kill(up.pids()[0], signal.SIGKILL)
        wait_for(lambda: up.dispatcher.load().generation == 2, 20)
        (answer,) = up.ask(question(0))
        assert content(answer)["digests"]["artifact"] == up.dispatcher.describe().artifact_digest
        up.whole()


def test_the_process_that_makes_engines_is_made_again(folder: Path) -> None:
    with running(folder) as up:
        up.whole()
        before = up.pids()
        os.kill(before[-1], signal.SIGKILL)
        wait_for(lambda: not any(alive(pid) for pid in before))
        assert statuses(up.ask(question(0))) == ["found"]
        up.whole()


def test_closing_finishes_what_was_accepted(folder: Path) -> None:
    with running(folder) as up:
        up.whole()
        pids = up.pids()

        async def close_while_asked() -> list[Any]:
            accepted = [asyncio.ensure_future(up.dispatcher.explain(question(k, mood="slow"))) for k in range(5)]
            await asyncio.sleep(0.02)
            closing = asyncio.ensure_future(up.dispatcher.close(10.0))
            await asyncio.sleep(0.02)
            assert not up.dispatcher.ready
            with pytest.raises(NotReady):
                await up.dispatcher.explain(question(0))
            found = await asyncio.gather(*accepted, return_exceptions=True)
            await closing
            return list(found)

        assert statuses(up.run(close_while_asked())) == ["found"] * 5
        assert not [pid for pid in pids if alive(pid)]


def test_closing_does_not_wait_for_ever(folder: Path) -> None:
    with running(folder) as up:
        up.whole()
        pids = up.pids()

        async def close_while_hanging() -> Any:
            hanging = asyncio.ensure_future(up.dispatcher.explain(question(0, mood="hangs")))
            await asyncio.sleep(0.05)
            began = monotonic()
            await up.dispatcher.close(0.3)
            assert monotonic() - began < 1.5
            return (await asyncio.gather(hanging, return_exceptions=True))[0]

        assert isinstance(up.run(close_while_hanging()), NotReady)
        assert not [pid for pid in pids if alive(pid)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"folder": Path("/nowhere")}, "nowhere"),
        ({"model": "tests.serve.models:nobody"}, "nobody"),
        ({"model": "tests.serve.models:dies()"}, "died"),
    ],
)
def test_what_cannot_be_loaded_is_said(folder: Path, change: dict[str, Any], said: str) -> None:
    async def start() -> None:
        dispatcher = Dispatcher(Settings((replace(ServedArtifact("moody", folder, "tests.serve.models:moody"), **change),)))
        with pytest.raises(StartError, match=said):
            await dispatcher.start()
        assert not dispatcher.ready
        with pytest.raises(NotReady):
            await dispatcher.explain(question(0))

    asyncio.run(start())


def test_the_front_imports_no_numpy() -> None:
    program = (
        "import fasterce.serve.workers.dispatcher, sys; print(*{'numpy', 'pandas', 'sklearn', 'torch'} & set(sys.modules))"
    )
    path = os.pathsep.join(one for one in sys.path if one)
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    assert found.stdout.split() == []


FRONT = """
import asyncio, sys
from pathlib import Path
from tests.serve.workers.running import Running, question
from fasterce.serve.settings import ServedArtifact, Settings
up = Running(Settings((ServedArtifact("moody", Path(sys.argv[1]), "tests.serve.models:moody"),)))
up.whole()
asyncio.run_coroutine_threadsafe(up.dispatcher.explain(question(0, mood="hangs", seconds=600)), up.loop)
asyncio.run_coroutine_threadsafe(asyncio.sleep(0.2), up.loop).result()
print(*up.pids(), flush=True)
up.thread.join()
"""


def test_a_front_that_is_killed_leaves_no_engines(folder: Path) -> None:
    path = os.pathsep.join(one for one in sys.path if one)
    command = [sys.executable, "-c", FRONT, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}) as front:
        assert front.stdout is not None
        pids = [int(pid) for pid in front.stdout.readline().split()]
        assert len(pids) == 3
        assert all(alive(pid) for pid in pids)
        front.kill()
    wait_for(lambda: not any(alive(pid) for pid in pids), 5.0)
