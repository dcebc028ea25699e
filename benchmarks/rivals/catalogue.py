"""Every system compared, a line each: what it is, where it runs and what it can be asked. Read without importing any of them.

A rival that cannot be installed or fails keeps its line in every report, with the reason (`venvs.CannotInstall`, or the
`failure` written by `rivals/run.py`).
"""

from dataclasses import dataclass
from typing import Literal

BOXES = ("mlp", "xgboost", "random_forest", "logistic")
SMOOTH = ("mlp", "logistic")
IMMUTABLE, RANGES = "immutable", "ranges"


@dataclass(frozen=True)
class Entry:
    """`module` is a file of this folder and `variant` what its `Rival` is told.

    boxes : the black boxes it works for.
    asks : what it uses of the black box: "labels", "scores" (probabilities), "gradients" or "trees" (the model's inside).
    constraints : which of the constraints in the problem's spec it is given and keeps to; the rest it knows nothing of.
    batch : it has a call for many rows at once (`explain_batch`), timed apart.
    costly : minutes a black box, so that a whole run asks it only the paper's question about the paper's black box.
    everywhere : asked about every dataset by a whole run; the others only about the bundled ones.
    package : the distribution whose version is reported; none for what is written here.
    """

    title: str
    module: str
    variant: str
    boxes: tuple[str, ...] = BOXES
    asks: Literal["labels", "scores", "gradients", "trees"] = "scores"
    constraints: frozenset[str] = frozenset()
    batch: bool = False
    costly: bool = False
    everywhere: bool = False
    package: str = ""

    @property
    def name(self) -> str:
        return f"{self.module}-{self.variant}"

    @property
    def ours(self) -> bool:
        return self.module == "ours"

    @property
    def needs_gradients(self) -> bool:
        return self.asks == "gradients"


BOTH = frozenset({IMMUTABLE, RANGES})
FROZEN = frozenset({IMMUTABLE})
RANGED = frozenset({RANGES})
TREES = ("xgboost",)
ENTRIES = (
    Entry("fasterce closest", "ours", "closest", constraints=BOTH, batch=True, everywhere=True, package="fasterce"),
    Entry("fasterce closest, euclidean", "ours", "closest-euclidean", constraints=BOTH, everywhere=True, package="fasterce"),
    Entry("fasterce closest, not compiled", "ours", "closest-untwinned", constraints=BOTH, batch=True, package="fasterce"),
    Entry("fasterce sparse", "ours", "sparse", constraints=BOTH, batch=True, everywhere=True, package="fasterce"),
    Entry("fasterce realistic", "ours", "realistic", constraints=BOTH, batch=True, package="fasterce"),
    Entry("fasterce robust", "ours", "robust", constraints=BOTH, batch=True, package="fasterce"),
    Entry("NICE sparsity", "nice", "sparsity", everywhere=True, package="NICEx"),
    Entry("NICE plausibility", "nice", "plausibility", package="NICEx"),
    Entry("DiCE random", "dice", "random", constraints=BOTH, everywhere=True, package="dice-ml"),
    Entry("DiCE genetic", "dice", "genetic", constraints=BOTH, package="dice-ml"),
    Entry("DiCE kdtree", "dice", "kdtree", constraints=BOTH, package="dice-ml"),
    Entry("CERTIFAI (our version)", "certifai", "genetic", asks="labels", constraints=BOTH),
    Entry("Wachter (our version)", "wachter", "adam", asks="gradients", constraints=BOTH),
    Entry("Latent-CF (our version)", "latentcf", "adam", asks="gradients"),
    Entry("Latent-CF (our version), no gradients", "latentcf", "differences", costly=True),
    Entry("SharpShooter (our version)", "sharpshooter", "line", asks="labels"),
    Entry("ICEGP (alibi CounterfactualProto)", "alibi", "proto", SMOOTH, "gradients", RANGED, costly=True, package="alibi"),
    Entry("alibi CFRL", "alibi", "cfrl", asks="labels", constraints=BOTH, batch=True, costly=True, package="alibi"),
    Entry("CFNOW greedy", "cfnow", "greedy", costly=True, package="cfnow"),
    Entry("CFNOW random", "cfnow", "random", costly=True, package="cfnow"),
    Entry("jax-relax VanillaCF", "relax", "vanilla", SMOOTH, "gradients", FROZEN, batch=True, package="jax-relax"),
    Entry("jax-relax GrowingSphere", "relax", "sphere", boxes=SMOOTH, constraints=FROZEN, package="jax-relax"),
    Entry("treecf genetic", "treecf", "genetic", boxes=TREES, asks="trees", constraints=BOTH, batch=True, package="treecf"),
    Entry("treecf exact, 2 s a row", "treecf", "exact", TREES, "trees", BOTH, everywhere=True, package="treecf"),
    Entry("MILP from closest, 2 s a row", "milp", "exact", SMOOTH, "gradients", everywhere=True),
    Entry("exhaustive: 1 feature, all values", "exhaustive", "one", asks="labels", constraints=BOTH),
    Entry("exhaustive: 1 feature, 2 on a grid", "exhaustive", "two", asks="labels", constraints=BOTH),
)


def find(name: str) -> Entry:
    return next(entry for entry in ENTRIES if entry.name == name)
