"""`fasterce serve`: explanations over HTTP, and a page."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from fasterce.cli.console import say
from fasterce.cli.exits import guarded
from fasterce.cli.options import Classes, Trusted, model_option
from fasterce.errors import InputError, MissingExtraError, unknown_name
from fasterce.serve.engine.nursery import begin
from fasterce.serve.settings import LOCAL, Served, Settings

NETWORK, LIMITS, RECORDS = "Network", "Limits", "Records and keys"


def option(panel: str, *names: str, help: str, **more: object) -> object:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)  # type: ignore[arg-type]


@guarded
def serve(
    artifacts: Annotated[list[str], typer.Argument(metavar="[NAME=]FOLDER...", help="Folders written by `fasterce fit`.")],
    model: Annotated[
        list[str] | None,
        model_option("--model", help="[NAME=]SOURCE, for a folder that does not bring its model; not a pickle (repeat)."),
    ] = None,
    trusted: Trusted = None,
    classes: Classes = None,
    applicants: Annotated[
        list[str] | None, typer.Option(help="[NAME=]FILE: people to pick on the page, CSV or Parquet (repeat).")
    ] = None,
    applicants_id: Annotated[str | None, typer.Option("--id", help="The column of --applicants that names them.")] = None,
    title: Annotated[list[str] | None, typer.Option(help="[NAME=]TEXT: what the page calls it (repeat).")] = None,
    wording: Annotated[
        Path | None, typer.Option(help="File of the sentences in records and letters, JSON or YAML; see docs/records.md.")
    ] = None,
    host: Annotated[str, option(NETWORK, "--host", help="Address to listen on.")] = Settings.host,
    port: Annotated[int, option(NETWORK, "--port", min=0, max=65535, help="0 takes a free one.")] = Settings.port,
    origin: Annotated[
        list[str] | None, option(NETWORK, "--origin", help="Another site whose pages may ask, https://… (repeat).")
    ] = None,
    no_page: Annotated[bool, option(NETWORK, "--no-page", help="The routes alone.")] = False,
    workers: Annotated[
        int, option(LIMITS, "--workers", min=1, max=256, help="Processes that explain; a spare comes on top.")
    ] = (Settings.workers),
    deadline_ms: Annotated[
        int, option(LIMITS, "--deadline-ms", min=1, help="For requests that name none.")
    ] = Settings.deadline_ms,
    most_rows: Annotated[int, option(LIMITS, "--most-rows", min=1, help="Rows of one request.")] = Settings.most_rows,
    most_waiting: Annotated[
        int, option(LIMITS, "--most-waiting", min=1, help="Rows waiting or being explained before 429.")
    ] = Settings.most_waiting,
    grace: Annotated[
        float, option(LIMITS, "--grace", min=0, max=3600, help="Seconds for accepted work after SIGTERM.")
    ] = Settings.grace,
    records: Annotated[
        str, option(RECORDS, "--records", help="sqlite:///FILE, postgresql://…, or none.", envvar="FASTERCE_RECORDS")
    ] = str(Settings.records),
    retention_days: Annotated[
        int | None, option(RECORDS, "--retention-days", min=1, help="Records are deleted after so many days.")
    ] = None,
    keys: Annotated[Path | None, option(RECORDS, "--keys", help="File of API keys, see `fasterce keys`.")] = None,
    no_keys: Annotated[
        bool, option(RECORDS, "--no-keys", help="Answer everybody who can reach it, also beyond this machine.")
    ] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = Settings.log_level,
) -> None:
    """Serve explanations over HTTP, and a page for people; see docs/serve.md."""
    if keys is None and not no_keys and host not in LOCAL:
        raise InputError(f"Beyond this machine (--host {host}) a server needs --keys FILE, or --no-keys in as many words.")
    if log_level not in ("debug", "info", "warning", "error"):
        raise InputError(unknown_name("--log-level", log_level, ("debug", "info", "warning", "error")))
    settings = Settings(
        artifacts=tuple(
            served(artifacts, model or [], applicants or [], title or [], tuple(trusted or ()), classes, applicants_id)
        ),
        wording=wording,
        host=host,
        port=port,
        origins=tuple(origin or ()),
        page=not no_page,
        workers=workers,
        deadline_ms=deadline_ms,
        most_deadline_ms=max(Settings.most_deadline_ms, deadline_ms),
        most_rows=most_rows,
        most_waiting=most_waiting,
        grace=grace,
        records=None if records == "none" else records,
        retention_days=retention_days,
        keys=keys,
        log_level=log_level,
    )
    # What engines need is imported in their process while this one imports what the front needs.
    begun = begin(settings)
    try:
        from fasterce.serve.running import run  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("fasterce"):
            raise
        raise MissingExtraError(error.name, "serve", "Serving") from error
    run(settings, lambda sentence: say(sentence, always=True), begun)


def served(
    artifacts: list[str],
    models: list[str],
    applicants: list[str],
    titles: list[str],
    trusted: tuple[str, ...],
    classes: str | None,
    id_column: str | None,
) -> Iterable[Served]:
    """What goes with which artifact: NAME=VALUE, or VALUE alone where there is one artifact."""
    folders = dict(named_folder(given) for given in artifacts)
    if len(folders) < len(artifacts):
        raise InputError(f"Every artifact needs a name of its own, NAME=FOLDER; got {', '.join(artifacts)}.")
    model, people, title = (
        by_name(given, folders, what)
        for given, what in ((models, "--model"), (applicants, "--applicants"), (titles, "--title"))
    )
    for name, folder in folders.items():
        listed = Path(people[name]) if name in people else None
        yield Served(name, folder, model.get(name), trusted, classes, title.get(name), listed, id_column)


def named_folder(given: str) -> tuple[str, Path]:
    name, equals, folder = given.partition("=")
    if not equals or Path(given).exists():
        return Path(given).resolve().name, Path(given)
    return name, Path(folder)


def by_name(given: list[str], known: dict[str, Path], what: str) -> dict[str, str]:
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if equals and name in known:
            found[name] = value
        elif len(known) == 1:
            found[next(iter(known))] = one
        else:
            raise InputError(f"{what}: {unknown_name('artifact', name, known)}")
    return found
