"""The owner's pages and their life: a loopback address, and a token in the printed address.

    with serving_ui(inbox, port=0) as address:
        print(address)
        stopping.wait()

The token is drawn anew at every start and is behind `#` in the address, the part that browsers do
not send; the page posts it once and gets a cookie for it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

from common.errors import InputError, LocalError, ParleyError
from common.files import pieces_of
from common.service.web.exchange import Request, Response, download, see_other, text
from common.service.web.pages import Markup, code, page, paragraph, section
from common.service.web.server import WebServer
from common.service.web.sessions import Session, Sessions
from common.service.web.site import LOOPBACK, Route, Site
from common.study.document import Study
from common.study.ids import study_id
from party.owner.decisions import rows_in_words
from party.ui import pages
from party.ui.inbox import OwnerInbox

_STUDY = r"/studies/(?P<digest>[0-9a-f]{64})"
_BACK = Markup('<nav aria-label="Back"><a href="/">All studies, ledger and transcript</a></nav>')


class OwnerPages:
    """The pages behind the door."""

    def __init__(self, inbox: OwnerInbox) -> None:
        self._inbox = inbox

    def routes(self) -> list[Route]:
        return [
            Route(method="GET", path="/", page=self._front),
            Route(method="POST", path="/ask", page=self._ask),
            Route(method="GET", path=_STUDY, page=self._study),
            Route(method="GET", path=f"{_STUDY}/release.zip", page=self._release),
            Route(method="POST", path=f"{_STUDY}/approve", page=self._approve),
            Route(method="POST", path=f"{_STUDY}/decline", page=self._decline),
        ]

    def _front(self, request: Request, session: Session, match: Mapping[str, str]) -> Response:
        inbox, house = self._inbox, self._inbox.house
        try:
            house.ledger.verify()
            complaint = ""
        except LocalError as error:
            complaint = str(error)
        studies = [pages.study_list(inbox.studies())]
        if inbox.asks:
            studies.append(pages.ask_form(session.csrf, answer=inbox.answer))
        return page(
            f"Parley, for {house.name}",
            "Studies to decide about, what was spent, and what left. Only this machine sees this.",
            pages.node_section(inbox.node()),
            section("Studies", *studies, identifier="studies"),
            pages.attended_section(house.journal.studies(), house.collection.all()),
            pages.ledger_section(
                house.ledger.entries(),
                spent=house.ledger.spending(),
                cap=house.policy.epsilon_in_total,
                head=house.ledger.head(),
                complaint=complaint,
            ),
            pages.transcript_section(house.journal.sent_log()),
            csrf=session.csrf,
        )

    def _release(self, request: Request, session: Session, match: Mapping[str, str]) -> Response:
        found = self._inbox.house.collection.all().get(study_id(match["digest"]))
        if found is None or found.place is None or not found.place.is_file():
            return text(HTTPStatus.NOT_FOUND, "There is no release of this study here.")
        return download(found.place.name, pieces_of(found.place))

    def _ask(self, request: Request, session: Session, match: Mapping[str, str]) -> Response:
        self._inbox.ask()
        return see_other("/")

    def _study(self, request: Request, session: Session, match: Mapping[str, str]) -> Response:
        study = self._found(match)
        if study is None:
            return text(HTTPStatus.NOT_FOUND, "There is no such study in this inbox.")
        try:
            seen = self._inbox.review(study)
        except ParleyError as error:
            return self._trouble(session, study, "It cannot be reviewed.", error)
        decision = self._inbox.house.approvals.decision(study.digest)
        return page(
            f"Study “{study.name}”",
            f"As {seen.party} sees it. Nothing in this review comes from the curator.",
            _BACK,
            *pages.standing(decision, self._inbox.node()),
            Markup(f"<p>Digest {code(seen.digest).html}</p>"),
            Markup(f"<p>Signed by {code(seen.signer).html}</p>")
            if seen.signer
            else paragraph("Not signed."),
            *pages.review_sections(seen),
            pages.decision_section(
                seen,
                decision,
                session.csrf,
                withdrawal_means=self._inbox.withdrawal_means(study),
                rows_changed=rows_in_words(
                    self._inbox.house.approvals.rows_changed_at(study.digest)
                ),
            ),
            csrf=session.csrf,
        )

    def _approve(self, request: Request, session: Session, match: Mapping[str, str]) -> Response:
        study, form = self._found(match), request.form()
        if study is None:
            return text(HTTPStatus.NOT_FOUND, "There is no such study in this inbox.")
        try:
            if form.get("sure") != "yes":
                raise InputError("Tick the box to approve; nothing was decided.")
            self._inbox.approve(study, shown_cost=form.get("cost", ""))
        except ParleyError as error:
            return self._trouble(session, study, "It was not approved.", error)
        return see_other(request.path.rpartition("/")[0])

    def _decline(self, request: Request, session: Session, match: Mapping[str, str]) -> Response:
        study, form = self._found(match), request.form()
        if study is None:
            return text(HTTPStatus.NOT_FOUND, "There is no such study in this inbox.")
        try:
            self._inbox.decline(study, reason=form.get("reason", "")[: pages.MOST_REASON])
        except ParleyError as error:
            return self._trouble(session, study, "It was not declined.", error)
        return see_other(request.path.rpartition("/")[0])

    def _found(self, match: Mapping[str, str]) -> Study | None:
        return self._inbox.study(study_id(match["digest"]))

    def _trouble(self, session: Session, study: Study, what: str, error: ParleyError) -> Response:
        shown = page(
            f"Study “{study.name}”", what, _BACK, paragraph(str(error), "trouble"),
            csrf=session.csrf,
        )  # fmt: skip
        return Response(status=HTTPStatus.CONFLICT, body=shown.body)


@contextmanager
def serving_ui(inbox: OwnerInbox, *, port: int) -> Iterator[str]:
    """Serve the owner's pages for the length of a block; the address to open."""
    token = secrets.token_urlsafe(32)
    site = Site(
        title=f"Parley, for {inbox.house.name}",
        hosts=LOOPBACK,
        sessions=Sessions(token, now=time.monotonic),
        routes=OwnerPages(inbox).routes(),
        assets={},
    )
    server = WebServer(f"127.0.0.1:{port}", site, name="ui")
    site.at_port(server.port)
    with server.running() as listening:
        yield f"http://127.0.0.1:{listening}/login#token={token}"
