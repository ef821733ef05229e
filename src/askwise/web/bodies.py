"""What may be sent and what comes back, as types: they check requests and make the OpenAPI schema."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainValidator, ValidationError, WithJsonSchema

from askwise.errors import InputError, did_you_mean

SCALARS = [{"type": "boolean"}, {"type": "number"}, {"type": "string"}]
EACH = {"type": "object", "additionalProperties": {"anyOf": SCALARS}}
# whether a value is right depends on the test; the session says so in a sentence
Value = Annotated[JsonValue, WithJsonSchema({"anyOf": [*SCALARS, EACH]})]
Label = Annotated[JsonValue, WithJsonSchema({"anyOf": SCALARS})]
Name = Annotated[str, Field(max_length=1000)]


class CaseBody(BaseModel):
    """A case: everything that is known about it so far. Nothing is kept between two requests."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    known: dict[str, Value] = Field({}, description="Values that are known from the start, by test, free of charge.")
    answers: dict[str, Value] = Field(
        {},
        description="Results of tests that were carried out and paid, by test. What a test "
        "that reveals several columns gave is an object with a value for each.",
    )
    refused: list[Name] = Field([], description="Tests that are not available for this case.")
    outside: bool | list[Name] = Field(
        False, description="Whether values may lie outside of what training saw, or for which tests they may."
    )
    case_id: Annotated[str, Field(min_length=1, max_length=200)] | Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = Field(
        None,
        description="Name of the case. A model that mixes two policies draws by it; without one, a name is made up and "
        "sent back, and should come with the next request.",
    )
    budget: Annotated[float, Field(ge=0)] | None = Field(None, description="What this case may cost at most.")
    stop: bool = Field(False, description="Decide now.")

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of a `PartialCase`."""
        return {name: value for name, value in self if name != "stop"}


class ClassProbabilityBody(BaseModel):
    name: Label = Field(serialization_alias="class")
    probability: float
    loss: float = Field(description="Expected if it were decided for this class now. The class with the least is decided.")


class OptionBody(BaseModel):
    test: str
    cost: float = Field(description="What the test costs now.")
    gain: float | None = Field(description="Expected loss that it saves beyond its cost; null if it is not estimated.")


class OtherDecisionBody(BaseModel):
    decision: str
    loss: float = Field(description="Expected, if this were decided now.")


class ExpectedBody(BaseModel):
    cost: float = Field(description="Still to be paid.")
    total: float = Field(description="Paid at the end.")
    loss: float = Field(description="Of the decision at the end.")
    accuracy: float


class StepBody(BaseModel):
    """The next test, or the decision. One of `test` and `decision` is null."""

    case_id: str
    test: str | None = Field(description="The test to carry out next.")
    test_cost: float | None = Field(description="What that test costs now.")
    shared: float | None = Field(description="The part of it that other tests share.")
    includes: list[str] = Field(description="Tests that are carried out and paid with it, since it is computed from them.")
    decision: Label | None = Field(description="What is decided: a class, or one of the other decisions.")
    probability: float | None = Field(description="Of the decision; null where it is not a class.")
    decision_cost: float | None = Field(description="What the decision costs.")
    other_decisions: list[OtherDecisionBody] = Field(description="Decisions that are not classes.")
    probabilities: list[ClassProbabilityBody]
    why: list[OptionBody] = Field(description="The chosen test first, then its runners-up.")
    reason: str
    expected: ExpectedBody
    cost: float = Field(description="Paid so far, with the decision.")
    left: float | None = Field(description="Of the budget.")


class ErrorBody(BaseModel):
    """What was wrong, in one sentence."""

    error: str


def _alone(case: Any) -> CaseBody | ErrorBody:
    """One case of many, or what is wrong with it: the others go on."""
    try:
        return CaseBody.model_validate(case)
    except ValidationError as error:
        return ErrorBody(error=sentence(error, CaseBody, "the case"))


class BatchBody(BaseModel):
    """Many cases, answered together."""

    model_config = ConfigDict(extra="forbid", strict=True)

    cases: list[Annotated[CaseBody | ErrorBody, PlainValidator(_alone, json_schema_input_type=CaseBody)]]


class StepsBody(BaseModel):
    """One for each case of the batch, in its order."""

    steps: list[StepBody | ErrorBody]


class TraceBody(BaseModel):
    """The record of a case, which `askwise.Session.replay` reads."""

    model_config = ConfigDict(extra="allow")

    format: str
    case_id: str
    cost: float
    decision: Label | None


class ColumnBody(BaseModel):
    column: str
    kind: str = Field(description="number, boolean, time, category or ordinal")
    categories: list[str]
    others: bool = Field(description="Rare words were put together: those that are not listed are accepted with `outside`.")
    low: float | str | None = Field(description="The range that training saw.")
    high: float | str | None
    whole: bool


class TestBody(BaseModel):
    __test__ = False  # pytest: this is none of yours

    test: str
    cost: float = Field(description="When nothing has been paid yet.")
    columns: list[ColumnBody]


class MeasureBody(BaseModel):
    """Figures that were measured on cases that the fit kept apart, and their standard errors."""

    cost: float
    loss: float
    accuracy: float
    n: int = Field(description="How many cases were measured.")
    cost_error: float
    loss_error: float
    accuracy_error: float


class PointBody(MeasureBody):
    lam: float


class SummaryBody(BaseModel):
    """A model, in short."""

    name: str
    tests: int
    classes: list[Label]
    unit: str
    total_cost: float = Field(description="Of all tests.")
    expected_cost: float
    expected_accuracy: float
    expected_cost_error: float = Field(description="A standard error.")
    expected_accuracy_error: float
    measured_on: int = Field(description="How many cases these were measured on.")


class ModelsBody(BaseModel):
    models: list[SummaryBody]


class FigureBody(BaseModel):
    """A share of cases, or the mean loss, measured on cases that the fit kept apart."""

    value: float
    cases: float = Field(description="How many cases it is of.")
    interval: list[float] = Field(description="The ends of its 95 % interval.", min_length=2, max_length=2)


class TargetBody(BaseModel):
    """What the budget has to reach."""

    target: str = Field(description="As it is written in Python.")
    figure: str = Field(description="accuracy, recall, specificity or loss")
    value: float = Field(description="The least that a share may be, or the most that the loss may be.")
    of: Label | None = Field(description="The class, of recall and specificity.")
    confidence: float | None = Field(description="Probability with which it is reached; null: it is expected to be.")
    measured: FigureBody


class ClassWeightBody(BaseModel):
    name: Label = Field(serialization_alias="class")
    weight: float = Field(description="How many times as much mistakes about the class count as they otherwise would.")


class ClassFiguresBody(BaseModel):
    name: Label = Field(serialization_alias="class")
    recall: FigureBody
    specificity: FigureBody


class RecallStepBody(MeasureBody):
    asked: float = Field(description="The recall that is asked for.")
    specificity_asked: float | None = Field(
        description="The specificity beside it; null: cases lose no more than decided at once."
    )
    recall: FigureBody
    specificity: FigureBody


class ClassRecallsBody(BaseModel):
    """The cheapest policy for each recall of a class, where cases lose no more than if all were decided at once; of a class
    of which none is found there, with the most specificity that goes with the recall."""

    name: Label = Field(serialization_alias="class")
    cases: float
    most: float = Field(description="The most that can be asked for.")
    steps: list[RecallStepBody]


class ModelCardBody(BaseModel):
    """A model: what it asks, decides and is expected to cost."""

    name: str
    classes: list[Label]
    other_decisions: dict[str, float] = Field(description="Decisions that are not classes, with what each costs.")
    unit: str
    total_cost: float
    known: list[str] = Field(description="Tests that it takes for known by everyone.")
    tests: list[TestBody]
    objective: str = Field(description="What it was learned for: accuracy, a loss, log loss or Brier score.")
    budget: str
    expected: MeasureBody
    frontier: list[PointBody]
    bought: dict[str, float] | None = Field(description="How often each test is bought; null if it was not recorded.")
    targets: list[TargetBody] = Field(description="What the budget has to reach, and what was measured of it.")
    class_weights: list[ClassWeightBody] = Field(description="Those of the budget; classes that are not named count 1.")
    by_class: list[ClassFiguresBody] = Field(description="Where it works; none where its cases were not counted by class.")
    recalls: list[ClassRecallsBody] = Field(description="What each recall costs, of the rarest class first; none as above.")


class HealthBody(BaseModel):
    status: str
    version: str
    models: int


AnyBody = TypeVar("AnyBody", bound=BaseModel)
_VALUES = "an object of values by test"
RIGHT = {
    "known": _VALUES,
    "answers": _VALUES,
    "refused": "a list of names of tests",
    "outside": "true, false or a list of names of tests",
    "case_id": "a text of 1 to 200 characters, a whole number below 2^63, or null",
    "budget": "a number, 0 or more, or null",
    "stop": "true or false",
    "cases": "a list of cases",
}


def read(kind: type[AnyBody], body: bytes) -> AnyBody:
    """What a request brings, or a sentence. Cases of a batch that cannot be used are in it, as errors."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise InputError(sentence(error, kind, "the body")) from None


def sentence(error: ValidationError, model: type[BaseModel], whole: str) -> str:
    """The first thing that is wrong with a body, or with one case of it."""
    errors = error.errors(include_url=False, include_context=False)
    first = max((e for e in errors if e["loc"][:1] == errors[0]["loc"][:1]), key=lambda e: len(e["loc"]))  # the most telling
    if first["type"] == "json_invalid":
        return f"{whole} is not JSON: {first['msg'][0].lower() + first['msg'][1:]}"
    value, loc = _short(first.get("input")), first["loc"]
    if not loc:
        return f"{whole} is {value}; it must be an object with the fields {', '.join(model.model_fields)}"
    name = str(loc[0])
    if first["type"] == "extra_forbidden":
        return f"there is no field {name[:60]!r}; {did_you_mean(name[:60], model.model_fields)}"
    if first["type"] == "missing":
        return f"there is no field {name!r}; it must be {RIGHT[name]}"
    if RIGHT[name] == _VALUES and len(loc) > 1:
        return f"{name} holds {value} for {str(loc[1])[:60]!r}; it must be a text, a finite number, true or false"
    holds = any(isinstance(part, int) for part in loc)  # the place in a list; other parts are names of types
    return f"{name} {'holds' if holds else 'is'} {value}; it must be {RIGHT[name]}"


def _short(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    try:
        text = json.dumps(value)
    except (ValueError, TypeError):
        return "something else"
    return text if len(text) <= 60 else text[:57] + "..."
