"""The purse, for any costs, any number of workers and any order of what they say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunchray.core.budget import Budget, Purse, Spend, total

AGENT = "model"
NOTHING = Spend()
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "begin", "end", "die"]), st.integers(0, 2), st.integers(1, 40), st.integers(0, 2000)
    ),
    max_size=300,
)
"""What happens, to which worker, to how many trials, and what each of them costs."""


@dataclass
class _Worker:
    """A worker that keeps to what `allow` promises it; `limit` is how many trials it may have begun."""

    name: str
    spent: Spend = NOTHING
    begun: int = 0
    ended: int = 0
    limit: int = 0

    def ask(self, purse: Purse, wanted: int, *, begins_meanwhile: int = 0, agent: str = AGENT) -> None:
        self.limit = min(self.limit, self.begun + wanted)
        at = self.begun
        purse.report(self.name, agent, spent=self.spent, begun=at, ended=self.ended)
        allowed = purse.allow(self.name, agent, wanted)
        self.begin(begins_meanwhile)  # while the answer is on its way
        self.limit = at + allowed
        assert self.begun <= self.limit

    def begin(self, trials: int) -> None:
        self.begun += max(0, min(trials, self.limit - self.begun))

    def end(self, trials: int, cost: int) -> None:
        ending = min(trials, self.begun - self.ended)
        self.ended += ending
        self.spent += Spend(cost, cost).times(ending)


@dataclass
class _Fleet:
    """Three workers and what trials of dead ones have cost."""

    purse: Purse
    workers: list[_Worker] = field(default_factory=lambda: [_Worker(f"worker-{number}") for number in range(3)])
    dead: list[_Worker] = field(default_factory=list[_Worker])

    def act(self, action: tuple[str, int, int, int], cost: int | None = None) -> None:
        what, at, trials, drawn = action
        worker = self.workers[at]
        match what:
            case "ask":
                worker.ask(self.purse, trials, begins_meanwhile=drawn % 5)
            case "begin":
                worker.begin(trials)
            case "end":
                worker.end(trials, drawn if cost is None else cost)
            case _:
                self.purse.gone(worker.name)
                self.dead.append(worker)
                self.workers[at] = _Worker(f"{worker.name}+")

    @property
    def everyone(self) -> list[_Worker]:
        return [*self.workers, *self.dead]

    def settle(self, cost: int) -> None:
        """Everybody goes on until nothing more may begin."""
        for _ in range(10_000):
            for worker in self.workers:
                worker.ask(self.purse, 40)
                worker.begin(40)
            if not any(worker.begun - worker.ended for worker in self.workers):
                return
            for worker in self.workers:
                worker.end(40, cost)
        raise AssertionError("it goes on for ever")


@given(ACTIONS, st.integers(1, 1000), st.integers(1, 100_000), st.booleans())
def test_trials_of_equal_cost_never_pass_the_budget(
    actions: list[Any], cost: int, budget: int, per_agent: bool
) -> None:
    """When each trial costs what was expected, not one more begins than the budget carries, whoever asks and dies."""
    limit = Budget(tokens=budget)
    fleet = _Fleet(
        Purse(None if per_agent else limit, {AGENT: limit} if per_agent else {}, {}, {AGENT: Spend(cost, cost)})
    )
    for action in actions:
        fleet.act(action, cost)
        assert sum(worker.begun for worker in fleet.everyone) * cost <= budget
    fleet.settle(cost)
    assert set(fleet.purse.exhausted()) == {AGENT}


@given(ACTIONS, st.integers(0, 1000), st.integers(1, 100_000))
def test_nothing_begins_once_the_budget_is_spent(actions: list[Any], guess: int, budget: int) -> None:
    """Whatever trials cost, the budget is passed at most by what was in flight when it was reached."""
    purse = Purse(Budget(tokens=budget), {}, {}, {AGENT: Spend(0, guess)})
    fleet = _Fleet(purse)
    for action in actions:
        fleet.act(action)
        known = purse.spent()[AGENT].tokens
        if known > budget:
            assert all(purse.allow(worker.name, AGENT, 1000) == 0 for worker in fleet.workers)
            assert purse.exhausted() == {AGENT: "budget"}
            break


@given(ACTIONS, st.integers(0, 3000))
def test_a_first_guess_is_trusted_for_few_trials(actions: list[Any], guess: int) -> None:
    """Before a trial has ended at most 16 are in flight, and two more for each that has."""
    fleet = _Fleet(Purse(Budget(tokens=10**9), {}, {}, {AGENT: Spend(0, guess)}))
    for action in actions:
        if action[0] == "die":
            continue
        fleet.act(action)
        ended = sum(worker.ended for worker in fleet.workers)
        assert sum(worker.limit - worker.ended for worker in fleet.workers) <= 16 + 2 * ended


@given(ACTIONS, st.integers(1, 1000), st.integers(1, 100_000))
def test_saying_the_same_again_changes_nothing(actions: list[Any], guess: int, budget: int) -> None:
    """Reports are cumulative: one that comes twice, or late, leaves the books as they are."""
    purse = Purse(Budget(tokens=budget), {}, {}, {AGENT: Spend(0, guess)})
    fleet = _Fleet(purse)
    for action in actions:
        old = [(worker.name, worker.spent, worker.begun, worker.ended) for worker in fleet.workers]
        fleet.act(action)
        for worker in fleet.workers:
            purse.report(worker.name, AGENT, spent=worker.spent, begun=worker.begun, ended=worker.ended)
        before = (purse.spent(), purse.exhausted())
        for worker, (name, spent, begun, ended) in zip(fleet.workers, old, strict=True):
            if worker.name == name:
                purse.report(name, AGENT, spent=worker.spent, begun=worker.begun, ended=worker.ended)
            if worker.name == name and (begun, ended) != (worker.begun, worker.ended):
                purse.report(name, AGENT, spent=spent, begun=begun, ended=ended)
        assert (purse.spent(), purse.exhausted()) == before


@given(ACTIONS, st.integers(1, 60))
def test_a_pilot_begins_exactly_so_many_trials(actions: list[Any], trials: int) -> None:
    """A pilot of N begins N trials, and as many again as were in flight with workers that died."""
    fleet = _Fleet(Purse(None, {}, {}, {AGENT: Spend(1, 1)}, trials={AGENT: trials}))
    lost = 0
    for action in actions:
        worker = fleet.workers[action[1]]
        if action[0] == "die":
            worker.ask(fleet.purse, 0)
            lost += worker.begun - worker.ended
        fleet.act(action)
    fleet.settle(1)
    assert sum(worker.begun for worker in fleet.everyone) == trials + lost
    assert fleet.purse.exhausted() == {AGENT: "pilot"}


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 9)), max_size=60), st.integers(1, 50_000))
def test_spend_is_what_workers_reported(ended: list[tuple[int, int]], before: int) -> None:
    """What is spent is what stored rows had cost and what every worker has said, in any order."""
    purse = Purse(None, {}, {AGENT: Spend(before, before)}, {})
    workers = [_Worker(str(number)) for number in range(3)]
    for number, (cost, trials) in enumerate(ended):
        worker = workers[number % 3]
        worker.ask(purse, trials)
        worker.begin(trials)
        worker.end(trials, cost)
        worker.ask(purse, 0)
    said = total(worker.spent for worker in workers)
    assert purse.spent() == {AGENT: said + Spend(before, before)}


def _ask_held(purse: Purse, worker: _Worker, written: dict[str, Spend], wanted: int, begins_meanwhile: int = 0) -> None:
    """Ask a purse that is held to levels which are written down first."""
    levels = purse.due()
    written |= levels
    purse.hold(levels)
    worker.ask(purse, wanted, begins_meanwhile=begins_meanwhile)


@given(
    st.lists(ACTIONS, min_size=1, max_size=5),
    st.integers(1, 1000),
    st.integers(1, 100_000),
    st.floats(0, 1),
)
def test_killed_commands_together_never_pass_the_budget(
    commands: list[list[Any]], cost: int, budget: int, kept: float
) -> None:
    """Each command begins from what is stored or what the one before had written down, whichever is more."""
    written: dict[str, Spend] = {}
    begun = stored = 0
    for actions in commands:
        before = written.get(AGENT, NOTHING).most(Spend(stored, stored))
        guess = {AGENT: Spend(cost, cost)}
        fleet = _Fleet(Purse(Budget(tokens=budget), {}, {AGENT: before}, guess, held=True))
        for action in actions:
            if action[0] == "ask":
                _ask_held(fleet.purse, fleet.workers[action[1]], written, action[2], action[3] % 5)
            else:
                fleet.act(action, cost)
        begun += sum(worker.begun for worker in fleet.everyone)
        stored += int(kept * sum(worker.ended for worker in fleet.everyone)) * cost
        assert begun * cost <= budget


@given(st.integers(1, 1000), st.integers(1, 3000), st.lists(st.integers(1, 400), max_size=4))
def test_commands_that_end_in_order_spend_the_whole_budget(cost: int, carries: int, stops: list[int]) -> None:
    """Being held to levels costs a run nothing, however often it is stopped, once each stop is written down."""
    written: dict[str, Spend] = {}
    budget, begun = carries * cost, 0
    for stop in [*stops, budget]:
        purse = Purse(Budget(tokens=budget), {}, written, {AGENT: Spend(cost, cost)}, held=True)
        worker = _Worker("worker")
        for _ in range(10_000):
            _ask_held(purse, worker, dict(written), 40)
            worker.begin(max(0, min(40, stop - worker.begun)))
            if worker.begun == worker.ended:
                break
            worker.end(40, cost)
        worker.ask(purse, 0)
        begun += worker.begun
        written |= purse.settled()
        assert written[AGENT].tokens == begun * cost
    assert begun == carries


@given(st.integers(1, 1000), st.integers(1, 200), st.integers(2, 30))
def test_models_that_share_a_budget_spend_it_all(cost: int, carries: int, agents: int) -> None:
    """However many there are and however little is left, one of them may go on while the budget carries a trial."""
    names = [f"model-{number}" for number in range(agents)]
    purse = Purse(Budget(tokens=carries * cost), {}, {}, dict.fromkeys(names, Spend(cost, cost)), held=True)
    workers = [_Worker(name) for name in names]
    for _ in range(10_000):
        for worker in workers:
            purse.hold(purse.due())
            worker.ask(purse, 8, agent=worker.name)
            worker.begin(8)
        if all(worker.begun == worker.ended for worker in workers):
            break
        for worker in workers:
            worker.end(8, cost)
    assert sum(worker.begun for worker in workers) == carries
    assert set(purse.exhausted()) == set(names)


def test_a_level_is_a_little_ahead_of_what_is_spent():
    """A kill costs a run a twentieth of what its budget has left, or sixteen trials, on top of what was in flight."""
    guess = {AGENT: Spend(10, 10)}
    for budget, ahead in ((100_000, 5_000), (1_000, 160)):
        purse = Purse(Budget(tokens=budget), {}, {}, guess, measured={AGENT: 1000}, held=True)
        levels = purse.due()
        assert ahead <= levels[AGENT].tokens <= 2 * ahead
        purse.hold(levels)
        assert purse.due() == {}
