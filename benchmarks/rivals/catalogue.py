"""All systems compared, one line each: with the models and constraints they support. Imports none of them.

A rival that cannot be installed or fails keeps its line in every report, with the reason (`venvs.CannotInstall`, or the
`failure` written by `rivals/run.py`).
"""

from dataclasses import dataclass

MODELS = ("mlp", "xgboost", "random_forest", "logistic")
SMOOTH = ("mlp", "logistic")
IMMUTABLE, RANGES = "immutable", "ranges"


@dataclass(frozen=True)
class Entry:
    """A system.

    Parameters
    ----------
    title : str
    module : str
        A file of this folder with a class `Rival`, or any module by its full name.
    variant : str
        Passed to `Rival`.
    models : tuple of str
        The kinds of black box it supports.
    constraints : frozenset of str
        Which constraints of the problem it is given and respects.
    costly : bool
        Whether it takes minutes per black box; a whole run then has it for the paper's task and model only.
    all_datasets : bool
        Whether a whole run has it for all datasets, not the bundled ones only.
    package : str
        The distribution whose version is reported; empty for our own code.
    """

    title: str
    module: str
    variant: str
    models: tuple[str, ...] = MODELS
    constraints: frozenset[str] = frozenset()
    costly: bool = False
    all_datasets: bool = False
    package: str = ""

    @property
    def name(self) -> str:
        return f"{self.module}-{self.variant}"

    @property
    def ours(self) -> bool:
        return self.module == "ours"


BOTH = frozenset({IMMUTABLE, RANGES})
FROZEN = frozenset({IMMUTABLE})
RANGED = frozenset({RANGES})
TREES = ("xgboost",)
ENTRIES = (
    Entry("fasterce closest", "ours", "closest", constraints=BOTH, all_datasets=True, package="fasterce"),
    Entry(
        "fasterce closest, euclidean", "ours", "closest-euclidean", constraints=BOTH, all_datasets=True, package="fasterce"
    ),
    Entry("fasterce closest, not compiled", "ours", "closest-uncompiled", constraints=BOTH, package="fasterce"),
    Entry("fasterce sparse", "ours", "sparse", constraints=BOTH, all_datasets=True, package="fasterce"),
    Entry("fasterce realistic", "ours", "realistic", constraints=BOTH, package="fasterce"),
    Entry("fasterce robust", "ours", "robust", constraints=BOTH, package="fasterce"),
    Entry("NICE sparsity", "nice", "sparsity", all_datasets=True, package="NICEx"),
    Entry("NICE plausibility", "nice", "plausibility", package="NICEx"),
    Entry("DiCE random", "dice", "random", constraints=BOTH, all_datasets=True, package="dice-ml"),
    Entry("DiCE genetic", "dice", "genetic", constraints=BOTH, package="dice-ml"),
    Entry("DiCE kdtree", "dice", "kdtree", constraints=BOTH, package="dice-ml"),
    Entry("CERTIFAI (our version)", "certifai", "genetic", constraints=BOTH),
    Entry("Wachter (our version)", "wachter", "adam", constraints=BOTH),
    Entry("Latent-CF (our version)", "latentcf", "adam"),
    Entry("Latent-CF (our version), no gradients", "latentcf", "differences", costly=True),
    Entry("SharpShooter (our version)", "sharpshooter", "line"),
    Entry("ICEGP (alibi CounterfactualProto)", "alibi", "proto", SMOOTH, RANGED, costly=True, package="alibi"),
    Entry("alibi CFRL", "alibi", "cfrl", constraints=BOTH, costly=True, package="alibi"),
    Entry("CFNOW greedy", "cfnow", "greedy", costly=True, package="cfnow"),
    Entry("CFNOW random", "cfnow", "random", costly=True, package="cfnow"),
    Entry("jax-relax VanillaCF", "relax", "vanilla", SMOOTH, FROZEN, package="jax-relax"),
    Entry("jax-relax GrowingSphere", "relax", "sphere", models=SMOOTH, constraints=FROZEN, package="jax-relax"),
    Entry("treecf genetic", "treecf", "genetic", models=TREES, constraints=BOTH, package="treecf"),
    Entry("treecf exact, 2 s a row", "treecf", "exact", TREES, BOTH, all_datasets=True, package="treecf"),
    Entry("MILP from closest, 2 s a row", "milp", "exact", SMOOTH, all_datasets=True),
    Entry("exhaustive: 1 feature, all values", "exhaustive", "one", constraints=BOTH),
    Entry("exhaustive: 1 feature, 2 on a grid", "exhaustive", "two", constraints=BOTH),
)


def find(name: str) -> Entry:
    return next(entry for entry in ENTRIES if entry.name == name)
