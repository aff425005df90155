"""Releases are fetched one at a time, and one that fails keeps no other back."""

import time
from concurrent.futures import ThreadPoolExecutor

from common.errors import LocalError
from party.client.watches import ReleaseWatch


class Collector:
    """Cannot fetch the oldest release."""

    def __init__(self):
        self.waiting, self.tried = ["oldest", "next", "newest"], []

    def due(self):
        return list(self.waiting)

    def collect(self, study):
        self.tried.append(study)
        if study == "oldest":
            raise LocalError("the curator does not give it")
        self.waiting.remove(study)


def test_a_release_that_cannot_be_fetched_keeps_no_other_back():
    collector = Collector()
    watch = ReleaseWatch(collector, changed=lambda: None)
    with ThreadPoolExecutor(1) as workers:
        while not watch.is_done():
            watch.look(workers, again_s=0.01)
            time.sleep(0.001)
    assert collector.waiting == ["oldest"]
    assert collector.tried[:2] == ["oldest", "next"]
    assert ReleaseWatch(None, changed=lambda: None).is_done()
