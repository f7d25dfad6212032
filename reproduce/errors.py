"""What the harness says when it cannot go on, and the exit status that goes with it."""

AGREES = 0
DIFFERS = 1
CANNOT_COMPARE = 2
RUN_FAILED = 3


class HarnessError(Exception):
    """A condition a person can mend.

    The message names the thing, what was expected, what was found and the next step; the command line prints it
    without a traceback and leaves with `status`.
    """

    status = CANNOT_COMPARE


class RunFailed(HarnessError):
    """A notebook could not be run to its end."""

    status = RUN_FAILED
