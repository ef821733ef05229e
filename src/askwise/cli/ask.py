"""The work behind `askwise ask`: a session in a terminal, or the same for the rows of a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from askwise.cli.options import ids_of, model_of, reading_of
from askwise.core.sampling import uniform
from askwise.errors import FREE, OUTSIDE, REFUSE, InputError, reworded
from askwise.files import check_out, write_whole
from askwise.model.model import LearnedModel
from askwise.session.providers import Decided, decide_many
from askwise.session.session import TRACE, Session
from askwise.session.step import Step
from askwise.tables.reading import errors_name_lines, read_table
from askwise.texts import printable, split

HELP = """answer with a value, or:
  why                 why this test, and what is expected
  refuse [TEST]       it is not available; go on without it
  tell TEST=VALUE     the result of another test; known TEST=VALUE if it cost nothing
  if VALUE            what would come next if this were the answer
  undo                take back the last answer, refusal or stop
  stop                decide now
  ?                   this help
Put ! after a value that training rarely or never saw if it is right. The end of the input (Ctrl-D) means stop."""
WORDS = {
    OUTSIDE: "end it with ! if it is right",
    FREE: "use known if it cost nothing",
    REFUSE: "give it, or type refuse if it is not available",
}


def run(options: argparse.Namespace) -> None:
    """A case, question by question."""
    model = model_of(options)
    if options.trace is not None:
        check_out(options.trace, "the record", [options.model, options.simulate])
        _check_replaced(options.trace)
    if options.simulate is not None:
        simulate(options, model)
        return
    if options.json:
        raise InputError("--json needs cases from a file; add --simulate FILE")
    session = _begun(options, model)
    try:
        _talk(session)
    finally:
        if options.trace is not None:
            write_whole(options.trace, (json.dumps(session.trace(), indent=1) + "\n").encode())


def _begun(options: argparse.Namespace, model: LearnedModel) -> Session:
    """The session that the options describe."""
    known, outside = {}, []
    try:
        for text in options.known or ():
            name, value = _pair(text, "--known")
            known[name], insisted = _value(model, name, value)
            outside += [name] if insisted else []
        return Session(model, known, case_id=options.case_id, budget=options.budget, outside=outside)
    except InputError as error:
        raise InputError(reworded(error, WORDS)) from None


def _check_replaced(trace: Path) -> None:
    """An older record may be written over, anything else may not."""
    if not trace.is_file() or not trace.stat().st_size:
        return
    try:
        record = json.loads(trace.read_bytes())
    except (ValueError, RecursionError):
        record = None
    first = record[0] if isinstance(record, list) and record else record
    if not isinstance(first, dict) or first.get("format") != TRACE:
        why = "that file exists and is not a record of sessions"
        raise InputError(f"the record cannot be written to {str(trace)!r}: {why}; name another file")


def _talk(session: Session) -> None:
    print("? for help")
    if session.drawn:
        print(printable(session.drawn))
    while True:
        step = session.next()
        if step.decision is not None:
            print(_decision(session, step))
        try:
            line = input("undo, or Enter to end: " if step.decision is not None else _question(session, step))
        except EOFError:
            print()
            if step.decision is None:
                print(_decision(session, session.stop()))
            return
        if step.decision is not None and not line.strip():
            return
        try:
            _obey(session, step, line.strip())
        except InputError as error:
            print(f"  {reworded(error, WORDS)}")


def _obey(session: Session, step: Step, line: str) -> None:
    """One line that was typed."""
    word, _, rest = line.partition(" ")
    rest = rest.strip()
    match word:
        case "?" | "help":
            print(HELP)
        case "":
            pass
        case "why":
            print(_why(session, step))
        case "undo":
            undone = session.undo()
            print(f"  taken back: {undone['do']} {undone.get('test', '')}".rstrip())
        case "stop":
            session.stop()
        case "refuse":
            session.refuse(rest or _asked(step))
        case "tell" | "known" if "=" in rest:
            name, value = _pair(rest, word)
            _tell(session, name, value, paid=word == "tell")
        case "if" if rest:
            value, outside = _value(session.model, _asked(step), rest)
            print("  " + _brief(session, session.what_if(_asked(step), value, outside=outside)))
        case _:
            _tell(session, _asked(step), line)


def _tell(session: Session, test: str, text: str, paid: bool = True) -> None:
    value, outside = _value(session.model, test, text)
    session.tell(test, value, paid=paid, outside=outside)


def _value(model: LearnedModel, test: str, text: str) -> tuple[Any, bool]:
    """What was typed: a value, or one for each column, separated by ; and whether it was insisted on."""
    outside = text.endswith("!")
    text = text.removesuffix("!").strip()
    fields = model.form.fields(test)
    if len(fields) == 1:
        return _unquoted(text), outside
    parts = [part.strip() for part in split(text)]
    if len(parts) != len(fields):
        names = "; ".join(field.column for field in fields)
        raise InputError(f"test {test!r} has {len(fields)} values; type them in this order, separated by ;: {names}")
    return {field.column: _unquoted(part) for field, part in zip(fields, parts, strict=True)}, outside


def _unquoted(text: str) -> str:
    """A word that is also a command may be put in quotes."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _asked(step: Step) -> str:
    if step.test is None:
        raise InputError("the case is decided, so there is no open question; undo something, or use tell TEST=VALUE")
    return step.test


def _pair(text: str, where: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"{where} {text!r} is not a pair; it must be TEST=VALUE")
    return name.strip(), value.strip()


# ---------------------------------------------------------------------- words


def _money(session: Session, amount: float) -> str:
    return f"{amount:.6g} {printable(session.model.unit)}".rstrip()


def _question(session: Session, step: Step) -> str:
    assert step.test_cost is not None
    fields = session.model.form.fields(_asked(step))
    shared = f", {_money(session, step.shared)} of it shared" if step.shared else ""
    what = "; ".join(_range(field) if len(fields) == 1 else f"{field.column} {_range(field)}".rstrip() for field in fields)
    words = f"{step.test} (costs {_money(session, step.test_cost)}{shared}) {what}: "
    return printable(words.replace("  ", " ").replace(" :", ":"))


def _range(field: Any) -> str:
    if field.categories:
        return f"[{', '.join(field.categories[:8])}{', ...' if len(field.categories) > 8 or field.others else ''}]"
    if field.kind == "boolean":
        return "[true, false]"
    if field.low is None:
        return ""
    if field.kind == "number":
        return f"[{field.low:g} to {field.high:g}]"
    return f"[{field.low} to {field.high}]".replace("T00:00:00", "")


def _brief(session: Session, step: Step) -> str:
    if step.test is not None:
        return f"{printable(step.test)} would come next, for {_money(session, step.test_cost or 0)}; {_beliefs(step)}"
    return f"the decision would be: {printable(step.decision)} ({_sure(session, step)})"


def _beliefs(step: Step) -> str:
    best = sorted(step.probabilities.items(), key=lambda pair: -pair[1])[:4]
    return ", ".join(f"{printable(name)} {p:.3f}" for name, p in best)


def _sure(session: Session, step: Step) -> str:
    """How probable a decision is and, where mistakes weigh differently, what it and the others are expected to lose. Where
    probabilities are the answer, all of them."""
    if session.model.rule is not None:
        return f"{_beliefs(step)}, {_losses(session, step)}"
    likely = _beliefs(step) if step.probability is None else f"probability {step.probability:.3f}"
    return likely + (f", {_losses(session, step)}" if session.model.weighted else "")


def _losses(session: Session, step: Step) -> str:
    if session.model.rule is not None:
        return f"expected {session.model.objective} if decided now: {max(step.losses.values()):.3g}"
    least = sorted(step.losses.items(), key=lambda pair: pair[1])[:4]
    return "expected loss if decided now: " + ", ".join(f"{printable(name)} {loss:.3g}" for name, loss in least)


def _why(session: Session, step: Step) -> str:
    e = step.expected
    lines = [
        step.reason,
        f"probabilities now: {_beliefs(step)}",
        *([_losses(session, step)] if session.model.judged_by_loss else []),
    ]
    if step.test is not None:
        lines.append(f"expected: {_money(session, e.cost)} more, {_money(session, e.total)} in all, accuracy {e.accuracy:.3f}")
    return "\n".join(f"  {printable(line)}" for line in lines)


def _decision(session: Session, step: Step) -> str:
    return f"decision: {printable(step.decision)} ({_sure(session, step)}), {_paid(session, step)}; {step.reason}"


def _paid(session: Session, step: Step) -> str:
    """What was paid, beside what the case may cost or, where nothing limits it, what all tests would."""
    paid = f"paid {_money(session, step.cost) if step.cost else 'nothing'}"
    if session.budget is not None:
        return f"{paid} of the {_money(session, session.budget)} that this case may cost"
    costs = session.model.schema.costs
    return f"{paid}, where all tests cost {_money(session, costs.money(costs.total))}"


# ---------------------------------------------------------------------- rows of a file


def simulate(options: argparse.Namespace, model: LearnedModel) -> None:
    """What sessions come to for the rows of a file, whose columns answer what is asked; the same as `askwise predict`."""
    for option, value in (("--known", options.known), ("--case-id", options.case_id)):
        if value is not None:
            raise InputError(f"{option} is for one case; it cannot be combined with --simulate")
    read_options = reading_of(options)
    with errors_name_lines(options.simulate, read_options):
        table = read_table(options.simulate, [*model.encoding.text, options.ids], read_options)
        ids = ids_of(table, options.ids)
        names = [str(i) for i in range(len(table))] if ids is None else [str(name) for name in ids]
        done = simulated(model, table, names, None if ids is None else np.asarray(ids), options.budget)
    if options.trace is not None:
        write_whole(options.trace, (json.dumps([d.session.trace() for d in done]) + "\n").encode())
    if options.json:
        print(json.dumps([_record(name, d) for name, d in zip(names, done, strict=True)]))
        return
    for name, d in zip(names, done, strict=True):
        path = ", ".join(f"{test}={value}" for test, value in d.session.answers.items()) or "nothing asked"
        sure = _sure(d.session, d.session.next()) if model.judged_by_loss else f"{d.probability:.3f}"
        print(f"{printable(name)}: {printable(path)} -> {printable(d.decision)} ({sure}), cost {_money(d.session, d.cost)}")
    cost, asked = np.mean([d.cost for d in done]), np.mean([len(d.tests) for d in done])
    print(f"{len(done)} cases, mean cost {cost:.4g} {printable(model.unit)}".rstrip() + f", {asked:.3g} tests each on average")


def simulated(model: LearnedModel, table: Any, names: list[str], ids: Any = None, budget: Any = None) -> list[Decided]:
    """Sessions over the rows of a table. Without ids they draw as `predict` does, by the values of the row."""
    problem = model.problem(table, ids=ids)
    tests, form = model.schema.offered, model.form
    columns = {field.column for test in tests for field in form.fields(test)}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*(table[c].tolist() for c in columns), strict=True)]
    available = np.ones((len(rows), len(tests)), bool) if problem.available is None else problem.available[:, : len(tests)]
    lacks = [[t for t, has in zip(tests, row, strict=True) if not has] for row in available.tolist()]

    def result(test: str) -> Any:
        fields = [field.column for field in form.fields(test)]
        return lambda row: row[fields[0]] if len(fields) == 1 else {name: row[name] for name in fields}

    everyone = [t for t in model.known if t in tests]
    return decide_many(
        model,
        rows,
        {test: result(test) for test in tests},
        case_ids=names,
        budget=budget,
        refused=lacks,
        known=[{t: result(t)(row) for t in everyone if t not in gone} for row, gone in zip(rows, lacks, strict=True)],
        draws=uniform(problem.keys, model.seed).tolist(),
    )


def _record(name: str, d: Decided) -> dict[str, Any]:
    return {
        "case": name,
        "cost": d.cost,
        "prediction": d.decision,
        "probability": d.probability,
        "tests": list(d.tests),
        "answers": d.session.answers,
    }
