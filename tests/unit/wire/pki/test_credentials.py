"""A service that runs for a year warns of its certificate's end, once a day, and never stops."""

import datetime as dt
import logging

from common.wire.pki.certificates import Role
from common.wire.pki.credentials import CredentialFiles, ExpiryWatch
from common.wire.pki.keyring import init_curator

BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def test_the_last_thirty_days_have_a_warning_each(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    init_curator(tmp_path, "hub", ("127.0.0.1",), now=BEGIN, external=False)
    files = CredentialFiles.in_folder(tmp_path, Role.CURATOR)
    now = BEGIN
    watch = ExpiryWatch(lambda: now)
    days = (files.load().certificate.not_valid_after_utc - BEGIN).days
    for hour in range(24 * (days - 31)):
        now = BEGIN + dt.timedelta(hours=hour)
        watch.look(files)
    assert not caplog.records
    for hour in range(24 * (days - 5), 24 * (days - 2)):
        now = BEGIN + dt.timedelta(hours=hour)
        watch.look(files)
    assert len(caplog.records) == 3
    assert "renew it with `parley keys rotate`" in caplog.text

    files.certificate.unlink()
    now += dt.timedelta(days=1)
    watch.look(files)
    assert "cannot be read" in caplog.text
