"""``cuzk filecoin``: the group of its commands."""

from __future__ import annotations

from cuzk.cli.app import cuzk_group
from cuzk.cli.filecoin_keys import circuit_info_command, setup_command
from cuzk.cli.filecoin_prove import prove_command
from cuzk.cli.filecoin_submit import submit_command
from cuzk.cli.filecoin_verify import verify_command


@cuzk_group.group("filecoin", short_help="Filecoin's proofs: PoRep (C2), PoSt, SnapDeals.")
def filecoin_group() -> None:
    """Filecoin's proofs: from vanilla proofs (C1, PoSt, SnapDeals) to bytes for the chain."""


for command in (
    circuit_info_command,
    prove_command,
    setup_command,
    submit_command,
    verify_command,
):
    filecoin_group.add_command(command)
