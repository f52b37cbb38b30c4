"""What holds of the gate of an evaluation, whatever the results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.evaluations import concluded, experiment
from trunchray.adapters.store import Store
from trunchray.core.check_result import CheckResult
from trunchray.core.evaluation import EvaluationReport
from trunchray.core.experiment import Experiment
from trunchray.core.folding import fold
from trunchray.errors import UsageError
from trunchray.frontends.evaluation.experiment_file import read_experiment

NAMES = st.sampled_from("abcdefgh")
NOW = st.dictionaries(NAMES, st.text("pfsmM", min_size=2, max_size=2), min_size=1)
BEFORE = st.dictionaries(NAMES, st.text("pfs", min_size=2, max_size=2), min_size=1)
COUNTS = st.integers(0, 4)
ALLOW = st.fixed_dictionaries({name: st.fixed_dictionaries({"miss": COUNTS, "drop": COUNTS}) for name in "ST"})
SHARES = st.floats(0, 1)
RESULTS = st.builds(
    lambda passed, value, why, confidence, escalated: CheckResult(
        passed=passed,
        value=value,
        explanation=why,
        probabilities=None if confidence is None else {"yes": confidence, "no": 1 - confidence},
        confidence=confidence,
        escalated=escalated,
    ),
    st.booleans(),
    SHARES,
    st.none() | st.text(max_size=3),
    st.none() | SHARES,
    st.booleans(),
)


def counts(report: EvaluationReport) -> Mapping[str, tuple[int, int, int | None, frozenset[str]]]:
    """What must not depend on the order of anything."""
    return {
        name: (each.passes, each.misses, each.drops, frozenset(limit.limit for limit in each.broken))
        for name, each in report.scorers.items()
    }


@given(NOW, BEFORE, ALLOW)
def test_the_arithmetic_is_that_of_its_definition(
    now: dict[str, str], before: dict[str, str], allow: dict[str, dict[str, int]]
):
    """Misses, drops and musts as sets of cases, counted against what is allowed."""
    report = concluded(now, allow=allow, before=before, scorers=["S", "T"])
    for at, name in enumerate("ST"):
        misses = {case for case, letters in now.items() if letters[at] in "fm"}
        drops = {case for case in misses if before.get(case, "ss")[at] == "p"}
        musts = {case for case in misses if now[case][at] == "m"}
        limits = {
            "miss": (misses, allow[name]["miss"]),
            "drop": (drops, allow[name]["drop"]),
            "must": (musts, 0),
        }
        found = report.scorers[name]
        assert (found.misses, found.drops) == (len(misses), len(drops))
        assert {limit.limit: set(limit.cases) for limit in found.broken} == {
            limit: cases for limit, (cases, most) in limits.items() if len(cases) > most
        }
    assert report.passed == (not any(each.broken for each in report.scorers.values()))


@given(NOW, BEFORE, ALLOW, st.randoms())
def test_order_does_not_matter(
    now: dict[str, str], before: dict[str, str], allow: dict[str, dict[str, int]], chance: Random
):
    """Neither that of the cases now nor that of those compared with."""
    shuffled, earlier = list(now), list(before)
    chance.shuffle(shuffled)
    chance.shuffle(earlier)
    names = ["S", "T"]
    first = concluded(now, allow=allow, before=before, scorers=names)
    second = concluded(
        {name: now[name] for name in shuffled},
        allow=allow,
        before={name: before[name] for name in earlier},
        scorers=names,
    )
    assert counts(first) == counts(second)
    assert first.passed == second.passed


@given(NOW, BEFORE, ALLOW, NAMES, st.sampled_from([0, 1]))
def test_fixed_never_offsets_broken(
    now: dict[str, str], before: dict[str, str], allow: dict[str, dict[str, int]], case: str, at: int
):
    """That a case which passes now failed before, rather than passed, changes no count and no verdict."""
    letters = now.get(case, "pp")
    passing = now | {case: letters[:at] + "p" + letters[at + 1 :]}
    earlier = before.get(case, "pp")
    failed, passed = (before | {case: earlier[:at] + letter + earlier[at + 1 :]} for letter in "fp")
    first = concluded(passing, allow=allow, before=failed, scorers=["S", "T"])
    second = concluded(passing, allow=allow, before=passed, scorers=["S", "T"])
    assert counts(first) == counts(second)


@given(NOW, BEFORE, ALLOW)
def test_comparing_never_makes_a_gate_easier(
    now: dict[str, str], before: dict[str, str], allow: dict[str, dict[str, int]]
):
    """What passes with an earlier experiment passes without."""
    if concluded(now, allow=allow, before=before, scorers=["S", "T"]).passed:
        assert concluded(now, allow=allow, scorers=["S", "T"]).passed


@given(NOW, ALLOW)
def test_a_run_compared_with_itself_drops_nothing(now: dict[str, str], allow: dict[str, dict[str, int]]):
    """And nothing flips."""
    first = concluded(now, allow=allow, scorers=["S", "T"])
    second = concluded(now, allow=allow, compare=first.experiment, scorers=["S", "T"])
    assert second.passed == first.passed
    assert [each.drops for each in second.scorers.values()] == [0, 0]
    assert not any(second.flips.to_json().values())


@given(NOW, BEFORE)
def test_flips_are_misses_that_dropped_and_their_mirror(now: dict[str, str], before: dict[str, str]):
    """`broke` holds the drops of all scorers; run the other way round, it is what was fixed."""
    forth = concluded(now, before=before, scorers=["S", "T"])
    back = concluded(before, compare=forth.experiment, scorers=["S", "T"])
    assert len(forth.flips.broke) == sum(each.drops or 0 for each in forth.scorers.values())
    assert set(forth.flips.broke) == set(back.flips.fixed)
    assert set(forth.flips.fixed) == set(back.flips.broke)
    assert set(forth.flips.added) == set(back.flips.removed)


@given(NOW)
def test_experiments_are_read_as_they_were_written(now: dict[str, str]):
    """Through bytes and back, order included."""
    before = experiment(now)
    after = Experiment.parse(json.loads(before.to_bytes()), "x")
    assert after == before
    assert list(after.cases) == list(now)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    ANYTHING
    | st.fixed_dictionaries(
        {"format": st.just(2), "name": st.just("e")},
        optional={"about": ANYTHING, "cases": st.dictionaries(NAMES, st.dictionaries(NAMES, ANYTHING, max_size=2))},
    )
)
def test_whatever_is_compared_with_is_an_experiment_or_refused(value: object):
    """In words of ours; and what is taken for one can be written again."""
    found = parsed(value)
    if isinstance(found, Experiment):
        assert Experiment.parse(json.loads(found.to_bytes()), "x") == found
    else:
        assert found.startswith("compare: ")


def parsed(value: object) -> Experiment | str:
    """The experiment, or why it is none."""
    try:
        return Experiment.parse(value, "compare")
    except UsageError as e:
        return str(e)


@given(st.binary(max_size=40))
def test_whatever_a_file_holds_is_an_experiment_or_refused(content: bytes):
    """In words of ours, which name the file."""
    Store("memory://whatever").write("e.json", content)
    with pytest.raises(UsageError, match=r"^compare 'memory://whatever/e.json': "):
        read_experiment("memory://whatever/e.json", name="e")


@given(st.lists(RESULTS, min_size=1, max_size=5), st.randoms())
def test_attempts_may_come_in_any_order(results: list[CheckResult], chance: Random):
    """All but the explanation, which is that of the first that failed, is the same to the last bit."""
    shuffled = list(results)
    chance.shuffle(shuffled)
    first, second = (fold([{"S": each} for each in some])["S"] for some in (results, shuffled))
    assert first.model_copy(update={"explanation": None}) == second.model_copy(update={"explanation": None})
    assert first.passed == all(each.passed for each in results)
    assert 0 <= first.value <= 1


@given(st.lists(RESULTS, min_size=1, max_size=5))
def test_one_more_attempt_never_makes_a_check_pass(results: list[CheckResult]):
    """A check passes only when every attempt does."""
    folded = [fold([{"S": each} for each in results[:count]])["S"].passed for count in range(1, len(results) + 1)]
    assert folded == sorted(folded, reverse=True)
