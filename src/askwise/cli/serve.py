"""askwise serve: cases over HTTP."""

import argparse

from askwise.errors import InputError


def run(options: argparse.Namespace) -> None:
    try:
        from askwise.web.server import serve
    except ImportError as error:
        raise InputError(f"askwise serve needs the package {error.name!r}: pip install 'askwise[serve]'") from None
    serve(options)
