"""Results in order, from few threads."""

import threading

from common.marginals.threads import map_in_threads


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
