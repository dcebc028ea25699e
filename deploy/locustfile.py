"""Load from many machines, with Locust (not among our extras): `make bench-serve` needs nothing more and runs on one.

    pip install locust
    FASTERCE_ROWS=people.csv FASTERCE_KEY=fce_… locust -f deploy/locustfile.py --host http://127.0.0.1:8000

FASTERCE_ROWS is a CSV file with the columns of the artifact. 429 is an answer as it should be under too much load; it is
counted apart and not as a failure.
"""

import csv
import os
import random
from typing import Any

from locust import FastHttpUser, constant, task


class CaseWorker(FastHttpUser):
    wait_time = constant(0)

    def on_start(self) -> None:
        key = os.environ.get("FASTERCE_KEY")
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        features = self.client.get("/v1/schema", headers=self.headers).json()["features"]
        numeric = {one["name"]: one["kind"] == "numeric" for one in features}
        with open(os.environ["FASTERCE_ROWS"], newline="", encoding="utf-8") as file:
            self.rows = [cells(row, numeric) for row in csv.DictReader(file)]

    @task
    def explain(self) -> None:
        asked = {"rows": [random.choice(self.rows)]}
        with self.client.post("/v1/explain", json=asked, headers=self.headers, catch_response=True) as answer:
            if answer.status_code == 429:
                answer.request_meta["name"] = "/v1/explain (429)"
                answer.success()


def cells(row: dict[str, str], numeric: dict[str, bool]) -> dict[str, Any]:
    return {name: (float(row[name]) if row[name] else None) if number else row[name] for name, number in numeric.items()}
