"""The commands that read records: compare two, print one."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ..checkout import here
from ..errors import HarnessError
from .options import NB, All, Json, out
from .running import run_all


def compare(
    a: Annotated[Path, typer.Argument(help="Record or folder of records: the expected side.")],
    b: Annotated[Path, typer.Argument(help="Record or folder of records: the found side.")],
    nb: NB = "",
    everything: All = False,
    json: Json = False,
    explain: Annotated[bool, typer.Option(help="Run here what had another random stream, to prove the cause.")] = False,
) -> int:
    """Compare two recorded runs. Needs no JAX and runs nothing unless asked to; the noise floors are those beside A."""
    from .. import answers, pairing, report

    results = pairing.compare_paths(a, b, nb)
    if json:
        answer = {name: answers.comparison_json(result) for name, result in results.items()}
        sys.stdout.buffer.write(answers.encode(answer))
    else:
        for name, result in results.items():
            report.show_comparison(out, name, result, everything=everything)
        report.show_causes(out, results)
        out.print(f"\n[bold]{escape(pairing.closing_sentence(results, a, b))}[/]", highlight=False)
    return (_explain(results, b) if explain else 0) or pairing.status(results)


def _explain(results: dict, found: Path) -> int:
    from .. import proving
    from ..tasks import Limits

    checkout = here()
    proofs = proving.proofs(checkout, results, found)
    status = run_all(checkout, [proof.task for proof in proofs], Limits(), None, force=False)
    for proof in [] if status else proofs:
        out.print(escape(proving.sentence(proof, proving.verdict(checkout, proof))), highlight=False)
    return status


def show(
    file: Annotated[Path | None, typer.Argument(help="A record file.")] = None,
    nb: NB = "",
    precision: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    reference: Annotated[bool, typer.Option("--reference", help="The reference record, not your last run.")] = False,
) -> int:
    """Print a record as the plain log."""
    from .. import environment, plain_log, records

    checkout = here()
    if file:
        out.print(escape(plain_log.render(records.read(file))), end="", highlight=False)
        return 0
    for path in checkout.sources(nb):
        run_folder = checkout.run(path.stem, precision)
        if reference:
            recorded = checkout.reference(path.stem)
            record_file = recorded.record(precision)
            about = environment.read_recorded(recorded.folder)[precision]
        else:
            if not run_folder.record.exists():
                raise HarnessError(
                    f"{path.stem} has no {precision} run yet. Run it with: make reproduce NB={path.stem[:2]}"
                )
            record_file, about = run_folder.record, environment.read(run_folder.environment)
        text = plain_log.render(records.read(record_file), environment.describe(about))
        out.print(escape(text), end="", highlight=False)
    return 0
