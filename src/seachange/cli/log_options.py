"""The options of commands that write a log."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from seachange.errors import InputOutputError
from seachange.runtime.event_log import EventLog, LogFile, LogFormat, LogOutput, LogStream

_MB = 1_000_000


def add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log", type=Path, metavar="FILE", help="write the log to this file (default: standard error)")
    parser.add_argument(
        "--log-format", choices=[each.value for each in LogFormat], default=LogFormat.TEXT, help="default: text"
    )
    parser.add_argument(
        "--log-size",
        type=_count,
        default=100,
        metavar="MB",
        help="the size at which FILE becomes FILE.1, and a new one begins (default: 100; 0: never)",
    )
    parser.add_argument(
        "--log-files", type=_count, default=5, metavar="N", help="how many earlier files are kept (default: 5)"
    )
    parser.add_argument(
        "--log-literals", action="store_true", help="log constants of statements, and values in messages"
    )


def open_log(arguments: argparse.Namespace) -> EventLog:
    return EventLog(_output(arguments), LogFormat(arguments.log_format), arguments.log_literals)


def _output(arguments: argparse.Namespace) -> LogOutput:
    if arguments.log is None:
        return LogStream(sys.stderr.fileno())
    try:
        return LogFile(arguments.log, arguments.log_size * _MB, arguments.log_files)
    except OSError as problem:
        raise InputOutputError(
            action="open log file", file=arguments.log, detail=problem.strerror or problem
        ) from problem


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a number")
    return int(text)
