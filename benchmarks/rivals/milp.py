"""The nearest counterfactual of a linear model or a ReLU network, proven by mixed-integer programming (HiGHS through SciPy).

A reference, not a rival: it starts from the counterfactual of `closest`, whose distance bounds the program, and its time
contains that of `closest`. The program is `benchmarks.yardstick.milp`.
"""

import pandas as pd

from benchmarks.rivals import ours
from benchmarks.rivals.problem import Problem
from benchmarks.yardstick import milp
from benchmarks.yardstick.cases import Case

SECONDS_PER_ROW = 2.0


class Rival:
    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem, self.closest = problem, ours.Rival(problem, "closest")
        low = getattr(problem.model, "low", None)
        model, rows = ours.explained_model(problem), problem.rows
        self.case = Case("", "", ours.schema(problem), model, problem.X_train, rows, low)
        self.network = milp.Network.of(self.case)
        self.proven, self.proofs = False, [0, 0]

    def explain(self, row: pd.DataFrame) -> pd.DataFrame | None:
        case, query = self.case, self.problem.rows.index.get_loc(row.index[0])
        found = self.closest.table(self.closest.explain(row))
        known = None if found is None else float(case.gower(case.codes(found), case.queries[query])[0])
        optimum = milp.nearest(case, self.network, query, known, SECONDS_PER_ROW)
        self.proven = optimum.proven
        self.proofs[int(self.proven)] += 1
        return found if optimum.codes is None else case.frame(optimum.codes[None])

    def table(self, result: pd.DataFrame) -> pd.DataFrame:
        return self.problem.typed(result)

    def notes(self) -> list[str]:
        return [f"{self.proofs[1] / max(sum(self.proofs), 1):.0%} proved optimal"]
