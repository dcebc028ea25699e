"""The loop of a worker process: load the artifacts, then explain one batch after another."""

import gc
import socket
from contextlib import suppress
from dataclasses import replace

from fasterce.errors import ArtifactError, FasterCEError, MissingExtraError, ModelError, Problem, make_problem
from fasterce.io.processes import Header, limit_memory, packed, receive, settle_memory
from fasterce.serve.messages import InvalidRequest
from fasterce.serve.workers import wire
from fasterce.serve.workers.explain import BatchExplainer
from fasterce.serve.workers.wire import CHECK

PICKLE_NOT_TRUSTED = "models.pickle_not_trusted"
# Errors whose class decides the exit code.
KINDS = (ArtifactError, MissingExtraError, ModelError)


def run_worker(connection: socket.socket) -> None:
    """Report that the artifacts are loaded, and reply to batches until the HTTP process is gone."""
    with suppress(EOFError, ConnectionError):
        settings, is_first = wire.unpack_settings(receive(connection)[0])
        limit_memory(settings.most_memory_mb)
        try:
            explainer = BatchExplainer(settings, efforts=is_first)
            explainer.warm_up()
        except Exception as error:
            kind = next((kind.__name__ for kind in KINDS if isinstance(error, kind)), "")
            connection.sendall(packed({"failed": load_problem(error).to_dict(), "kind": kind}))
            return
        settle_memory()
        gc.enable()
        connection.sendall(packed({"ready": [vars(one) for one in explainer.descriptions]}))
        while True:
            header, _ = receive(connection)
            if CHECK in header:
                problems = explainer.model_problems()
                connection.sendall(packed({CHECK: {name: problem.to_dict() for name, problem in problems.items()}}))
                continue
            connection.sendall(packed({"taken": len(header["requests"])}))
            connection.sendall(packed(*reply(explainer, header)))


def load_problem(error: Exception) -> Problem:
    """Return why an artifact could not be loaded. A service does not offer to trust a pickle."""
    if isinstance(error, FasterCEError):
        problem = error.problem
        return replace(problem, code="models.pickle_not_accepted") if problem.code == PICKLE_NOT_TRUSTED else problem
    return make_problem("serve.artifact_not_loaded", kind=type(error).__name__, reason=str(error)[:300])


def reply(explainer: BatchExplainer, header: Header) -> tuple[Header, bytes]:
    """Return the results of a batch with the texts of all records, or the error that made it fail."""
    try:
        requests = wire.unpack_requests(header)
        result = explainer.run(requests)
    except Exception as error:
        return {"broken": type(error).__name__}, b""
    outcomes: list[Header] = []
    texts: list[str] = []
    for outcome, problem in zip(result.outcomes, result.problems, strict=True):
        if isinstance(outcome, InvalidRequest):
            outcomes.append({"invalid": outcome.problem.to_dict(), "field": outcome.field})
        elif requests[0].action == "predict":
            outcomes.append({"predictions": outcome, "problem": None})
        else:
            invalid = None if problem is None else problem.to_dict()
            outcomes.append({"records": [wire.pack_record(record) for record in outcome], "problem": invalid})
            texts += [record.body for record in outcome]
    found = {"usage": vars(result.usage), "cut_short": result.cut_short, "outcomes": outcomes}
    return wire.pack_texts(found, texts)
