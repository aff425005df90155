"""Results in order, from few threads."""

import os
import subprocess
import sys
import threading
from threading import Thread
from time import sleep

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from common.marginals.threads import map_in_threads, one_thread


def test_results_come_in_order_and_few_items_are_taken_ahead():
    taken, done = [], []

    def items():
        for item in range(100):
            taken.append(item)
            yield item

    for result in map_in_threads(lambda item: -item, items(), 3):
        done.append(-result)
        assert len(taken) - len(done) <= 6
    assert done == list(range(100))


def test_whoever_stops_asking_leaves_no_thread_behind():
    before = threading.active_count()
    results = map_in_threads(lambda item: item, iter(range(1000)), 3)
    assert next(results) == 0
    results.close()
    assert threading.active_count() == before


FIT = """
import hashlib, itertools, json
import numpy as np
from common.methods.subn_plus.latent import estimated_margins, fit
from common.methods.subn_plus.losses import Measurement, Moments

rng = np.random.default_rng(1)
own = np.arange(17)  # odd numbers: products of even ones may come out alike on two threads
alone = [Measurement((a,), (None,), rng.dirichlet(np.ones(17)) * 1e4, 100.0) for a in range(5)]
triples = [rng.normal(size=(17, 17, 17)) / 64 for _ in itertools.combinations(range(5), 3)]
seen = Moments(tuple(range(5)), (own,) * 5, triples, 1e-4)
margins = estimated_margins((17,) * 5, 10_000, alone)
model = fit(margins, 10_000, alone, moments=[seen], components=61, iterations=10)
print(hashlib.sha256(json.dumps(model.as_json()).encode()).hexdigest())
"""


def threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_there_is_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(limits=2, user_api="blas"):
        with one_thread:
            with one_thread:
                assert threads() == {1}
            assert threads() == {1}
        assert threads() == {2}


def test_an_error_inside_lifts_the_limit():
    with threadpool_limits(limits=2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), one_thread:
            raise ZeroDivisionError
        assert threads() == {2}


def test_no_fit_lifts_the_limit_of_another():
    before, seen = threads(), []

    def fit():
        with one_thread:
            seen.append(threads())
            sleep(0.002)
            seen.append(threads())

    beside = [Thread(target=fit) for _ in range(8)]
    for thread in beside:
        thread.start()
    for thread in beside:
        thread.join()
    assert seen == [{1}] * 16
    assert threads() == before


def test_a_fit_has_the_same_bytes_on_any_number_of_cores():
    def model_digest(cores):
        settings = {**os.environ, "OPENBLAS_NUM_THREADS": cores, "MKL_NUM_THREADS": cores}
        words = [sys.executable, "-c", FIT]
        return subprocess.run(
            words, env=settings, capture_output=True, text=True, check=True
        ).stdout

    one, *more = map(model_digest, ("1", "2", "4"))
    assert len(one.strip()) == 64
    assert more == [one, one]
