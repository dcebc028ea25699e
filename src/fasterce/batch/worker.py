"""A worker process of the local engine: shards in, progress and results out, over a socket."""

import gc
import pickle
import socket
from contextlib import suppress
from typing import Any

from fasterce.batch.job import describe_error
from fasterce.batch.shard import ShardWorker, limit_threads
from fasterce.batch.shards import Shard
from fasterce.io.processes import packed, receive

READY, UNUSABLE, PROGRESS, DONE, FAILED = "ready", "unusable", "progress", "done", "failed"


def run_worker(connection: socket.socket) -> None:
    """Load the explainer of the job received, then work on shards until the socket is closed."""
    gc.enable()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        worker = _start(connection)
        while worker is not None:
            _explain_shard(worker, receive_object(connection)[1], connection)


def _start(connection: socket.socket) -> ShardWorker | None:
    """Return the worker, or None after reporting why the explainer could not be loaded."""
    try:
        limit_threads()
        worker = ShardWorker(receive_object(connection)[1])
    except EOFError:
        raise
    except Exception as error:
        send_object(connection, UNUSABLE, describe_error(error))
        return None
    send_object(connection, READY)
    return worker


def _explain_shard(worker: ShardWorker, shard: Shard, connection: socket.socket) -> None:
    try:
        about = worker.explain(shard, lambda counts: send_object(connection, PROGRESS, counts))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:
        send_object(connection, FAILED, describe_error(error))
    else:
        send_object(connection, DONE, about)


def send_object(connection: socket.socket, kind: str, value: object = None) -> None:
    """Send a message with a pickled value: both sides are processes of one run."""
    connection.sendall(packed({"kind": kind}, pickle.dumps(value)))


def receive_object(connection: socket.socket) -> tuple[str, Any]:
    """Wait for a message and return its kind and value; EOFError once the other side is gone."""
    header, body = receive(connection)
    return header["kind"], pickle.loads(body)
