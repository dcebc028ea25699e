"""The loop of a worker process: load the artifacts, then explain one batch after another."""

import gc
import socket
from contextlib import suppress

from fasterce.io.processes import Header, limit_memory, packed, receive
from fasterce.serve.messages import InvalidRequest, NoResponse
from fasterce.serve.workers import wire
from fasterce.serve.workers.explain import BatchExplainer, error_kind, load_problem


def run_worker(connection: socket.socket) -> None:
    """Report that the artifacts are loaded, and reply to batches until the HTTP process is gone."""
    with suppress(EOFError, ConnectionError):
        settings = wire.unpack_settings(receive(connection)[0])
        limit_memory(settings.most_memory_mb)
        try:
            explainer = BatchExplainer(settings)
            explainer.warm_up()
        except Exception as error:
            connection.sendall(packed({"failed": load_problem(error).to_dict(), "kind": error_kind(error)}))
            return
        gc.freeze()
        gc.enable()
        connection.sendall(packed({"ready": [wire.pack_description(one) for one in explainer.descriptions]}))
        while True:
            header, _ = receive(connection)
            connection.sendall(packed({"taken": len(header["requests"])}))
            connection.sendall(reply(explainer, header))


def reply(explainer: BatchExplainer, header: Header) -> bytes:
    """Return the message with the results of a batch, or with the error that made it fail."""
    try:
        result = explainer.explain(wire.unpack_requests(header))
    except NoResponse as error:
        return packed({"broken": str(error)})
    except Exception as error:
        return packed({"broken": type(error).__name__})
    outcomes: list[Header] = []
    texts: list[bytes] = []
    for outcome, problem in zip(result.outcomes, result.problems, strict=True):
        if isinstance(outcome, InvalidRequest):
            outcomes.append({"invalid": outcome.problem.to_dict(), "field": outcome.field})
        else:
            summaries, bodies = wire.pack_records(outcome)
            outcomes.append({"records": summaries, "problem": None if problem is None else problem.to_dict()})
            texts += bodies
    measured = {name: getattr(result, name) for name in ("calls", "model_rows", "batch_rows", "seconds", "cut_short")}
    return packed(measured | {"outcomes": outcomes}, b"".join(texts))
