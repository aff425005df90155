"""The owner's pages and their life: a loopback address, and a token in the printed address.

The token is drawn anew at every start and is behind `#` in the address, the part that browsers do
not send; the page posts it once and gets a cookie for it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus

from common.errors import InputError, LocalError, ParleyError
from common.files import pieces_of
from common.report.page import element
from common.service.web.exchange import Response, WebRequest, download, see_other, text
from common.service.web.pages import page, section
from common.service.web.server import WebServer
from common.service.web.sessions import Session, Sessions
from common.service.web.site import LOOPBACK, PageRoute, Site
from common.study.document import Study
from common.study.ids import study_id
from party.owner.decisions import rows_in_words
from party.ui import pages
from party.ui.inbox import OwnerInbox

_OfStudy = Callable[[Study, WebRequest, Session], Response]
_STUDY = r"/studies/(?P<digest>[0-9a-f]{64})"
_BACK = element(
    "nav", element("a", "All studies, ledger and sent log", href="/"), aria_label="Back"
)


class OwnerPages:
    """The pages behind the door."""

    def __init__(self, inbox: OwnerInbox) -> None:
        self._inbox = inbox

    def routes(self) -> list[PageRoute]:
        return [
            PageRoute(method="GET", path="/", page=self._front),
            PageRoute(method="POST", path="/ask", page=self._ask),
            PageRoute(method="GET", path=f"{_STUDY}/release.zip", page=self._release),
            *(
                PageRoute(
                    method=method, path=_STUDY + path, page=partial(self._of_study, act, trouble)
                )
                for method, path, act, trouble in (
                    ("GET", "", self._study, "It cannot be reviewed."),
                    ("POST", "/approve", self._approve, "It was not approved."),
                    ("POST", "/decline", self._decline, "It was not declined."),
                )
            ),
        ]

    def _front(self, request: WebRequest, session: Session, match: Mapping[str, str]) -> Response:
        inbox, context = self._inbox, self._inbox.context
        try:
            context.ledger.verify()
            complaint = ""
        except LocalError as error:
            complaint = str(error)
        studies = [pages.study_list(inbox.studies())]
        if inbox.asks:
            studies.append(pages.ask_form(session.csrf, answer=inbox.answer))
        return page(
            f"Parley, for {context.name}",
            "Studies to decide about, what was spent, and what left. Only this machine sees this.",
            pages.node_section(inbox.node()),
            pages.policy_section(context.policies),
            section("Studies", *studies, identifier="studies"),
            pages.attended_section(context.journal.studies(), context.collection.all()),
            pages.ledger_section(
                context.ledger.entries(),
                totals=context.ledger.totals(),
                cap=context.policy.epsilon_in_total,
                head=context.ledger.head(),
                complaint=complaint,
            ),
            pages.sent_section(context.journal.sent_log()),
            csrf=session.csrf,
        )

    def _release(self, request: WebRequest, session: Session, match: Mapping[str, str]) -> Response:
        collected = self._inbox.context.collection.all().get(study_id(match["digest"]))
        if collected is None or collected.place is None or not collected.place.is_file():
            return text(HTTPStatus.NOT_FOUND, "There is no release of this study here.")
        return download(collected.place.name, pieces_of(collected.place))

    def _ask(self, request: WebRequest, session: Session, match: Mapping[str, str]) -> Response:
        self._inbox.ask()
        return see_other("/")

    def _of_study(
        self, act: _OfStudy, trouble: str,
        request: WebRequest, session: Session, match: Mapping[str, str],
    ) -> Response:  # fmt: skip
        """Do something about the study of an address, or say why that failed."""
        study = self._inbox.study(study_id(match["digest"]))
        if study is None:
            return text(HTTPStatus.NOT_FOUND, "There is no such study in this inbox.")
        try:
            return act(study, request, session)
        except ParleyError as error:
            shown = page(
                f"Study “{study.name}”", trouble, _BACK, element("p", str(error), class_="trouble"),
                csrf=session.csrf,
            )  # fmt: skip
            return Response(status=HTTPStatus.CONFLICT, body=shown.body)

    def _study(self, study: Study, request: WebRequest, session: Session) -> Response:
        review, _ = self._inbox.review(study)
        decision = self._inbox.context.approvals.decision(study.digest)
        return page(
            f"Study “{study.name}”",
            f"As {review.party} sees it. Nothing in this review comes from the curator.",
            _BACK,
            *pages.standing(decision, self._inbox.node()),
            pages.summary_section(review),
            pages.decision_section(
                review,
                decision,
                session.csrf,
                withdrawal_means=self._inbox.withdrawal_means(study),
                rows_changed=rows_in_words(
                    self._inbox.context.approvals.rows_changed_at(study.digest)
                ),
            ),
            *pages.review_sections(review),
            csrf=session.csrf,
        )

    def _approve(self, study: Study, request: WebRequest, session: Session) -> Response:
        form = request.form()
        if form.get("sure") != "yes":
            raise InputError("Tick the box to approve; nothing was decided.")
        self._inbox.approve(study, shown_cost=form.get("cost", ""))
        return see_other(request.path.rpartition("/")[0])

    def _decline(self, study: Study, request: WebRequest, session: Session) -> Response:
        reason = request.form().get("reason", "")[: pages.MOST_REASON]
        self._inbox.decline(study, reason=reason)
        return see_other(request.path.rpartition("/")[0])


@contextmanager
def serving_ui(inbox: OwnerInbox, *, port: int) -> Iterator[str]:
    """Serve the owner's pages for the length of a block; yield the address to open."""
    token = secrets.token_urlsafe(32)
    site = Site(
        title=f"Parley, for {inbox.context.name}",
        hosts=LOOPBACK,
        sessions=Sessions(token, now=time.monotonic),
        routes=OwnerPages(inbox).routes(),
        assets={},
    )
    server = WebServer(f"127.0.0.1:{port}", site, name="ui")
    site.at_port(server.port)
    with server.running() as listening:
        yield f"http://127.0.0.1:{listening}/login#token={token}"
