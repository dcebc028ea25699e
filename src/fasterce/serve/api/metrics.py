"""Metrics for Prometheus: counts, times and sizes with few labels, and nothing of a person's data."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from fasterce.serve.messages import PoolLoad, WorkerResponse

TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Has its own registry, so that there can be two servers in one process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter("fasterce_requests_total", "Requests", ["route", "code"], registry=registry)
        self.seconds = Histogram("fasterce_request_seconds", "Time to respond", ["route"], buckets=SECONDS, registry=registry)
        self.in_flight = Gauge("fasterce_requests_in_flight", "Requests being served", registry=registry)
        self.refused = Counter(
            "fasterce_refused_total", "Requests refused, by reason and key", ["route", "reason", "key"], registry=registry
        )
        self.rows = Counter("fasterce_explanations_total", "Rows explained", ["artifact", "status"], registry=registry)
        self.batch = Histogram("fasterce_batch_rows", "Rows of one call of explain", buckets=ROWS, registry=registry)
        self.calls = Counter("fasterce_model_calls_total", "Calls of the model", ["artifact"], registry=registry)
        self.usage = Counter("fasterce_model_rows_total", "Rows evaluated by the model", ["artifact"], registry=registry)
        self.store_seconds = Histogram("fasterce_store_seconds", "Time to store records", buckets=SECONDS, registry=registry)
        self.store_failures = Counter(
            "fasterce_store_failures_total", "Responses withheld because records could not be stored", registry=registry
        )
        self.connections = Gauge("fasterce_connections", "Open connections", registry=registry)
        self.closed = Gauge("fasterce_connections_closed", "Connections closed since there were too many", registry=registry)
        self.queue = Gauge("fasterce_rows", "Rows waiting or running", ["where"], registry=registry)
        self.workers = Gauge("fasterce_workers", "Worker processes", ["state"], registry=registry)
        self.restarts = Gauge("fasterce_worker_restarts", "Workers replaced after a hang or a crash", registry=registry)

    def observe(self, response: WorkerResponse) -> None:
        name, usage = response.description.name, response.usage
        for record in response.records:
            self.rows.labels(name, record.status).inc()
        # The usage of a call is divided among the requests that shared it, by their rows.
        share = len(response.records) / max(usage.batch_rows, 1)
        self.calls.labels(name).inc(usage.calls * share)
        self.usage.labels(name).inc(usage.rows * share)
        self.batch.observe(usage.batch_rows)

    def text(self, load: PoolLoad, connections: int, closed: int) -> bytes:
        self.connections.set(connections)
        self.closed.set(closed)
        self.queue.labels("waiting").set(load.waiting_rows)
        self.queue.labels("running").set(load.running_rows)
        self.workers.labels("alive").set(load.workers)
        self.workers.labels("busy").set(load.busy)
        self.workers.labels("spare").set(int(load.spare))
        self.restarts.set(load.restarts)
        return generate_latest(self.registry)
