"""The page results/serve.md from the numbers of a run."""

from collections.abc import Sequence
from typing import Any

from benchmarks.measuring import spread, table
from benchmarks.serving.phases import ANONYMOUS_CONNECTIONS

Numbers = dict[str, Any]
HEAD = "# The service under load, faults and time (`make bench-serve`)"
HOW = """One server (`fasterce serve --workers {workers}`, records in SQLite and durable before each response), German Credit
with 20 columns and an MLP as ONNX in the artifact, one row per request, each client with different rows. The clients
are a process on the same machine, so the server has less processor time. Medians, in brackets lowest and highest, of
{repeats} runs of {seconds:.0f} s after {warm_up:.0f} s that are not counted."""

BUSY = """**The machine was busy with other work when this began (see the load average): these times and rates show how the
service behaves, not what it can do. Run it again on a quiet machine.**"""


def markdown(run: Numbers) -> str:
    effort = run["effort"]
    busy = f"Load average before {run['load_before']}, after {run['load_after']}."
    parts = [
        HEAD,
        HOW.format(workers=run["workers"], repeats=effort["repeats"], seconds=effort["seconds"], warm_up=effort["warm_up"]),
        f"{run['machine']} Served by {', '.join(f'{name} {held}' for name, held in run['served_by'].items())}. {busy}",
        f"`{run['command']}`, {run['time']}. Every number is in the JSON file beside this one.",
    ]
    if is_busy(run):
        parts.append(BUSY)
    for name, write in (
        ("start", starting),
        ("sustained", sustained),
        ("overload", overload),
        ("mixed", mixed),
        ("attack", attacked),
        ("kill", killed),
        ("hang", hung),
        ("end", ended),
        ("soak", soaked),
    ):
        if name in run:
            parts.append(write(run[name]))
    return "\n\n".join(parts) + "\n"


def is_busy(run: Numbers) -> bool:
    """Return whether the machine was busy when the run began."""
    return bool(run["load_before"][0] > run["facts"]["cores"] / 2)


def starting(found: Numbers) -> str:
    ended = [one["seconds"] for one in found["ended"]]
    codes = sorted({one["code"] for one in found["ended"]})
    return (
        f"## Start\n\nReady after {spread(found['seconds'])} s. All processes together "
        f"{spread(found['pss_mb'], '{:.0f}')} MB (PSS) with the spare. Ended idle in "
        f"{spread(ended)} s, exit code {', '.join(map(str, codes))}."
    )


def sustained(found: Sequence[Numbers]) -> str:
    lines = []
    for clients in sorted({one["clients"] for one in found}):
        runs = [one for one in found if one["clients"] == clients]
        times = [spread([one["ms"][name] for one in runs], "{:.0f}") for name in ("p50", "p95", "p99")]
        rate = spread([one["per_second"] for one in runs], "{:.0f}")
        others = sum(count for one in runs for status, count in one["statuses"].items() if status != "200")
        batch = spread([one.get("batch_rows", float("nan")) for one in runs], "{:.0f}")
        used = [spread([one.get(name, float("nan")) for one in runs]) for name in ("front_ms", "workers_ms")]
        lines.append([str(clients), rate, *times, str(others), batch, *used])
    header = ["clients", "explanations/s", "p50 ms", "p95 ms", "p99 ms", "not served", "rows per call"]
    header += ["front ms", "workers ms"]
    return f"## Sustained load\n\nThe last two columns are processor time per request.\n\n{table(header, lines)}"


def overload(found: Numbers) -> str:
    grown = found["after"]["pss_mb"] - found["before"]["pss_mb"]
    stays = found["settled"]["pss_mb"] - found["before"]["pss_mb"]
    again = found["usual_again"]
    lines = [
        ["requests", f"{found['requests']}: {counted(found['statuses'])}"],
        ["found", f"{found['per_second']:.0f}/s, {ms(found['ms'])}"],
        ["429", f"{found['busy_share']:.0%}, {found['busy_with_retry_after']} with Retry-After, {ms(found['busy_ms'])}"],
        ["ready?", f"{ms(found['health_ms'])}, {found['unhealthy']} times not"],
        ["memory", f"{grown:+.0f} MB during, {stays:+.0f} MB three seconds after"],
        ["8 clients right after", f"{again['per_second']:.0f}/s, {ms(again['ms'])}, {counted(again['statuses'])}"],
    ]
    return f"## Four times its capacity ({found['rate']:.0f} requests/s)\n\n{table(['', ''], lines)}"


def mixed(found: Sequence[Numbers]) -> str:
    lines = []
    for name in dict.fromkeys(one["large"] for one in found):
        runs = [one for one in found if one["large"] == name]
        p99 = [spread([one[who]["ms"]["p99"] for one in runs], "{:.0f}") for who in ("alone", "together")]
        ratios = spread([one["together"]["ms"]["p99"] / one["alone"]["ms"]["p99"] for one in runs], "{:.1f}")
        kept = spread([one["together"]["per_second"] / one["alone"]["per_second"] for one in runs], "{:.0%}")
        others = sum(count for one in runs for status, count in one["together"]["statuses"].items() if status != "200")
        lines.append([name, *p99, ratios, kept, str(others)])
    header = ["options of the large requests", "p99 ms alone", "p99 ms together", "ratio", "throughput kept", "not served"]
    return f"## 8 clients together with one that sends 256 rows per request\n\n{table(header, lines)}"


def attacked(found: Sequence[Numbers]) -> str:
    lines = []
    for path in dict.fromkeys(one["path"] for one in found):
        runs = [one for one in found if one["path"] == path]
        kept = spread([one["together"]["per_second"] / one["alone"]["per_second"] for one in runs], "{:.0%}")
        others = sum(count for one in runs for status, count in one["together"]["statuses"].items() if status != "200")
        lines.append([f"`{path}`", kept, str(others), counted(runs[-1]["anonymous"])])
    header = ["180 connections without a key to", "throughput kept", "not served", "their responses"]
    return f"## 8 clients with keys together with anonymous connections\n\n{table(header, lines)}"


def killed(found: Numbers) -> str:
    lines = []
    for who, runs in found.items():
        failed = [sum(count for status, count in one["statuses"].items() if status != "200") for one in runs]
        lines.append(
            [
                {"one": "the busy worker", "all": "all at once, the spare included"}[who],
                f"{spread(failed, '{:.0f}')} of {spread([one['requests'] for one in runs], '{:.0f}')}",
                f"{spread([one['longest_gap'] for one in runs])} s",
                f"{spread([one['full_after'] for one in runs])} s",
            ]
        )
    header = ["SIGKILL of", "failed requests", "longest time without a response", "worker and spare back after"]
    return f"## Workers killed, with 8 clients\n\n{table(header, lines)}"


def hung(found: Numbers) -> str:
    names = ("processes", "threads", "descriptors")
    left = ", ".join(f"{found['before'][name]} -> {found['after'][name]} {name}" for name in names)
    grown = found["after"]["pss_mb"] - found["before"]["pss_mb"]
    late, usable = (sorted(1e3 * one for one in found[name]) for name in ("late", "usable"))
    return (
        f"## A model that hangs, {len(late)} times\n\nResponses: {counted(found['statuses'])}, {late[len(late) // 2]:.0f} ms "
        f"after the deadline (worst {late[-1]:.0f}); another row explained after {usable[len(usable) // 2]:.0f} ms "
        f"(worst {usable[-1]:.0f}). Before and after all: {left}, {grown:+.0f} MB."
    )


def ended(found: Numbers) -> str:
    return (
        f"## SIGTERM with 8 clients\n\nExit code {found['code']} after {found['seconds']:.2f} s; requests before it: "
        f"{counted(found['before'])}; with later ones, on connections that were closing: "
        f"{counted(found['statuses'])}."
    )


def soaked(found: Numbers) -> str:
    first, last = found["samples"][0], found["samples"][-1]
    return (
        f"## {last['at'] / 60:.0f} minutes with 8 clients\n\n{found['requests']} requests: {counted(found['statuses'])}, "
        f"{ms(found['ms'])}. Memory {first['pss_mb']:.0f} -> {last['pss_mb']:.0f} MB, {found['mb_per_minute']:+.2f} MB per "
        f"minute without the first fifth; descriptors {first['descriptors']} -> {last['descriptors']}."
    )


def for_page(run: Numbers) -> str:
    """Return what docs/serve.md shows of a complete run: the table, and one line per experiment."""
    start, over, end = run["start"], run["overload"], run["end"]
    large, anonymous = (spread([_kept(one) for one in run[name]], "{:.0%}") for name in ("mixed", "attack"))
    ratio = spread([one["together"]["ms"]["p99"] / one["alone"]["ms"]["p99"] for one in run["mixed"]], "{:.1f}")
    ready, memory = spread(start["seconds"], "{:.1f}"), spread(start["pss_mb"], "{:.0f}")
    parts = {
        "Start": f"ready after {ready} s; {memory} MB with the spare worker (PSS).",
        "Four times its capacity": f"of {over['rate']:,.0f} requests/s, {over['per_second']:.0f}/s were served, "
        f"{ms(over['ms'])}. The others got 429 with `Retry-After`, {ms(over['busy_ms'])}. The health route: "
        f"{ms(over['health_ms'])}.",
        "A client with 256 rows per request": f"8 others with one row keep {large} of their throughput; their p99 is {ratio} "
        "times that without it.",
        f"{ANONYMOUS_CONNECTIONS} connections without a key": "while these send no body, 8 clients with keys "
        f"keep {anonymous} of their throughput.",
        "A killed worker": f"with 8 clients, {_killed(run['kill']['one'])}.",
        "All workers killed at once": f"{_killed(run['kill']['all'])}.",
        f"A model that hangs, {len(run['hang']['late'])} times": hung(run["hang"]).partition("Responses: ")[2],
        "SIGTERM": f"with 8 clients, exit code {end['code']} after {end['seconds']:.1f} s; earlier requests: "
        f"{counted(end['before'])}.",
    }
    date = f"Measured on {run['time'][:10]} with {run['facts']['cores']} cores."
    return "\n\n".join([date, _rates(run["sustained"]), "\n".join(f"- **{name}:** {text}" for name, text in parts.items())])


def _rates(found: Sequence[Numbers]) -> str:
    lines = []
    for clients in sorted({one["clients"] for one in found}):
        runs = [one for one in found if one["clients"] == clients]
        times = [spread([one["ms"][name] for one in runs], "{:.0f}") for name in ("p50", "p95", "p99")]
        lines.append([str(clients), spread([one["per_second"] for one in runs], "{:.0f}"), *times])
    return table(["clients", "explanations/s", "p50 ms", "p95 ms", "p99 ms"], lines)


def _kept(run: Numbers) -> float:
    return float(run["together"]["per_second"] / run["alone"]["per_second"])


def _killed(runs: Sequence[Numbers]) -> str:
    failed = sum(count for one in runs for status, count in one["statuses"].items() if status != "200")
    return f"{failed} requests failed, {spread([one['longest_gap'] for one in runs])} s without a response"


def ms(found: Numbers) -> str:
    if not found:
        return "none"
    return f"p50 {found['p50']:.0f} ms, p99 {found['p99']:.0f} ms, worst {found['max']:.0f} ms"


def counted(statuses: dict[str, int]) -> str:
    return ", ".join(f"{count} x {status}" for status, count in statuses.items()) or "none"
