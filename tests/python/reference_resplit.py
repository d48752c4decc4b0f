#!/usr/bin/python3
"""`eplb resplit` against the linear programme solved by HiGHS, on random placements and loads.

The least fractional maximum of HiGHS must be the bound that the command proves, the largest load must be it rounded up,
and quotas must be whole, sum to the loads and load the ranks as said. Tight experts are checked as the certificate that
they are: their load over the ranks that hold them is the bound.

    reference_resplit.py EPLB [ROUNDS]
"""

import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import lil_matrix
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def draw(rng: random.Random) -> tuple[dict, list[list[int]]]:
    """A placement document without duplicates on a rank, and a load."""
    ranks = rng.choice([2, 3, 5, 8, 16])
    slots_per_rank = rng.randint(2, 9)
    slots = ranks * slots_per_rank
    experts = rng.randint(slots_per_rank, slots)
    layers = rng.randint(1, 5)
    maps = []
    for _ in range(layers):
        held = list(range(experts)) + [rng.randrange(experts) for _ in range(slots - experts)]
        rng.shuffle(held)
        maps.append(held)
    kind = rng.randrange(3)
    top = [20, 1000, 10**9][kind]
    loads = [[rng.randrange(top) if rng.random() < 0.9 else 0 for _ in range(experts)] for _ in range(layers)]
    if kind == 1:
        loads = [[int(x**3 / 10**4) for x in row] for row in loads]
    document = {
        "version": 1,
        "num_layers": layers,
        "num_logical_experts": experts,
        "num_slots": slots,
        "num_ranks": ranks,
        "physical_to_logical_map": maps,
    }
    return document, loads


def least_maximum(held: list[int], load: list[int], ranks: int) -> float:
    """min t: tokens of every expert are served, no rank serves more than t. In units of the largest load."""
    slots, experts = len(held), len(load)
    unit = max(max(load), 1)
    serve = lil_matrix((experts, slots + 1))
    bear = lil_matrix((ranks, slots + 1))
    for slot, expert in enumerate(held):
        serve[expert, slot] = 1
        bear[slot * ranks // slots, slot] = 1
    for rank in range(ranks):
        bear[rank, slots] = -1
    cost = np.zeros(slots + 1)
    cost[slots] = 1
    solved = linprog(
        cost,
        A_ub=bear.tocsr(),
        b_ub=np.zeros(ranks),
        A_eq=serve.tocsr(),
        b_eq=np.array(load) / unit,
        method="highs",
    )
    assert solved.status == 0, solved.message
    return solved.fun * unit


def check(document: dict, loads: list[list[int]], answer: dict) -> None:
    ranks, slots = document["num_ranks"], document["num_slots"]
    for layer, load in enumerate(loads):
        held, quota = document["physical_to_logical_map"][layer], answer["quota"][layer]
        served = [0] * len(load)
        borne = [0] * ranks
        for slot, expert in enumerate(held):
            assert quota[slot] >= 0
            served[expert] += quota[slot]
            borne[slot * ranks // slots] += quota[slot]
        assert served == load, (layer, served, load)
        assert max(borne) == answer["max_load"][layer]
        best, bound = least_maximum(held, load, ranks), answer["bound"][layer]
        scale = max(best, 1.0)
        assert abs(best - bound) <= 1e-6 * scale, (layer, best, bound)
        assert math.ceil(bound - 1e-3) == answer["max_load"][layer]
        tight = set(answer["tight_experts"][layer])
        homes = {slot * ranks // slots for slot, expert in enumerate(held) if expert in tight}
        if homes:
            assert sum(load[e] for e in tight) >= bound * len(homes) * (1 - 1e-12)


def main() -> int:
    command, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    rng = random.Random(5)
    layers = 0
    with tempfile.TemporaryDirectory() as folder:
        placement, counts = pathlib.Path(folder, "placement.json"), pathlib.Path(folder, "load.json")
        for _ in range(rounds):
            document, loads = draw(rng)
            placement.write_text(json.dumps(document), encoding="utf-8")
            counts.write_text(json.dumps(loads), encoding="utf-8")
            run = subprocess.run(
                [command, "resplit", str(counts), "--placement", str(placement), "--json"], capture_output=True, text=True
            )
            assert run.returncode == 0, run.stderr
            check(document, loads, json.loads(run.stdout))
            layers += len(loads)
    print(f"{layers} layers: the same optimum as HiGHS")
    return 0


if __name__ == "__main__":
    sys.exit(main())
