"""HTML by Jinja2: one environment for every page and fragment of the library.

Values are escaped unless they are `Markup`. A name that a template does not know is an error.
"""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@cache
def environment() -> Environment:
    """Return the environment, which loads `fasterce/viz/templates`."""
    return Environment(
        loader=PackageLoader("fasterce.viz"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: object) -> Markup:
    """Render a template by its file name."""
    return Markup(environment().get_template(template).render(values))


def part(name: str, *values: object) -> Markup:
    """Render one macro of `parts.html.j2`."""
    return Markup(getattr(environment().get_template("parts.html.j2").module, name)(*values))


def macros(template: str, **values: object) -> Any:
    """Return the macros of a template as functions; the values are variables they can use."""
    return environment().get_template(template).make_module(values)
