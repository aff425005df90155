"""Every module has a test file of its own, where a reader looks for it.

The tests of `common/schema/codes.py` are in `tests/unit/schema/test_codes.py`, those of
`party/ledger.py` in `tests/unit/party/test_ledger.py`.
"""

from tests.harness.sources import ROOT, sources

# Modules whose work only shows when others join in: roles, sums, services, releases.
TESTED_IN = """
integration/test_collected_releases: party/collection party/releases
integration/test_connections: curator/server/connections
integration/test_demo: parley/cli/commands/demo parley/simulation/consortium
integration/test_doctor: common/service/checks curator/checks party/checks
integration/test_fetched_releases: curator/publisher
integration/test_hostile_calls: curator/server/admission curator/server/front
integration/test_missing_parties_over_grpc: curator/live_role
integration/test_processes: curator/app party/app
integration/test_refusals_over_grpc: curator/server/servicer
protocol/reproductions/test_seats_taken_in_opposite_orders: party/client/context
  party/client/sessions
integration/test_spark: parley/models/spark_output
integration/test_streams: party/client/connection
integration/test_study_over_grpc: curator/server/service
protocol/test_hybrid_recoverable_sums: common/crypto/sums/missing_lists common/crypto/sums/sum_keys
protocol/test_recoverable_sums: common/crypto/sums/recovery
protocol/test_secure_sum: common/crypto/sums/plan common/crypto/sums/ring
  common/crypto/sums/words
statistical/test_noise_audit_with_delta: common/privacy/promise
study/test_damaged_messages: common/study/messages
study/test_disputes: common/crypto/sums/boxes
study/test_missing_parties: common/exchanges/recoverable
study/test_roles: common/exchanges/choice common/exchanges/masked common/exchanges/replacement
  common/exchanges/ring common/study/sides common/study/states curator/role
  parley/simulation/in_process party/role
unit/methods/distdiffgen/test_script: common/exchanges/two_party
unit/wire/test_study_states: common/study/progress
protocol/reproductions/test_results_told_differently: common/study/history common/study/transcript
unit/curator/test_studies: curator/store/records
unit/parley/cli/commands/test_curator_study: curator/operations
unit/methods/test_conditional: common/bayes/form
unit/parley/cli/commands/test_keys: common/wire/pki/keyring
unit/parley/cli/commands/test_service: party/backup
unit/parley/cli/commands/test_verify: common/release/derive common/release/model_file
  common/release/verify
unit/parley/test_python_api: common/fitted/loading common/fitted/model parley/models/single_owner
  parley/reader/fitted
unit/party/sources/kinds/test_files: common/tables/files
unit/party/test_what_a_curator_sees: party/client/session
unit/party/ui/test_site: party/ui/pages
unit/privacy/test_noise_law: common/privacy/laws/discrete_laplace common/privacy/laws/limits
  common/privacy/laws/skellam
unit/release/test_archive: common/release/contents common/release/integrity
unit/tables/test_table_file: common/tables/csv_file
"""


def places():
    """The test files of TESTED_IN, with their modules."""
    lines = TESTED_IN.replace("\n  ", " ").split("\n")
    return {
        file: named.split() for file, _, named in (line.partition(":") for line in lines) if file
    }


def modules():
    paths = (path.removesuffix(".py") for path in sources())
    return {path for path in paths if not path.rpartition("/")[2].startswith("__")}


def own_test(module):
    folder, _, name = module.removeprefix("common/").rpartition("/")
    return ROOT / "tests" / "unit" / folder / f"test_{name}.py"


def test_every_module_has_a_test_file_of_its_own():
    elsewhere = {module for named in places().values() for module in named}
    without = {module for module in modules() if not own_test(module).exists()}
    assert sorted(without - elsewhere) == [], "write tests beside the others"


def test_modules_that_are_tested_elsewhere_have_no_test_file_of_their_own():
    known = modules()
    named = [module for group in places().values() for module in group]
    assert [name for name in named if name not in known or own_test(name).exists()] == []
    assert len(named) == len(set(named))
    for file in places():
        assert (ROOT / "tests" / f"{file}.py").exists(), file
