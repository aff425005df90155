"""The pages of the dashboard; `serving` puts them behind an address.

One page, drawn by its script from the values of `snapshot`, which it asks for every second.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.release.archive import zip_pieces
from common.release.contents import FolderContents
from common.release.folder import cautions_of
from common.report.page import Markup
from common.service.process import Clock
from common.service.web.exchange import JSON, Response, WebRequest, download, text
from common.service.web.pages import Asset, asset, page
from common.service.web.sessions import Session
from common.service.web.site import PageRoute
from common.study.document import Study
from common.study.ids import StudyId, study_id
from common.wire.pki.credentials import CredentialFiles
from curator.dashboard.actions import Actions
from curator.dashboard.snapshot import (
    StudyView,
    UnreadableStudy,
    spent_by_party,
    study_document,
    troubles,
    unreadable_document,
)
from curator.metrics import CallCounter
from curator.settings import CuratorSettings
from curator.store.reader import StoreReader
from curator.store.records import Record
from curator.studies import Studies
from curator.waiting import waited

MOST_STUDIES = 50
_REFRESH_S = 5  # who is online changes without a write
_DIGEST = r"(?P<digest>[0-9a-f]{64})"
_PICTURE = "network.svg"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedService:
    """What the dashboard watches."""

    studies: Studies
    calls: CallCounter
    files: CredentialFiles
    clock: Clock
    software: str
    settings: CuratorSettings
    identity: Identity | None = None  # what signs, if the curator has it

    @property
    def signer(self) -> Identity | None:
        """What signs studies that are offered here; None if nothing may be offered."""
        return self.identity if self.settings.dashboard_offers else None


class Dashboard:
    """The pages of the dashboard."""

    def __init__(self, service: WatchedService, reader: StoreReader) -> None:
        self._service, self._reader = service, reader
        self._lock = threading.Lock()
        self._news: tuple[object, ...] = ()
        self._document = b""
        self._read: dict[Path, list[str]] = {}
        self._agreed: dict[StudyId, Study] = {}

    def routes(self) -> list[PageRoute]:
        routes = [
            PageRoute(method="GET", path="/", page=self._front),
            PageRoute(method="GET", path="/state", page=self._state),
            PageRoute(method="GET", path=f"/studies/{_DIGEST}/release.zip", page=self._release),
            PageRoute(method="GET", path=f"/studies/{_DIGEST}/{_PICTURE}", page=self._picture),
        ]
        service = self._service
        manages = service.settings.dashboard_actions
        actions = Actions(service.studies, manages=manages, signer=service.signer)
        return [*routes, *actions.routes()]

    def assets(self) -> Mapping[str, Asset]:
        """Return the files that need no session."""
        return {"/dashboard.js": asset("curator.dashboard", "dashboard.js")}

    def document(self) -> bytes:
        """Return the snapshot as one line of JSON, made again when something may have changed."""
        now = self._service.clock()
        calls = tuple(self._service.calls.counted())
        with self._lock:  # ten browsers cost the store no more than one
            news = (self._reader.data_version(), calls, int(now.timestamp()) // _REFRESH_S)
            if news != self._news:
                self._document = json.dumps(self._make(now), ensure_ascii=False).encode()
                self._news = news
            return self._document

    def _make(self, now: dt.datetime) -> dict[str, object]:
        views = [self._view(record) for record in self._reader.newest(MOST_STUDIES)]
        online = self._service.studies.presence.online()
        expires = self._service.files.load().certificate.not_valid_after_utc
        return {
            "software": self._service.software,
            "certificate_ends": expires.isoformat(timespec="seconds"),
            "certificate_days": (expires - now).days,
            "actions": self._service.settings.dashboard_actions,
            "offers": self._service.signer is not None,
            "older": max(0, sum(self._reader.count_by_state().values()) - len(views)),
            "parties": self._parties(
                [view for view in views if isinstance(view, StudyView)], online
            ),
            "studies": [self._study(view, online, now) for view in views],
            "troubles": troubles(self._service.calls.counted()),
        }

    def _view(self, record: Record) -> StudyView | UnreadableStudy:
        try:
            if record.study not in self._agreed:  # it never changes, so it is parsed once
                self._agreed[record.study] = self._reader.study(record.study)
        except InputError as error:
            return UnreadableStudy(record=record, problem=str(error))
        return StudyView(
            record=record,
            study=self._agreed[record.study],
            approvals=self._reader.approvals(record.study),
            steps=self._reader.steps(record.study),
            traffic=self._reader.step_bytes(record.study),
            awaited=self._reader.awaited(record.study),
            absences=self._reader.absences(record.study),
        )

    def _parties(self, views: list[StudyView], online: frozenset[str]) -> list[dict[str, object]]:
        known, spent = self._reader.parties(), spent_by_party(views)
        seen_at = {name: party.seen_at for name, party in known.items()}
        for name, at in self._service.studies.presence.seen().items():
            seen_at[name] = at.isoformat(timespec="seconds")
        studies = Counter(name for view in views for name in view.study.parties)
        return [
            {
                "name": name,
                "online": name in online,
                "seen_at": seen_at.get(name),
                "software": known[name].software if name in known else "",
                "spent": spent.get(name, "0"),
                "studies": studies[name],
            }
            for name in sorted(known.keys() | studies.keys())
        ]

    def _study(
        self, view: StudyView | UnreadableStudy, online: frozenset[str], now: dt.datetime
    ) -> dict[str, object]:
        place = view.record.folder
        if isinstance(view, UnreadableStudy):
            return unreadable_document(view, has_release=place is not None)
        waits = (waited(wait.since, now) for wait in view.awaited)
        return study_document(
            view,
            online=online,
            now=now,
            overdue=any(wait > self._service.settings.step_deadline for wait in waits),
            has_release=place is not None,
            has_picture=place is not None and (place / _PICTURE).is_file(),
            cautions=[] if place is None else self._cautions(place),
        )

    def _cautions(self, place: Path) -> list[str]:
        """Return the cautions of a release; read once, because a release never changes."""
        if place not in self._read:
            try:
                self._read[place] = cautions_of(place)
            except InputError:
                self._read[place] = []  # damaged; `parley verify` says how
        return self._read[place]

    def _front(self, request: WebRequest, session: Session, match: Mapping[str, str]) -> Response:
        content = Markup(asset("curator.dashboard", "dashboard.html").body.decode())
        return page(
            "Parley curator",
            "Studies, parties and budgets, live. Noisy sums are all that a curator ever learns.",
            content,
            csrf=session.csrf,
            script="/dashboard.js",
        )

    def _state(self, request: WebRequest, session: Session, match: Mapping[str, str]) -> Response:
        """Send the document, unless the browser has it."""
        document = self.document()
        version = f'"{hashlib.sha256(document).hexdigest()}"'
        if request.headers.get("if-none-match") == version:
            return Response(status=HTTPStatus.NOT_MODIFIED, kind=JSON)
        return Response(kind=JSON, body=document, headers=(("ETag", version),))

    def _release(self, request: WebRequest, session: Session, match: Mapping[str, str]) -> Response:
        place = self._place(match)
        if place is None:
            return text(HTTPStatus.NOT_FOUND, "There is no release of this study.")
        try:
            release = FolderContents(place)
        except InputError as error:  # something else was put there
            return text(HTTPStatus.CONFLICT, f"The release cannot be sent: {error}")
        return download(f"{place.name}.zip", zip_pieces(release))

    def _place(self, match: Mapping[str, str]) -> Path | None:
        try:
            return self._reader.record(study_id(match["digest"])).folder
        except InputError:
            return None

    def _picture(self, request: WebRequest, session: Session, match: Mapping[str, str]) -> Response:
        place = self._place(match)
        if place is None or not (place / _PICTURE).is_file():
            return text(HTTPStatus.NOT_FOUND, "There is no picture of this study.")
        return Response(kind="image/svg+xml", body=(place / _PICTURE).read_bytes())
