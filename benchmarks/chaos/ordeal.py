"""One run under fire: drivers, workers, raylets and the store are hit at random moments until the run is complete."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import processes
from drivers import Command, Driver
from nodes import Nodes
from weather import Weather

WORKERS, GOVERNOR = "ray::WorkerActor", "ray::ClockedGovernor"
PEACE = 600.0
"""Seconds within which a run that is left in peace ends."""


@dataclass(frozen=True)
class Hail:
    """Seconds between two blows of a kind, on average; 0 for none. The counts bound blows of that kind; None does not.

    After `lasts` seconds there are no more, so that the run comes to an end.
    """

    workers: float
    raylets: float
    drivers: float
    outages: float
    most_raylets: int | None
    most_drivers: int | None
    lasts: float
    driver_blows: tuple[str, ...] = ("killed", "killed", "stopped", "napping", "passed")
    """What happens to drivers, the likelier the oftener it is named."""


@dataclass
class Toll:
    """What happened to a run."""

    blows: Counter[str] = field(default_factory=Counter[str])
    exits: Counter[str] = field(default_factory=Counter[str])
    drivers: int = 0
    seconds: float = 0
    slowest_stop: float = 0
    """Seconds between SIGTERM and the end of a driver, at most."""
    problems: list[str] = field(default_factory=list[str])
    answer: str = ""
    """What the last driver printed."""

    @property
    def losses(self) -> int:
        """Blows that may each cost what is in flight: deaths, and drivers that gave up because of the store."""
        return sum(self.blows[name] for name in ("worker", "raylet", "driver killed")) + self.exits["gave up"]


def _say(what: str) -> None:
    if os.environ.get("CHAOS_VERBOSE"):
        print(f"  {time.strftime('%H:%M:%S')} {what}", flush=True)


class Ordeal:
    """Drives one run to its end, whatever it takes; `nodes` is None where there is no cluster."""

    def __init__(self, command: Command, nodes: Nodes | None, weather: Weather, hail: Hail, seed: int) -> None:
        self._command, self._nodes, self._weather, self._hail = command, nodes, weather, hail
        self._chance = random.Random(seed)
        self._drivers: list[Driver] = []
        self._wakes: list[tuple[float, Driver]] = []
        self._left = {"raylet": hail.most_raylets, "driver": hail.most_drivers}
        self.toll = Toll()

    def __call__(self) -> Toll:
        began, toll = time.monotonic(), self.toll
        due = self._blows(began)
        self._drivers.append(self._command.start())
        try:
            while not toll.answer or self._drivers:
                now = time.monotonic()
                if now - began > self._hail.lasts + PEACE:
                    toll.problems.append(f"the run did not end: {[driver.said()[-500:] for driver in self._drivers]}")
                    break
                if toll.answer or now - began > self._hail.lasts:
                    due.clear()
                    self._weather.clear_up()
                for blow, (when, period) in list(due.items()):
                    if now >= when:
                        blow()
                        due[blow] = self._next(time.monotonic(), period), period
                self._wake(now)
                self._look_after(now)
                time.sleep(0.05)
        finally:
            self._end()
        toll.drivers, toll.seconds = self._command.started, time.monotonic() - began
        return toll

    def _blows(self, now: float) -> dict[Callable[[], None], tuple[float, float]]:
        hail = self._hail
        periods: list[tuple[Callable[[], None], float]] = [
            (self._hit_driver, hail.drivers),
            (self._outage, hail.outages),
        ]
        if self._nodes:
            periods += [(self._hit_worker, hail.workers), (self._hit_raylet, hail.raylets)]
        return {blow: (self._next(now, period), period) for blow, period in periods if period}

    def _next(self, now: float, period: float) -> float:
        return now + self._chance.uniform(0.5, 1.5) * period

    def _spend(self, kind: str) -> bool:
        left = self._left[kind]
        if left is not None:
            self._left[kind] = max(0, left - 1)
        return left != 0

    def _hit_worker(self) -> None:
        governor = self._chance.random() < 0.1
        found = processes.named(GOVERNOR if governor else WORKERS)
        victim = self._chance.choice(found) if found else None
        if victim and processes.kill([victim]):
            _say(f"killed worker {victim} of {len(found)}")
            self.toll.blows["governor" if governor else "worker"] += 1

    def _hit_raylet(self) -> None:
        if self._nodes and self._left["raylet"] != 0 and self._nodes.kill_raylet(self._chance):
            self._spend("raylet")
            _say("killed a raylet")
            self.toll.blows["raylet"] += 1

    def _outage(self) -> None:
        self.toll.blows[f"outage: {self._weather.strike(self._chance.uniform(2, 20))}"] += 1

    def _hit_driver(self) -> None:
        driver = self._drivers[-1] if self._drivers else None
        if driver is None or driver.asked_to_stop or driver.asleep or not self._spend("driver"):
            return
        how = self._chance.choice(self._hail.driver_blows)
        self.toll.blows[f"driver {how}"] += 1
        _say(f"driver {driver.process.pid} {how}")
        match how:
            case "killed":
                driver.killed = True
                driver.signal(signal.SIGKILL)
            case "stopped":
                driver.asked_to_stop = time.monotonic()
                driver.signal(signal.SIGTERM)
            case _:
                driver.asleep, driver.passed = True, how == "passed"
                driver.signal(signal.SIGSTOP)
                self._wakes.append((time.monotonic() + self._chance.uniform(2, 20), driver))
                if driver.passed:
                    self._drivers.append(self._command.start("--takeover"))

    def _wake(self, now: float) -> None:
        for wake in [wake for wake in self._wakes if now >= wake[0]]:
            self._wakes.remove(wake)
            wake[1].asleep = False
            wake[1].signal(signal.SIGCONT)

    def _look_after(self, now: float) -> None:
        """Bury drivers that ended, and start another one when none is left."""
        for driver in list(self._drivers):
            if (code := driver.poll()) is not None:
                self._drivers.remove(driver)
                self._ended(driver, code, now)
        if not self._drivers and not self.toll.answer:
            self._drivers.append(self._command.start())

    def _ended(self, driver: Driver, code: int, now: float) -> None:
        toll, said = self.toll, driver.said()
        _say(f"driver {driver.process.pid} ended with {code}: {said[-200:]!r}")
        if driver.asked_to_stop:
            toll.slowest_stop = max(toll.slowest_stop, now - driver.asked_to_stop)
        if code == 0:
            noise, brace, answer = driver.answer().partition("{")
            toll.answer = (brace + answer) or "{}"
            if noise.strip() or not answer:
                toll.problems.append(f"a driver ended with 0 and printed {noise[:500]!r} before its answer")
        why = (
            "complete"
            if code == 0
            else "killed"
            if driver.killed
            else "stopped"
            if driver.asked_to_stop and code == 3
            else "passed"
            if "now driven by" in said or "another process" in said
            else "gave up"
            if code == 3
            else "refused"
            if code == 2
            else f"exit {code}"
        )
        toll.exits[why] += 1
        if (code not in (0, 2, 3) and not driver.killed) or "Traceback" in said:
            toll.problems.append(f"a driver ended with {code}: {said[-2000:]}")

    def _end(self) -> None:
        for driver in self._drivers:
            driver.signal(signal.SIGKILL)
            driver.process.wait()
