"""What an operator may do at the dashboard: what the commands of `parley curator study` do.

Every action is a form of its own, which the page asks to confirm. Offering a study is a right of
its own (`dashboard_offers`): the curator signs it, and nodes that approve by themselves trust that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.methods.registry import run_of
from common.service.web.exchange import Response, WebRequest, see_other, text
from common.service.web.sessions import Session
from common.service.web.site import PageRoute
from common.study.document import Study
from common.study.dry_run import require_runnable
from common.study.ids import StudyId, short_id, study_id
from curator.revision import next_name, revised
from curator.store.records import StudyState
from curator.studies import Studies
from curator.waiting import ask_to_miss

logger = logging.getLogger(__name__)

_DIGEST = r"(?P<digest>[0-9a-f]{64})"
_Act = Callable[[StudyId, Mapping[str, str]], None]


class Actions:
    """The forms of the dashboard; a running curator does what they ask for."""

    def __init__(self, studies: Studies, *, manages: bool, signer: Identity | None) -> None:
        self._studies, self._manages, self._signer = studies, manages, signer

    def routes(self) -> list[PageRoute]:
        managing = {"abort": self._abort, "missing": self._declare_missing}
        offering = {"renew": self._renew, "reform": self._reform}
        allowed: dict[str, _Act] = {
            **(managing if self._manages else {}),
            **(offering if self._signer is not None else {}),
        }
        return [
            PageRoute(method="POST", path=f"/studies/{_DIGEST}/{name}", page=self._page(act))
            for name, act in allowed.items()
        ]

    def _page(self, act: _Act) -> Callable[[WebRequest, Session, Mapping[str, str]], Response]:
        def page(request: WebRequest, session: Session, match: Mapping[str, str]) -> Response:
            study = study_id(match["digest"])
            if not self._studies.store.members(study):
                return text(HTTPStatus.NOT_FOUND, "There is no such study here.")
            try:
                act(study, request.form())
            except InputError as error:
                return text(HTTPStatus.CONFLICT, f"Nothing was changed: {error}")
            return see_other("/")

        return page

    def _abort(self, study: StudyId, form: Mapping[str, str]) -> None:
        """Write the request down and end the study, as `parley curator study abort` does."""
        logger.warning("study %s is given up at the dashboard", short_id(study))
        at = self._studies.context.now()
        self._studies.store.ask_to_abort(study, "given up at the dashboard", at=at)
        self._studies.open()

    def _declare_missing(self, study: StudyId, form: Mapping[str, str]) -> None:
        """Go on without an owner, within a second, as `parley curator study missing` does."""
        store, owner = self._studies.store, form.get("owner", "")
        ask_to_miss(store, store.record(study), owner, at=self._studies.context.now())
        logger.warning("study %s: %r is declared missing at the dashboard", short_id(study), owner)

    def _renew(self, study: StudyId, form: Mapping[str, str]) -> None:
        """Offer next year's study, as `parley curator study renew` and `add` do."""
        record = self._studies.store.record(study)
        if record.state is not StudyState.DONE:
            raise InputError(
                f"study {record.name!r}: it is not done ({record.state.value}). Wait for it, or "
                "use `parley curator study renew`"
            )
        earlier = self._studies.store.study(study)
        self._offer(earlier, name=next_name(earlier.name, self._studies.context.clock().year))

    def _reform(self, study: StudyId, form: Mapping[str, str]) -> None:
        """Offer a study again without an owner, as `parley curator study reform` and `add` do."""
        record, owner = self._studies.store.record(study), form.get("owner", "")
        if not record.state.over:
            raise InputError(
                f"study {record.name!r}: it is not over ({record.state.value}). Give it up first"
            )
        earlier = self._studies.store.study(study)
        self._offer(earlier, name=f"{earlier.name}, without {owner}", without=(owner,))

    def _offer(self, earlier: Study, *, name: str, without: tuple[str, ...] = ()) -> None:
        assert self._signer is not None  # or there is no such route  # noqa: S101
        pinned, today = self._signer.public.fingerprint, self._studies.context.clock().date()
        study = revised(earlier, name=name, without=without, curator=pinned, today=today)
        require_runnable(study, run_of(study))
        if self._studies.store.members(study.digest):
            raise InputError(f"study {name!r}: it was offered already. See it on the page")
        self._studies.propose(study.signed_by(self._signer))
        logger.warning("study %s is offered at the dashboard", short_id(study.digest))
