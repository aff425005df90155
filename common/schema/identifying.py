"""Columns that identify people, told by their header and by their cells: never proposed.

A schema is published. A column of names, identifiers, addresses, telephone numbers or free text has
no place in it, however often each of its values occurs. What is told here is a guess: the owner who
knows better writes the attribute, or names a public list of its values.
"""

from __future__ import annotations

import functools
import re
import statistics
import unicodedata
from collections.abc import Sequence

_WHOSE = """
patient person subject client member employee customer household hh case record row user respondent
participant student pupil staff doctor physician nurse contact owner mother father parent child
spouse partner encounter visit admission stay study unique national social security insurance health
medical hospital the of and or
"""
_NAMES = """
surname forename firstname lastname fullname nickname username vorname nachname familienname prenom
nom nombre apellido apellidos cognome imie nazwisko
"""
_OF_NAMES = "first last middle given family maiden full birth legal preferred"
_IDS = """
mrn ssn bsn iban passport pid uid uuid guid patid subjid patientid subjectid personid userid
customerid memberid clientid caseid recordid identifier
"""
_CONTACTS = """
email mail phone telephone telefon mobile fax address adresse street strasse url website
"""
_TEXTS = """
note notes comment comments remark remarks description narrative freetext memo bemerkung bemerkungen
kommentar
"""
_NUMBERS = frozenset(("id", "ids", "number", "nr", "no", "num"))

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_PHONE = re.compile(r"\+?[0-9(][0-9 ()/.-]{5,18}[0-9]")
_LEAST_DIGITS = 7  # of a telephone number
_MANY_WORDS = 5  # of a text that is written freely
_MANY_TEXTS = 20


def by_header(header: str, *, is_text: bool) -> str | None:
    """Say what of people a header announces; None if it announces nothing of theirs."""
    words, whose = _words(header), _words(_WHOSE)
    rest = words - {"name", "names"}
    if _words(_NAMES) & words or (rest < words and rest <= whose | _words(_OF_NAMES)):
        return "names of people"
    if _words(_CONTACTS) & words or words == {"ip"}:
        return "addresses or telephone numbers"
    others = words - _NUMBERS
    numbered = words & _NUMBERS
    if _words(_IDS) & words or (
        numbered and others <= whose and (others or numbered & {"id", "ids"})
    ):
        return "identifiers"
    return "free text" if is_text and _words(_TEXTS) & words else None


def by_texts(texts: Sequence[str]) -> str | None:
    """Say what of people the different texts of a column are; None if nothing of theirs."""
    half = len(texts) / 2
    if sum(bool(_EMAIL.fullmatch(text.strip())) for text in texts) > half:
        return "e-mail addresses"
    if len(texts) > 2 and sum(map(_is_phone, texts)) > half:
        return "telephone numbers or identifiers"
    if len(texts) > _MANY_TEXTS and (
        statistics.median(len(text.split()) for text in texts) >= _MANY_WORDS
    ):
        return "free text"
    return None


def _is_phone(text: str) -> bool:
    digits = sum(character.isdigit() for character in text)
    return bool(_PHONE.fullmatch(text.strip())) and digits >= _LEAST_DIGITS


@functools.cache
def _words(header: str) -> frozenset[str]:
    """Return the words of a header: patientId, PATIENT_ID and "patient id" are the same two."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", header)
    plain = unicodedata.normalize("NFKD", spaced.lower()).encode("ascii", "ignore").decode()
    return frozenset(re.findall(r"[a-z]+", plain.replace("e-mail", "email")))
