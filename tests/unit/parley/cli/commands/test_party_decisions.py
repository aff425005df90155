"""An owner's decisions."""

from tests.harness.deployed_folder import NORTH

FEW = "patient,age,sex\n" + "".join(f"p{i // 4},{17 + i},Female\n" for i in range(60))


def test_an_owner_alone_reads_what_became_of_the_rows(parley, place, small):
    small(data=FEW)
    settings = place.folder / "north" / "party.toml"
    settings.write_text(settings.read_text() + 'person = "patient"\n')
    words = [*place.words(method="floor"), "--rows-per-person", "2"]
    assert parley(*words).code == 0
    done = parley("party", "review", "study.toml", *NORTH)
    assert "protects one person, with up to 2 rows of one party's table" in done.out
    told = "60 rows of 15 people: 30 rows dropped (at most 2 of a person, 40 in all), "
    assert told + "10 public rows added" in done.out
    assert "dropped" not in (place.folder / "study.toml").read_text()
    again = parley("party", "review", "study.toml", *NORTH)
    assert again.out == done.out
    key = place.folder / "north" / "state" / "people.key"
    assert not key.exists()  # a look keeps nothing
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    assert key.stat().st_mode & 0o077 == 0


def test_a_source_that_does_not_say_whose_rows_they_are_is_refused(parley, place):
    assert parley(*place.words(method="floor"), "--rows-per-person", "2").code == 0
    done = parley("party", "review", "study.toml", *NORTH)
    assert done.code != 0
    assert "Name the column that says whose row" in done.err
