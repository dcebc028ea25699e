"""Bodies of requests and responses as pydantic models: the OpenAPI description is made from them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, create_model, model_validator, with_config
from typing_extensions import TypedDict

from fasterce.options import ExplainOptions, Kind, Option, declared, offered
from fasterce.serve.api.problems import text
from fasterce.serve.messages import BatchUsage, Json, RecordLine

LONGEST_NAME = 200
# Constraints of a request, and whole numbers of options without a limit of their own.
MAX_CONSTRAINTS = 100
MAX_WHOLE = 1_000_000
Whole = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Text = Annotated[str, Field(strict=True, max_length=10_000)]
# NaN is accepted here: in a row it is a missing value, and a problem of that row only.
Cell = StrictBool | Whole | StrictFloat | Text | None
Scalar = StrictBool | Whole | Real | Text
End = Whole | Real | None
Column = Annotated[str, Field(strict=True, max_length=LONGEST_NAME)]
# Names by which records are found have no control characters: every database accepts them, and every letter shows them.
Name = Annotated[str, Field(strict=True, min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00-\x1f\x7f]+$")]
Ends = Annotated[list[End], Field(min_length=2, max_length=2)]
# Validation stops at the first error: to report every error of a body of 1 MiB takes many seconds.
FIRST = Field(fail_fast=True)
# A record in the OpenAPI description.
RECORD = {"$ref": "#/components/schemas/Record"}
Cells = Annotated[dict[str, Cell], FIRST]
Columns = Annotated[list[Column], FIRST]
Names = Annotated[tuple[Name, ...], FIRST]
RowIds = Annotated[tuple[Whole | Name, ...], FIRST]


class RequestBody(BaseModel):
    """What would have had to be different for the model to predict something else?"""

    model_config = ConfigDict(extra="forbid")

    artifact: Column | None = Field(None, description="Which artifact; the first one if none is named")
    rows: Annotated[list[Cells], FIRST] = Field(min_length=1, description="The rows to explain: values by column")
    deadline_ms: Annotated[int, Field(strict=True, ge=1)] | None = Field(None, description="Time limit in milliseconds")
    row_ids: RowIds | None = Field(None, description="One per row: its label in the record")
    decision_ids: Names | None = Field(None, description="One per row: the decision it is about")
    subjects: Names | None = Field(None, description="One per row: whom it is about; stored as a pseudonym only")
    edited: Annotated[tuple[Columns, ...], FIRST] | None = Field(
        None, description="One list per row: columns whose values were edited by hand; the record says so"
    )
    constraints_by: Name | None = Field(None, description="Who set the constraints of this request")
    keep: StrictBool = Field(True, description="Store the audit records; false for a preview")

    @model_validator(mode="before")
    @classmethod
    def limit_names(cls, sent: Json) -> Json:
        if isinstance(sent, dict) and len(sent) > len(cls.model_fields):
            unknown = next(name for name in sent if name not in cls.model_fields)
            raise ValueError(text("extra_input", received=unknown))
        return sent

    @model_validator(mode="after")
    def one_per_row(self) -> "RequestBody":
        for name in ("row_ids", "decision_ids", "subjects", "edited"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.rows):
                raise ValueError(text("not_one_per_row", option=name, expected=len(self.rows), received=len(given)))
        return self

    def options(self) -> dict[str, Json]:
        """Return the options of `explain`, by their names in the body."""
        return {name: getattr(self, name) for name in OPTIONS}


# Types of options by kind; those of kind PLAIN and FACTORS depend on the option.
KINDS: Mapping[Kind, Json] = {
    Kind.TARGET: Scalar | Ends,
    Kind.BOUNDS: Ends,
    Kind.COLUMNS: Columns,
    Kind.RANGES: Annotated[dict[str, Annotated[list[Scalar | None], FIRST]], FIRST],
    Kind.CONSTRAINTS: Annotated[list[dict[str, Json]], FIRST, Field(max_length=MAX_CONSTRAINTS)],
}


def option_type(option: Option) -> Json:
    """Return the type of an option in the body of a request."""
    if option.kind in KINDS or option.kind is Kind.GROUP:
        return KINDS.get(option.kind) or group_type(option)
    choices: Json = Literal[option.choices] if option.choices else None
    if option.kind is Kind.FACTORS:
        factors = Annotated[dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]], FIRST]
        return factors if choices is None else choices | factors
    if choices is not None:
        return choices
    if option.type is bool:
        return StrictBool
    limits: dict[str, Json] = {"gt" if option.exclusive else "ge": option.minimum, "le": option.maximum}
    if option.type is int:
        limits["le"] = option.maximum or MAX_WHOLE
        return Annotated[int, Field(strict=True, **limits)]
    return Annotated[float, Field(allow_inf_nan=False, **limits)]


def group_type(option: Option) -> Json:
    """Return the type of an option that has options of its own: an object with some of their names."""
    fields = {one.name: option_type(one) for one in declared(option.annotation)}
    kind: Json = TypedDict(option.annotation.__name__, fields, total=False)  # type: ignore[misc]
    return with_config(ConfigDict(extra="forbid"))(kind)


def request_model(cls: type = ExplainOptions) -> type[RequestBody]:
    """Return the model of a request, with the options a class declares."""
    fields: dict[str, Json] = {}
    for option in offered("http", cls):
        kind = option_type(option)
        default = list(option.default) if isinstance(option.default, tuple) else option.default
        if option.kind is Kind.GROUP:
            default = option.default.values()
        kind = kind if default is not None else kind | None
        fields[str(option.http)] = (kind, Field(default, description=option.help))
    return create_model("ExplainRequest", __base__=RequestBody, __doc__=RequestBody.__doc__, **fields)


if TYPE_CHECKING:
    ExplainRequest = RequestBody
else:
    ExplainRequest = request_model()
OPTIONS = [name for name in ExplainRequest.model_fields if name not in RequestBody.model_fields]


class ArtifactInfo(BaseModel):
    name: str
    title: str
    artifact_digest: str
    model_digest: str | None
    model_kind: str
    loaded: str
    default: bool = False


class ExplainResponse(BaseModel):
    request_id: str
    artifact: ArtifactInfo
    kept: bool
    records: list[dict[str, Json]] = Field(description="One audit record per row, in order; see docs/records.md")
    usage: BatchUsage
    ms: float


class Artifacts(BaseModel):
    artifacts: list[ArtifactInfo]


class SchemaInfo(BaseModel):
    artifact: str
    title: str
    features: list[dict[str, Json]]
    passthrough: list[dict[str, Json]] = Field(
        default_factory=list,
        description="Columns that are no features, and whether the model reads them, so that a row needs one",
    )
    constraints: list[Json]
    target: dict[str, Json]
    scores: bool
    efforts: list[float] | None = Field(None, description="Quantiles of the distances of others' counterfactuals")
    limits: dict[str, Json]
    digests: dict[str, Json]
    records: dict[str, Json] = Field(
        description="Whether records are kept, which fields a kept one must have, whether subjects can be named, and sender, "
        "contact and recipient of letters"
    )
    may: dict[str, bool] = Field(
        description="What this key permits besides explaining: `list_applicants`, `find_records`, `erase_records`; false too "
        "where there is nothing to list or find"
    )


class RecordList(BaseModel):
    records: list[RecordLine]


class SubjectQuery(BaseModel):
    """Whose records to find; in the body, since addresses are logged."""

    model_config = ConfigDict(extra="forbid")

    subject: Name = Field(description="The person, as in `subjects` of a request")
    first: Annotated[int, Field(strict=True, ge=0, le=10**9)] = 0
    count: Annotated[int, Field(strict=True, ge=1, le=200)] = 50


class LetterRequest(BaseModel):
    """What goes into a letter; what is left out comes from the settings."""

    model_config = ConfigDict(extra="forbid")

    sender: Annotated[str, Field(strict=True, max_length=1000)] = Field("", description="Organisation and address")
    contact: Annotated[str, Field(strict=True, max_length=1000)] = Field("", description="Whom to ask")
    recipient: Annotated[str, Field(strict=True, max_length=1000)] = Field("", description="Name and address of the person")
    alternatives: Annotated[list[Annotated[int, Field(strict=True, ge=0)]], FIRST] | None = Field(
        None, description="Positions of the counterfactuals to include; by default all"
    )
    keep: bool = Field(
        False, strict=True, description="Store with the record that this letter was written, and what it contains"
    )


class LetterSummary(BaseModel):
    """A letter that was written about a record; its text is not stored."""

    time: str
    alternatives: list[int] = Field(description="Positions of the counterfactuals it contains")
    digest: str = Field(description="SHA-256 of its text")
    key: str | None = Field(description="Name of the key it was written with")


class LetterList(BaseModel):
    letters: list[LetterSummary]


class Erased(BaseModel):
    erased: int


class ApplicantPage(BaseModel):
    """Applicants to choose from, as they are in the file the server was given."""

    total: int
    first: int
    people: list[dict[str, Json]]


Datatype = Literal[
    "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP16", "FP32", "FP64", "BYTES"
]  # fmt: skip


class InputTensor(BaseModel):
    name: Column
    shape: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, max_length=2)
    datatype: Datatype
    data: Annotated[list[Cell | Annotated[list[Cell], FIRST]], FIRST] | None = Field(None, description="Not as binary data")
    parameters: dict[str, Json] = {}


class RequestedOutput(BaseModel):
    name: Literal["record", "status", "counterfactual"]
    parameters: dict[str, Json] = {}


class InferenceRequest(BaseModel):
    """Open Inference V2: one tensor per column; options of /v1/explain as parameters."""

    id: Annotated[str, Field(max_length=LONGEST_NAME)] | None = None
    inputs: Annotated[list[InputTensor], FIRST] = Field(min_length=1)
    outputs: Annotated[list[RequestedOutput], FIRST] | None = None
    parameters: dict[str, Json] = {}


class OutputTensor(BaseModel):
    name: str
    shape: list[int]
    datatype: str
    data: list[Json]


class InferenceResponse(BaseModel):
    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[OutputTensor]
    parameters: dict[str, Json] = {}


class InstancesRequest(BaseModel):
    """KServe V1: rows as objects by column, or as lists in the order of the columns."""

    instances: Annotated[list[Cells | Annotated[list[Cell], FIRST]], FIRST] = Field(min_length=1)
    parameters: dict[str, Json] = {}


class Explanations(BaseModel):
    explanations: list[dict[str, Json]] = Field(description="One audit record per instance, in order; see docs/records.md")


class InstancePredictions(BaseModel):
    predictions: list[Json]
