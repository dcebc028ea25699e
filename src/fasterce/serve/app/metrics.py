"""What Prometheus is told: counts, times and sizes with few labels, and nothing of a person's data."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from fasterce.serve.question import Answer, Load

TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """A registry of its own, so that two servers in one process do not meet."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter("fasterce_requests_total", "Requests", ["route", "code"], registry=registry)
        self.seconds = Histogram("fasterce_request_seconds", "Time to answer", ["route"], buckets=SECONDS, registry=registry)
        self.in_flight = Gauge("fasterce_requests_in_flight", "Requests being answered", registry=registry)
        self.rows = Counter("fasterce_explanations_total", "Rows explained", ["artifact", "status"], registry=registry)
        self.batch = Histogram("fasterce_batch_rows", "Rows of one call of explain", buckets=ROWS, registry=registry)
        self.calls = Counter("fasterce_model_calls_total", "Calls of the model", ["artifact"], registry=registry)
        self.asked = Counter("fasterce_model_rows_total", "Rows the model was asked about", ["artifact"], registry=registry)
        self.stored = Histogram("fasterce_store_seconds", "Time to keep records", buckets=SECONDS, registry=registry)
        self.unkept = Counter("fasterce_store_failures_total", "Answers withheld for want of a record", registry=registry)
        self.queue = Gauge("fasterce_rows", "Rows in the house", ["where"], registry=registry)
        self.engines = Gauge("fasterce_engines", "Processes that explain", ["state"], registry=registry)
        self.restarts = Gauge("fasterce_engine_restarts", "Engines replaced after a hang or a death", registry=registry)

    def answered(self, answer: Answer) -> None:
        name = answer.description.name
        for kept in answer.records:
            self.rows.labels(name, kept.status).inc()
        # A call shared by a batch is told once for every question in it, by its share of rows.
        share = len(answer.records) / max(answer.batch_rows, 1)
        self.calls.labels(name).inc(answer.calls * share)
        self.asked.labels(name).inc(answer.rows_asked * share)
        self.batch.observe(answer.batch_rows)

    def text(self, load: Load) -> bytes:
        self.queue.labels("waiting").set(load.waiting_rows)
        self.queue.labels("running").set(load.running_rows)
        self.engines.labels("alive").set(load.engines)
        self.engines.labels("busy").set(load.busy)
        self.engines.labels("spare").set(int(load.spare))
        self.restarts.set(load.restarts)
        return generate_latest(self.registry)
