"""`fasterce serve`: explanations over HTTP, and a page."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fasterce.cli.console import say
from fasterce.cli.exits import guarded
from fasterce.cli.options import Classes, Trusted, in_panel, model_option, parameters_of, with_options
from fasterce.errors import InputError, MissingExtraError, unknown
from fasterce.options import LARGEST_N
from fasterce.serve.settings import LOCAL, REQUIRABLE, ServedArtifact, Settings
from fasterce.serve.workers.spawner import start_fork_server

network_option, limit_option, record_option = map(in_panel, ("Network", "Limits", "Records and keys"))
LOG_LEVELS = ("debug", "info", "warning", "error")
# Fields of `Settings` that are options of the same name.
SETTINGS = {
    "wording": typer.Option("--wording", help="File of the texts in records and letters, JSON or YAML; see docs/records.md."),
    "letter": typer.Option(
        "--letter", help="TOML file of the words of letters: sender, contact and sentences; see docs/serve-page.md."
    ),
    "host": network_option("--host", help="Address to listen on."),
    "port": network_option("--port", min=0, max=65535, help="0 takes a free one."),
    "workers": limit_option("--workers", min=1, max=256, help="Worker processes; one spare is added."),
    "deadline_ms": limit_option("--deadline-ms", min=1, help="Deadline of requests that have none."),
    "most_deadline_ms": limit_option("--most-deadline-ms", min=1, help="Longest deadline a request may have."),
    "most_rows": limit_option("--most-rows", min=1, help="Largest number of rows per request."),
    "most_n": limit_option("--most-n", min=1, max=LARGEST_N, help="Largest number of counterfactuals per row."),
    "most_cost": limit_option("--most-cost", min=1, help="Largest estimated cost of a request, in default rows."),
    "most_waiting": limit_option("--most-waiting", min=1, help="Rows queued or being explained before status 429."),
    "most_connections": limit_option("--most-connections", min=1, help="Open connections."),
    "most_connections_per_address": limit_option("--most-connections-per-address", min=1, help="The same per address."),
    "grace": limit_option("--grace", min=0, max=3600, help="Seconds to finish accepted work after SIGTERM."),
    "records": record_option("--records", help="sqlite:///FILE, postgresql://…, or none.", envvar="FASTERCE_RECORDS"),
    "retention_days": record_option("--retention-days", min=1, help="Delete records after this number of days."),
    "keys": record_option("--keys", help="File of API keys, see `fasterce keys`."),
    "log_level": typer.Option("--log-level", help="debug, info, warning or error."),
    "log_address": typer.Option("--log-address", help="Addresses of clients in the log: truncated, full or none."),
}


@guarded
@partial(with_options, offered_options=(), more=parameters_of(Settings, SETTINGS), quiet=False)
def serve(
    artifacts: Annotated[list[str], typer.Argument(metavar="[NAME=]FOLDER...", help="Folders written by `fasterce fit`.")],
    model: Annotated[
        list[str] | None,
        model_option("--model", help="[NAME=]SOURCE, for a folder saved without its model; not a pickle (repeat)."),
    ] = None,
    trusted: Trusted = None,
    classes: Classes = None,
    applicants: Annotated[
        list[str] | None, typer.Option(help="[NAME=]FILE: applicants for the page, CSV or Parquet (repeat).")
    ] = None,
    applicants_id: Annotated[
        str | None, typer.Option("--id", help="The column of --applicants with their identifiers.")
    ] = None,
    title: Annotated[list[str] | None, typer.Option(help="[NAME=]TEXT: the title on the page (repeat).")] = None,
    origin: Annotated[
        list[str] | None, network_option("--origin", help="Another site whose pages may send requests, https://… (repeat).")
    ] = None,
    require: Annotated[
        list[str] | None,
        record_option(
            "--require", help="Fields of a stored record: subjects, decision_ids, row_ids, constraints_by (a,b or repeat)."
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None, network_option("--proxy", help="Address of a proxy whose X-Forwarded-For is trusted (repeat).")
    ] = None,
    no_page: Annotated[bool, network_option("--no-page", help="Serve the API without the page.")] = False,
    no_keys: Annotated[
        bool, record_option("--no-keys", help="Serve everyone who can reach it, also from other machines.")
    ] = False,
    **given: Any,
) -> None:
    """Serve explanations over HTTP, with a page; see docs/serve.md."""
    host, log_level = given["host"], given["log_level"]
    if given["keys"] is None and not no_keys and host not in LOCAL:
        raise InputError("cli.keys_required", option="host", received=host)
    if log_level not in LOG_LEVELS:
        raise InputError(unknown("cli.unknown_log_level", log_level, LOG_LEVELS, option="log_level"))
    if given["records"] == "none":
        given["records"] = None
    required = tuple(name.strip() for names in require or () for name in names.split(","))
    for name in required:
        if name not in REQUIRABLE:
            raise InputError(unknown("cli.unknown_requirement", name, REQUIRABLE, option="require"))
    named = served(artifacts, model or [], applicants or [], title or [], tuple(trusted or ()), classes, applicants_id)
    settings = Settings(
        artifacts=tuple(named),
        origins=tuple(origin or ()),
        required=required,
        proxies=tuple(proxy or ()),
        page=not no_page,
        **given | {"most_deadline_ms": max(given["most_deadline_ms"], given["deadline_ms"])},
    )
    # Workers import their modules while this process imports its own.
    server = start_fork_server(settings)
    try:
        from fasterce.serve.run import run  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("fasterce"):
            raise
        raise MissingExtraError(error.name, "serve", "Serving") from error
    run(settings, lambda sentence: say(sentence, always=True), server)


def served(
    artifacts: list[str],
    models: list[str],
    applicants: list[str],
    titles: list[str],
    trusted: tuple[str, ...],
    classes: str | None,
    id_column: str | None,
) -> Iterable[ServedArtifact]:
    """Yield each artifact with the options that name it, NAME=VALUE, or VALUE alone for the only artifact."""
    folders = dict(named_folder(given) for given in artifacts)
    if len(folders) < len(artifacts):
        raise InputError("cli.artifact_names", received=artifacts)
    model = by_name(models, folders, "model")
    listed = by_name(applicants, folders, "applicants")
    title = by_name(titles, folders, "title")
    for name, folder in folders.items():
        file = Path(listed[name]) if name in listed else None
        yield ServedArtifact(name, folder, model.get(name), trusted, classes, title.get(name), file, id_column)


def named_folder(given: str) -> tuple[str, Path]:
    """Read NAME=FOLDER; the name of a folder alone is its last part."""
    name, equals, folder = given.partition("=")
    if not equals or Path(given).exists():
        return Path(given).resolve().name, Path(given)
    return name, Path(folder)


def by_name(given: list[str], known: dict[str, Path], option: str) -> dict[str, str]:
    """Return the values of an option by artifact."""
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if equals and name in known:
            found[name] = value
        elif len(known) == 1:
            found[next(iter(known))] = one
        else:
            raise InputError(unknown("cli.unknown_artifact", name, known, option=option))
    return found
