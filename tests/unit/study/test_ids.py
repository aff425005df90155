"""The id of a study, printed and read."""

from common.study.ids import StudyId, short_id, study_id


def test_an_id_is_read_from_its_digits_and_shortened_to_the_first_of_them():
    digest = StudyId(bytes(range(32)))
    assert study_id(digest.hex()) == digest
    assert short_id(digest) == "0001020304050607"
