"""What is sent and what comes back, as pydantic models: the OpenAPI description is made from them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, model_validator

LONGEST_NAME = 200
Whole = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Text = Annotated[str, Field(strict=True, max_length=10_000)]
# NaN is let through here: in a row it is a value that is missing, and the row's own problem.
Cell = StrictBool | Whole | StrictFloat | Text | None
Scalar = StrictBool | Whole | Real | Text
End = Whole | Real | None
Column = Annotated[str, Field(strict=True, max_length=LONGEST_NAME)]
# What is written into records to find them by has no control characters: no database has to refuse it, no letter to hide it.
Name = Annotated[str, Field(strict=True, min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00-\x1f\x7f]+$")]
Ends = Annotated[list[End], Field(min_length=2, max_length=2)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


# The first thing wrong ends the reading: to tell all that is wrong with a body of 1 MiB takes the front many seconds.
FIRST = Field(fail_fast=True)
Cells = Annotated[dict[str, Cell], FIRST]
Columns = Annotated[list[Column], FIRST]
Names = Annotated[list[Name], FIRST]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="null")

    @model_validator(mode="before")
    @classmethod
    def few_names(cls, sent: Any) -> Any:
        if isinstance(sent, dict) and len(sent) > len(cls.model_fields):
            unknown = next(name for name in sent if name not in cls.model_fields)
            raise ValueError(f"Extra inputs are not permitted, such as {unknown!r:.100}")
        return sent


class Asked(Strict):
    """What would have had to be different for the model to say something else?"""

    artifact: Column | None = Field(None, description="Which artifact; the first one if none is named")
    rows: Annotated[list[Cells], FIRST] = Field(min_length=1, description="The people asked about: column by column")
    method: Literal["closest", "sparse", "realistic", "all"] = "closest"
    n: int = Field(1, ge=1, le=100, strict=True, description="How many different answers a row")
    target: Scalar | Ends | None = Field(
        None, description="The wanted class, or [low, high] of a number; null: the other class"
    )
    target_score: Ends | None = Field(None, description="[low, high] of the wanted chance of the class target")
    freeze: Columns = Field([], description="Columns that must not change")
    vary: Columns | None = Field(None, description="The only columns that may change")
    ranges: Annotated[dict[str, Annotated[list[Scalar | None], FIRST]], FIRST] = Field(
        {}, description="[low, high] of a number, or the categories allowed"
    )
    rules: Annotated[list[dict[str, Any]], FIRST] = Field([], max_length=100, description="Further rules, as in a rules file")
    override: StrictBool = Field(False, description="Let rules of this request replace what the schema says of their columns")
    robust: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = Field(
        None, description="The share of small shakes under which an answer must hold"
    )
    distance: (
        Literal["percentile", "gower", "mad"]
        | Annotated[dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]], FIRST]
    ) = "percentile"
    realism: Share = 0.5
    diversity: Share = 0.5
    budget: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] | None = Field(
        None, description="The most rows the model is asked about"
    )
    why_not: StrictBool = Field(True, description="Where there is no answer, find out which rule stands in the way")
    deadline_ms: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        None, description="After which an answer is of no use"
    )
    row_ids: Annotated[list[Whole | Name], FIRST] | None = Field(None, description="One a row: its label in the record")
    decision_ids: Names | None = Field(None, description="One a row: the decision it is about")
    subjects: Names | None = Field(None, description="One a row: whom it is about; kept as a pseudonym only")
    constraints_by: Name | None = Field(None, description="Who set the rules of this request")
    keep: StrictBool = Field(True, description="Keep the audit records; false for a preview")

    @model_validator(mode="after")
    def one_a_row(self) -> "Asked":
        for name in ("row_ids", "decision_ids", "subjects"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.rows):
                raise ValueError(f"{name} must be one a row: expected {len(self.rows)}, got {len(given)}")
        return self


class ArtifactSaid(BaseModel):
    name: str
    title: str
    artifact_digest: str
    model_digest: str | None
    model_kind: str
    loaded: str
    default: bool = False


class Cost(BaseModel):
    """Of the call that answered, together with others asked at the same time."""

    calls: int
    rows: int
    batch_rows: int


class Explained(BaseModel):
    request_id: str
    artifact: ArtifactSaid
    kept: bool
    records: list[dict[str, Any]] = Field(description="One audit record a row, in order; see docs/records.md")
    asked: Cost
    ms: float


class Artifacts(BaseModel):
    artifacts: list[ArtifactSaid]


class SchemaSaid(BaseModel):
    artifact: str
    title: str
    features: list[dict[str, Any]]
    rules: list[Any]
    target: dict[str, Any]
    scores: bool
    limits: dict[str, Any]
    digests: dict[str, Any]


class RecordLine(BaseModel):
    id: str
    request: str
    decision: str | None
    subject: str | None
    artifact: str
    status: str
    time: str
    retain_until: str | None


class RecordList(BaseModel):
    records: list[RecordLine]


class Erased(BaseModel):
    erased: int


class People(BaseModel):
    """People to choose from, as they are in the file the server was given."""

    total: int
    first: int
    people: list[dict[str, Any]]


class Reloaded(BaseModel):
    artifacts: list[ArtifactSaid]


Datatype = Literal[
    "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP16", "FP32", "FP64", "BYTES"
]  # fmt: skip


class Tensor(BaseModel):
    name: Column
    shape: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, max_length=2)
    datatype: Datatype
    data: Annotated[list[Cell | Annotated[list[Cell], FIRST]], FIRST]
    parameters: dict[str, Any] = {}


class TensorWanted(BaseModel):
    name: Literal["record", "status", "counterfactual"]
    parameters: dict[str, Any] = {}


class Inference(BaseModel):
    """Open Inference V2: a tensor a column; options of /v1/explain as parameters."""

    id: Annotated[str, Field(max_length=LONGEST_NAME)] | None = None
    inputs: Annotated[list[Tensor], FIRST] = Field(min_length=1)
    outputs: Annotated[list[TensorWanted], FIRST] | None = None
    parameters: dict[str, Any] = {}


class TensorSaid(BaseModel):
    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class Inferred(BaseModel):
    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[TensorSaid]
