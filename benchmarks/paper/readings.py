"""Why a statement of the paper may differ here: a short interpretation, shown beside one that does not agree.

`MEASURED` are supported by a number of the published report (`results/paper`) or by a command named here. `POSSIBLE` are
untested; the report shows them with the word "possibly".
"""

RECONSTRUCTION = (
    "FASTER-CE1 returns the decoded row, so that every number also differs by the reconstruction error of the "
    "autoencoder; the paper does not say whether values that hardly move are kept."
)
# python -m benchmarks.rivals.check latentcf-adam latentcf-differences --rows 8 --data adult (and lending_club)
EXACT_GRADIENTS = (
    "Our Latent-CF has the exact gradients of the perceptron, from its weights. Without them (on the networks of "
    "`make bench`) 8 queries took 1.71 s instead of 0.14 s each on Adult and 0.078 s instead of 0.012 s on Lending Club."
)
SMALL_MODEL = (
    "These perceptrons take microseconds per row, so the time is that of the search code, which hardly depends on "
    "the number of columns."
)
FEW_QUERIES = "Within the time limit there are few queries, and the interval is wide."

MEASURED = {
    "fast": EXACT_GRADIENTS,
    "fast-all": " ".join(
        (EXACT_GRADIENTS, "On Lending Club that would still be less than the three of FASTER-CE together need here.")
    ),
}
POSSIBLE = {
    "valid-ce1": "The walk ends at ε_max before it reaches the target for some queries far from the boundary.",
    "valid-ce3": (
        "Rows that break a frozen column are withheld, and a walk orthogonal to all frozen columns does not cross the "
        "boundary for every query."
    ),
    "valid-dice-random": "DiCE samples a limited number of candidates, and gives up on queries far from the boundary.",
    "valid-certifai-genetic": (
        "Some populations have no member with the target class after 50 generations: the target is rare among rows "
        "drawn from the whole feature space."
    ),
    "valid-latentcf-adam": (
        "The descent ends where the gradient vanishes, or the decoded row loses the target when it is rounded to whole "
        "numbers and categories."
    ),
    "valid-alibi-proto": " ".join(("ICEGP gives up after its steps, or is stopped by the time limit.", FEW_QUERIES)),
    "sparse-ce2": "Both change one feature for most queries; DiCE removes changes at the end.",
    "sparse-ce3": RECONSTRUCTION,
    "few-categories": "Where few features have at most three categories, their share depends on which ones the model reads.",
    "near-small": " ".join(
        ("CERTIFAI minimises this distance itself, with 50,000 candidates per query and exact input values.", RECONSTRUCTION)
    ),
    "near-large": " ".join(
        ("CERTIFAI minimises this distance itself; whether it wins depends on its generations.", RECONSTRUCTION)
    ),
    "near-ce2": (
        "Where one feature suffices the change is small. The mean is over valid counterfactuals only, that is over the "
        "features that can flip the prediction, while FASTER-CE1 changes nearly all numbers a little."
    ),
    "near-certifai": "Another rival stays as near: see the numbers.",
    "slow-ce2": (
        "The walk of one feature has half the steps and its post-processing is one batched model call, so that it costs "
        "no more."
    ),
    "total": " ".join(
        (EXACT_GRADIENTS, "Our set-up also trains a surrogate and regional hyperplanes, which the paper does not have.")
    ),
    "total-small": "German Credit has 150 test rows: set-up is most of the total, and DiCE and NICE have none.",
    "grows-dice-random": SMALL_MODEL,
    "grows-certifai-genetic": SMALL_MODEL,
    "grows-latentcf-adam": SMALL_MODEL,
    "grows-alibi-proto": " ".join((SMALL_MODEL, FEW_QUERIES)),
    "rounds": (
        "Alternating projections converge by the squared cosine of the angle between the hyperplanes; for nearly "
        "parallel ones 20 iterations are not enough. We solve the intersection in closed form."
    ),
    "steps-ce1": "The size of a latent unit depends on the autoencoder, so 20 steps of 0.1 are another distance here.",
    "steps-ce3": "The size of a latent unit depends on the autoencoder, so 20 steps of 0.1 are another distance here.",
    "step-robust": "The size of a latent unit depends on the autoencoder; a step of 1 is a small one here.",
    "step-far": "The size of a latent unit depends on the autoencoder; a step of 1 is a small one here.",
    "robust-100": (
        "The first point that reaches the target may lie just beyond the boundary, whatever the step. With a margin of "
        "one step the statement holds: see the table."
    ),
    "robust-rivals": (
        "DiCE draws random values far beyond the boundary, at two to three times the distance; at the same distance (a "
        "margin of one or more steps) FASTER-CE1 is as robust."
    ),
    "robust-dice": "Rivals are within the error bars of each other.",
    "far-dice": "CERTIFAI without a reset of features keeps changes it does not need.",
}


def reading(name: str) -> str:
    """Return the reading of a statement that does not agree, or an empty text."""
    if name in MEASURED:
        return MEASURED[name]
    return f"*Possibly:* {POSSIBLE[name]}" if name in POSSIBLE else ""
