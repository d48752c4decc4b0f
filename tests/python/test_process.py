"""Threads, fork, memory and interpreters: the package inside a long-running program."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import resource
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

import numpy as np
import pytest

import eplb


def test_many_threads_plan_at_once(rng: np.random.Generator) -> None:
    loads = [rng.integers(0, 1000, (4, 32)) for _ in range(8)]
    expected = [eplb.plan(load, num_ranks=8, num_slots=40).hash for load in loads]

    def work(index: int) -> bool:
        load = loads[index % 8]
        held, _, _ = eplb.rebalance_experts(load, 40, 4, 2, 8)
        plan = eplb.plan(load, num_ranks=8, num_slots=40, threads=1 + index % 3)
        eplb.resplit(load, plan)
        return plan.hash == expected[index % 8] and held.shape == (4, 40)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(160)))


def test_threads_share_one_plan(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40)
    expected = plan.rank_load()

    def read(_: int) -> bool:
        return bool((plan.rank_load() == expected).all()) and plan.placement.problems() == []

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(100)))


def test_the_gil_is_released() -> None:
    """Python goes on while the library plans; with the lock held, the counter could not move until the end."""
    load = np.random.default_rng(1).integers(1, 10**6, (400, 256))
    counted, planning = 0, threading.Thread(target=eplb.plan, args=(load,), kwargs={"num_ranks": 32, "num_slots": 288})
    planning.start()
    while planning.is_alive():
        counted += 1
        time.sleep(0.001)
    assert counted >= 5


def test_fork(load: np.ndarray) -> None:
    """A child plans as its parent does, also after the parent has had threads in the library."""
    expected = eplb.plan(load, num_ranks=8, num_slots=40, threads=2)
    child = os.fork()
    if child == 0:
        try:
            same = eplb.plan(load, num_ranks=8, num_slots=40, threads=2) == expected
            same = same and eplb.Router.of(expected).route(0, [1]).shape == (1,)
            os._exit(0 if same else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_views_keep_their_owner_alive(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40)
    alive = weakref.ref(plan)
    views: list[Any] = [
        plan.shares,
        plan.imbalance,
        plan.physical_to_logical,
        plan.placement.replica_slots,
        plan.topology.slot_rank,
    ]
    copies = [view.copy() for view in views]
    del plan
    gc.collect()
    assert alive() is not None
    churn = [eplb.plan(load + 1, num_ranks=8, num_slots=40) for _ in range(20)]
    for view, kept in zip(views, copies):
        assert not view.flags.owndata and not view.flags.writeable
        np.testing.assert_array_equal(view, kept)
    del views, view, churn
    gc.collect()
    assert alive() is None


def test_a_topology_outlives_what_it_came_from(load: np.ndarray) -> None:
    topology = eplb.plan(load, num_ranks=8, num_slots=40).placement.topology
    gc.collect()
    assert topology == eplb.Topology(8, 5)
    router = eplb.Router(eplb.Topology(8, 5), 6, 32)
    gc.collect()
    router.update(eplb.Placement.initial(topology, 6, 32))
    table = router.table(0)
    block = table.block
    del router, table
    gc.collect()
    assert block[0] == 0x45504C42


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _plan_once(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=80, progress=lambda done, total: True)
    _ = plan.shares, plan.placement.topology.slot_rank, plan.rank_load(), plan._repr_html_()


def _fail_once(load: np.ndarray) -> None:
    with pytest.raises(eplb.InvalidError):
        eplb.plan(-load, num_ranks=8)
    with pytest.raises(eplb.InfeasibleError):
        eplb.plan(load, num_ranks=8, num_slots=8)
    with pytest.raises(eplb.CancelledError):
        eplb.plan(load, num_ranks=8, progress=lambda done, total: False)


def _route_once(load: np.ndarray) -> None:
    placement = eplb.Placement.initial(eplb.Topology(8, 10), len(load), load.shape[1])
    router = eplb.Router(placement.topology, placement.num_layers, placement.num_experts)
    router.update(placement)
    router.route(0, np.arange(32))
    eplb.Resplit(placement).solve(load[0])


def _drop_in_once(load: np.ndarray) -> None:
    eplb.rebalance_experts(load, 80, 4, 2, 8)


@pytest.mark.parametrize("once", [_plan_once, _fail_once, _route_once, _drop_in_once])
def test_repeated_calls_do_not_grow(once: Callable[[Any], None]) -> None:
    load = np.random.default_rng(2).integers(1, 1000, (8, 64))
    for _ in range(30):
        once(load)
    gc.collect()
    before = resident_bytes()
    for _ in range(300):
        once(load)
    gc.collect()
    # One leaked plan of this size is 20 KB and more; 300 of them would be 6 MB.
    assert resident_bytes() - before < 2 << 20


def test_reference_counts_are_kept(load: np.ndarray) -> None:
    before = sys.getrefcount(load)
    plan = eplb.plan(load, num_ranks=8)
    for _ in range(50):
        eplb.rebalance_experts(load, 40, 4, 2, 8)
        with pytest.raises(eplb.InvalidError):
            eplb.plan(load, num_ranks=0)
    gc.collect()
    assert sys.getrefcount(load) <= before + 1  # the plan's load, which borrows it
    del plan
    gc.collect()
    assert sys.getrefcount(load) == before


SUB_INTERPRETER = """
import _xxsubinterpreters as interpreters
one = interpreters.create()
try:
    interpreters.run_string(one, "import numpy, eplb; assert eplb.plan([[1, 2]], num_ranks=1).imbalance[0] == 1")
    print("supported")
except interpreters.RunFailedError as problem:
    print("refused:", problem)
"""


def test_sub_interpreters_refuse_or_work() -> None:
    """NumPy and cffi decide (docs/python/guide.md); either way it must end in an answer, not in a crash."""
    if sys.version_info[:2] not in ((3, 9), (3, 10), (3, 11), (3, 12)):
        pytest.skip("this Python has another interface to sub-interpreters")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SUB_INTERPRETER], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith(("supported", "refused")), done.stdout + done.stderr


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np, eplb

load = np.random.default_rng(3).integers(1, 10**6, (2000, 128))
calls = []

def progress(done, total):
    calls.append(done)
    if len(calls) == 1:
        threading.Thread(target=interrupt).start()

def interrupt():
    time.sleep(0.002)
    os.kill(os.getpid(), signal.SIGINT)

try:
    eplb.plan(load, num_ranks=16, num_slots=160, progress=progress)
    print("finished")
except BaseException as problem:
    print(type(problem).__name__)
"""


@pytest.mark.parametrize("progress", [True, False])
def test_control_c_during_a_plan(progress: bool) -> None:
    """The signal waits for Python: it is raised on entry to the callback, before any `try` of it."""
    code = INTERRUPTED if progress else INTERRUPTED.replace(", progress=progress", "").replace("\ntry:", "\nprogress(0, 0)\ntry:")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("KeyboardInterrupt", "")


def test_neither_torch_nor_matplotlib_is_imported() -> None:
    code = (
        "import sys, numpy as np, eplb; p = eplb.plan(np.ones((2, 8)), num_ranks=2); p._repr_html_(); "
        "eplb.rebalance_experts(np.ones((2, 8)), 8, 1, 1, 2); eplb.Router.of(p).route(0, [1]); eplb.resplit(np.ones((2, 8)), p);"
        "print(sorted({'torch', 'matplotlib', 'scipy', 'cffi'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_what_changes_in_use_is_not_copied(load: np.ndarray) -> None:
    router = eplb.Router.of(eplb.plan(load, num_ranks=8, num_slots=40))
    for value in (router, router.table(0), eplb.Resplit(eplb.plan(load, num_ranks=8)), eplb.Realtime(8, 2)):
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                duplicate(value)


def test_nouns_go_to_other_processes(load: np.ndarray) -> None:
    plan = eplb.plan(load, rank_slots=[10, 0, 12, 20], num_nodes=2, dead=[1], rank_speed=[1, 2, 3, 4])
    for noun in (plan.topology, plan.placement, eplb.Load(load), eplb.Load(load / 7)):
        assert pickle.loads(pickle.dumps(noun)) == noun == copy.deepcopy(noun)
    borrowed = load.copy()
    apart = copy.deepcopy(eplb.Load(borrowed))
    borrowed[:] = 1
    assert apart == eplb.Load(load)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(plan)
