"""The publisher: it makes the release of a deployed study from what the curator learnt."""

from __future__ import annotations

import logging
from pathlib import Path

from common.crypto.key_files import AskPassphrase, load_identity
from common.fitted.linked import LinkedFit
from common.fitted.study import StudyFit
from common.methods.criteria import verdicts
from common.methods.registry import method_of
from common.release import folder as release
from common.release.manifest import Signer, SignerRole
from common.release.prior import PriorRelease, Priors
from common.release.synthetic_table import TableColumns
from common.report.writing import write_release
from common.study.accounting import account, statement_of
from common.study.ids import folder_name
from common.study.transcript import transcript_of
from common.wire.pki.certificates import Role, subject_of
from common.wire.pki.keyring import Keyring
from curator.context import FinishedStudy

logger = logging.getLogger(__name__)


def publish(
    outcome: FinishedStudy,
    releases: Path,
    *,
    file_format: str = "csv",
    signer: Signer | None = None,
    priors: Priors | None = None,
) -> Path:
    """Make the release of a study in a folder of its own; a release that is there is kept.

    Raises:
        InputError: the folder cannot be written.
        PolicyError: the steps cost a party more than the study says.
    """
    target = releases / folder_name(outcome.study.name, outcome.study.digest)
    if (target / release.STATEMENT).exists():  # the curator stopped just before it noted this
        return target
    fitted = fitted_study(outcome, None if priors is None else priors.of(outcome.study))
    with release.new_folder(target, overwrite=False) as folder:
        write_release(folder, fitted, file_format=file_format, signer=signer)
    return target


def curator_signer(keys: Path, passphrase: AskPassphrase) -> Signer | None:
    """Return the curator as a signer: the name in its certificate, the identity beside it."""
    ring = Keyring(keys, Role.CURATOR)
    if not ring.identity.exists():
        logger.warning(
            "releases will not be signed: %s is missing; make it with `parley keys identity "
            "--folder %s`",
            ring.identity,
            keys,
        )
        return None
    certificate = ring.certificate()
    return Signer(
        role=SignerRole.CURATOR,
        name="curator" if certificate is None else subject_of(certificate).name,
        identity=load_identity(ring.identity, passphrase=passphrase),
    )


def fitted_study(outcome: FinishedStudy, prior: PriorRelease | None = None) -> StudyFit:
    """Return what a study released, with its privacy statement."""
    study = outcome.study
    accountant = account(study, outcome.steps)
    statement = statement_of(
        study,
        method_of(study),
        accountant,
        source_private=outcome.private,
        criteria=verdicts(study, outcome.steps, outcome.results, outcome.model),
        left=outcome.left,
        disputes=outcome.disputes,
    )
    kind = StudyFit if study.schema.events is None else LinkedFit
    return kind(
        study=study,
        schema=study.schema,
        steps_and_model=(tuple(outcome.steps), outcome.model),
        results=tuple(outcome.results),
        privacy=statement.as_dict(),
        columns=TableColumns.by_schema(study.schema),
        transcript=transcript_of(study, outcome.traffic, statement.missing),
        prior=prior,
        commitments=outcome.commitments,
    )
