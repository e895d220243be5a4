"""CSV files as arguments of commands: reads them, and says line by line why one was refused."""

from gettext import gettext as _
from pathlib import Path

from facho.core.cli.output import cell
from facho.core.product import OperatorError
from facho.hosts.inventory import EntryProblem, InventoryError

# A national network has some thousands of OLTs and some hundred thousand customers; ten times that is a mistake.
MAX_CSV_BYTES = 64 * 1024 * 1024


def read_csv(path: Path) -> bytes:
    """Read a file that a person named."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CSV_BYTES + 1)
    except OSError as error:
        raise file_failure(path, error) from error
    if len(content) > MAX_CSV_BYTES:
        raise OperatorError(_("%s is too large to be an inventory.") % path)
    return content


def file_failure(path: Path | str, error: OSError) -> OperatorError:
    """Say why a file cannot be used."""
    return OperatorError(f"{path}: {error.strerror}")


def refused(path: Path, error: InventoryError) -> OperatorError:
    """List every problem of a file of which nothing was imported."""
    lines = [problem_line(path, problem) for problem in error.problems]
    return OperatorError(*lines, _("Nothing was imported: correct the file and import it again."))


def problem_line(path: Path, problem: EntryProblem) -> str:
    """Say what is wrong, and on which line."""
    place = _("%(file)s line %(line)s") % {"file": path, "line": problem.line} if problem.line else str(path)
    return f"{place}: {cell(problem.reason)}"
