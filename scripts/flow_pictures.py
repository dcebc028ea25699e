"""Draw the data-flow pictures of docs/how-it-works.md as SVG: `python scripts/flow_pictures.py`.

The site includes the files as they are, so that its style sheet colours them in light and dark and no script is needed.
"""

from html import escape
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN, LINE = 134, 62, 26, 26, 6, 15


class Flow(NamedTuple):
    """Boxes by name, each at a column and a row with its text; arrows between them, some with a label.

    Boxes whose text begins with "*" call the model.
    """

    title: str
    boxes: dict[str, tuple[int, float, str]]
    arrows: list[tuple[str, ...]]


FLOWS = {
    "fit": Flow(
        "What fit does",
        {
            "table": (0, 0.5, "training rows|and schema"),
            "codes": (1, 0.5, "codes: one number|per feature"),
            "labels": (2, 0, "*evaluate rows|with the model"),
            "compiled": (3, 0, "read trees or|weights, compare|with the model"),
            "surrogate": (4, 0, "train the surrogate"),
            "autoencoder": (2, 1, "train the|autoencoder"),
            "samples": (3, 1, "*sample, decode,|label by the model"),
            "planes": (4, 1, "fit hyperplanes,|regions, prototypes"),
        },
        [
            ("table", "codes"),
            ("codes", "labels"),
            ("codes", "autoencoder"),
            ("labels", "compiled"),
            ("compiled", "surrogate"),
            ("autoencoder", "samples"),
            ("samples", "planes"),
        ],
    ),
    "exact": Flow(
        "The default search with an exact scorer",
        {
            "query": (0, 0, "query and|its domain"),
            "edits": (1, 0, "score all single|edits at once"),
            "expand": (2, 0, "expand states,|lowest estimated|cost first"),
            "improve": (3, 0, "replace, drop and|shrink changes"),
            "order": (3, 1, "order: closest|or sparse"),
            "known": (1, 1, "known rows of the|target, improved"),
            "verify": (4, 1, "*verify with the|model: one call"),
        },
        [
            ("query", "edits"),
            ("edits", "expand"),
            ("expand", "improve"),
            ("improve", "order"),
            ("expand", "known", "nothing found"),
            ("known", "order"),
            ("order", "verify"),
        ],
    ),
    "guided": Flow(
        "The default search for any other model",
        {
            "query": (0, 0, "query and|its domain"),
            "search": (1, 0, "the same search,|surrogate as scorer"),
            "evaluate": (2, 0, "*evaluate the best|with the model"),
            "shrink": (3, 0, "*drop and shrink|changes, evaluate"),
            "order": (3, 1, "order: closest|or sparse"),
            "correct": (1, 1, "correct the|surrogate"),
            "known": (2, 1, "*known rows, then|single edits"),
            "verify": (4, 1, "*verify with|the model"),
        },
        [
            ("query", "search"),
            ("search", "evaluate"),
            ("evaluate", "shrink"),
            ("evaluate", "correct", "next round"),
            ("correct", "search"),
            ("evaluate", "known", "nothing found"),
            ("known", "correct"),
            ("shrink", "order"),
            ("order", "verify"),
        ],
    ),
    "realistic": Flow(
        "The method realistic",
        {
            "edits": (0, 0, "candidates|of closest"),
            "known": (0, 1, "nearest known rows|of the target"),
            "walk": (0, 2, "steps of a walk in|the latent space"),
            "improve": (1, 1, "improve feature|by feature by|the objective"),
            "evaluate": (2, 1, "*evaluate, without|an exact scorer"),
            "rank": (3, 1, "rank by the|objective, copies of|known rows last"),
            "verify": (4, 1, "*verify with|the model"),
        },
        [
            ("edits", "improve"),
            ("known", "improve"),
            ("walk", "improve"),
            ("improve", "evaluate"),
            ("evaluate", "rank"),
            ("rank", "verify"),
        ],
    ),
    "latent": Flow(
        "The engine latent",
        {
            "encode": (0, 1, "encode the query:|latent point z"),
            "ce1": (1, 0, "CE1: along the|prediction's normal"),
            "ce2": (1, 1, "CE2: along each|feature's direction"),
            "ce3": (1, 2, "CE3: few features,|toward prototypes"),
            "carry": (2, 1, "query + decode(z′)|− decode(z)"),
            "project": (3, 1, "project on the|constraints"),
            "evaluate": (4, 1, "*evaluate with|the model"),
            "refine": (4, 2, "*drop and shrink|changes, evaluate"),
            "verify": (3, 2, "*verify with|the model"),
        },
        [
            ("encode", "ce1"),
            ("encode", "ce2"),
            ("encode", "ce3"),
            ("ce1", "carry"),
            ("ce2", "carry"),
            ("ce3", "carry"),
            ("carry", "project"),
            ("project", "evaluate"),
            ("evaluate", "refine"),
            ("refine", "verify"),
        ],
    ),
    "paper": Flow(
        "The engine paper",
        {
            "encode": (0, 0, "encode|the query"),
            "project": (1, 0, "project on the|hyperplane(s)"),
            "step": (2, 0, "step δε"),
            "evaluate": (3, 0, "*decode, evaluate|with the model"),
            "reset": (4, 0, "put back what|must not change"),
            "again": (3, 1, "ε grows,|up to ε_max"),
            "verify": (4, 1, "*verify, check|the constraints"),
        },
        [
            ("encode", "project"),
            ("project", "step"),
            ("step", "evaluate"),
            ("evaluate", "reset"),
            ("evaluate", "again", "not yet"),
            ("again", "step"),
            ("reset", "verify"),
        ],
    ),
}


def draw(flow: Flow) -> str:
    """Return the SVG of a flow."""
    columns = 1 + max(column for column, _, _ in flow.boxes.values())
    rows = 1 + max(row for _, row, _ in flow.boxes.values())
    width = 2 * MARGIN + columns * (WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + rows * (HEIGHT + GAP_Y) - GAP_Y
    mark = f"flow-{flow.title.split()[-1]}"
    lines = [
        f'<svg class="flow" role="img" aria-label="{escape(flow.title)}" viewBox="0 0 {width:g} {height:g}" '
        'xmlns="http://www.w3.org/2000/svg">',
        f'<defs><marker id="{mark}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    lines += [line for arrow in flow.arrows for line in _arrow(flow, mark, *arrow)]
    lines += [line for box in flow.boxes.values() for line in _box(*box)]
    return "\n".join([*lines, "</svg>", ""])


def _corner(column: int, row: float) -> tuple[float, float]:
    return MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y)


def _box(column: int, row: float, text: str) -> list[str]:
    left, top = _corner(column, row)
    words = text.removeprefix("*").split("|")
    first = top + HEIGHT / 2 + 4.5 - LINE * (len(words) - 1) / 2
    kind = ' class="model"' if text.startswith("*") else ""
    return [
        f'<rect{kind} x="{left:g}" y="{top:g}" width="{WIDTH}" height="{HEIGHT}" rx="7"/>',
        *(f'<text x="{left + WIDTH / 2:g}" y="{first + LINE * k:g}">{escape(word)}</text>' for k, word in enumerate(words)),
    ]


def _arrow(flow: Flow, mark: str, start: str, end: str, label: str = "") -> list[str]:
    """Return an arrow: sideways between columns, up or down within one, and from below into an earlier column."""
    (one, above, _), (other, below, _) = flow.boxes[start], flow.boxes[end]
    (x1, y1), (x2, y2) = _corner(one, above), _corner(other, below)
    if one == other:
        down = below > above
        x, y1, y2 = x1 + WIDTH / 2, y1 + (HEIGHT if down else 0), y2 + (0 if down else HEIGHT)
        path, place = f"M{x:g} {y1:g}V{y2:g}", (x + 5, (y1 + y2) / 2 + 4, "start")
    elif other > one:
        y1, y2, x1 = y1 + HEIGHT / 2, y2 + HEIGHT / 2, x1 + WIDTH
        middle = (x1 + x2) / 2 if other == one + 1 else x2 - GAP_X / 2
        path = f"M{x1:g} {y1:g}H{x2:g}" if y1 == y2 else f"M{x1:g} {y1:g}H{middle:g}V{y2:g}H{x2:g}"
        place = ((x1 + x2) / 2, y1 - 6, "middle")
    elif above == below:
        path = f"M{x1:g} {y1 + HEIGHT / 2:g}H{x2 + WIDTH:g}"
        place = ((x1 + x2 + WIDTH) / 2, y1 + HEIGHT / 2 - 6, "middle")
    else:
        down = below > above
        turn = (y1 + HEIGHT if down else y1) + (GAP_Y / 2 if down else -GAP_Y / 2)
        from_x, to_x = x1 + WIDTH * 0.3, x2 + WIDTH * 0.7
        edge1, edge2 = (y1 + HEIGHT, y2) if down else (y1, y2 + HEIGHT)
        path = f"M{from_x:g} {edge1:g}V{turn:g}H{to_x:g}V{edge2:g}"
        if not down:
            path = f"M{x1:g} {y1 + HEIGHT / 2:g}H{x2 + WIDTH / 2:g}V{edge2:g}"
        place = ((from_x + to_x) / 2, turn - 4, "middle")
    lines = [f'<path d="{path}" marker-end="url(#{mark})"/>']
    if label:
        x, y, anchor = place
        lines.append(f'<text class="label" x="{x:g}" y="{y:g}" style="text-anchor:{anchor}">{escape(label)}</text>')
    return lines


if __name__ == "__main__":
    for name, flow in FLOWS.items():
        (FOLDER / f"flow-{name}.svg").write_text(draw(flow), encoding="utf-8")
