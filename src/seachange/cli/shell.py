"""The prompt of `seachange sql`: editing with history and completion, statements that Ctrl-C cancels, progress of jobs.

**Invariant:** a statement runs on a thread of its own, so that Ctrl-C cancels it as a client's cancel request does, and
the session can be used again.
**Invariant:** Ctrl-C raises nothing: it is noted, and looked at where something can be cancelled. At the prompt it is a
key. So it cannot interrupt a step that leaves the session, the terminal or a lock half changed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from shutil import get_terminal_size
from typing import TextIO, TypeVar

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.patch_stdout import patch_stdout
from pygments.lexers.sql import PostgresLexer

from seachange.cli.database import report_error
from seachange.cli.formats import FORMATS, print_expanded
from seachange.cli.shell_commands import COMMANDS, NAMES, ShellCommand, describe_relation, find_command, help_text
from seachange.engine.session.session import Session
from seachange.engine.session.session_state import TransactionStatus
from seachange.errors import Error, SyntaxProblem
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.sql.port.result import Result
from seachange.sql.text.keywords import KEYWORDS
from seachange.sql.text.tokens import is_complete, split_script

T = TypeVar("T")

_WELCOME = "Statements end with a semicolon. \\? shows the commands, \\q quits."
_HISTORY = "~/.seachange_history"
# How often a running statement is looked at, and after how many looks the progress of a job is shown.
_LOOK_SECONDS = 0.05
_LOOKS_PER_PROGRESS = 10
_PROGRESS_WIDTH = 30
_WATCH_SECONDS = 2.0
_WATCH_SECONDS_MAX = 86_400.0
_US_PER_MS, _US_PER_S = 1_000, 1_000_000
_COMPLETIONS_MAX = 200
_WORDS = sorted(word for words in KEYWORDS.values() for word in words.split())


class Ended(Exception):
    r"""The reader has left, by \q or the end of the input."""


class Shell:
    def __init__(self, session: Session, format_name: str) -> None:
        self._session = session
        self._format = format_name
        self._expanded = False
        self._timing = False
        # Whether Ctrl-C was pressed and not looked at yet; and whether it has canceled something, which may have
        # ended all the same.
        self._was_interrupted = False
        self._has_canceled = False
        # The last statement, which \watch and \e take up.
        self._last = ""
        # What \e has left in the editor, which the next prompt begins with.
        self._draft = ""
        # For questions of the shell itself: it changes nothing, and the session may be busy.
        self._observer = Session(session.node, session.user, session.database)
        self._prompt: PromptSession[str] = PromptSession(
            history=_history(),
            completer=NameCompleter(self._names),
            complete_while_typing=False,
            lexer=PygmentsLexer(PostgresLexer),
            enable_open_in_editor=True,
        )

    def run(self) -> int:
        print(_WELCOME)
        before = signal.signal(signal.SIGINT, self._note_ctrl_c)
        try:
            with patch_stdout(raw=True):
                while True:
                    self._handle(self._read())
        except Ended:
            return 0
        finally:
            self._observer.close()
            signal.signal(signal.SIGINT, before)

    def _note_ctrl_c(self, number: int, frame: object) -> None:
        self._was_interrupted = True

    # Input.

    def _read(self) -> str:
        """One command or one text of complete statements; empty if its line was abandoned."""
        lines: list[str] = []
        while True:
            try:
                line = self._prompt.prompt(self._marker(bool(lines)), default=self._draft)
            except KeyboardInterrupt:
                return ""
            except EOFError:
                raise Ended from None
            self._draft = ""
            if not lines and line.lstrip().startswith("\\"):
                return line.strip()
            if not lines and line.strip() in ("exit", "quit"):
                raise Ended
            text, found, command = _split_command("\n".join([*lines, line]))
            if found:
                self._last = text
                return command
            lines.append(line)
            if not text.strip() or _ends(text):
                return text.strip()

    def _marker(self, continues: bool) -> str:
        status = {TransactionStatus.OPEN: "*", TransactionStatus.FAILED: "!"}.get(self._session.status, "")
        return f"{self._session.database}{'-' if continues else '='}{status}> "

    def _handle(self, text: str) -> None:
        self._was_interrupted = False
        try:
            if text.startswith("\\"):
                self._command(text)
            elif text:
                self._last = text
                self.execute(text)
        except Error as problem:
            report_error(problem)
        except (OSError, UnicodeDecodeError, subprocess.CalledProcessError) as problem:
            print(problem, file=sys.stderr)
        sys.stdout.flush()

    # Statements.

    def execute(self, text: str) -> None:
        began_us = SYSTEM_CLOCK.steady_us()
        try:
            for result in self._in_foreground(lambda: self._session.execute_all(text)):
                self.show(result)
        finally:
            for notice in self._session.notices:
                print(f"NOTICE:  {notice}", file=sys.stderr)
            self._session.notices.clear()
            if self._timing:
                print(f"Time: {(SYSTEM_CLOCK.steady_us() - began_us) / _US_PER_MS:.3f} ms")

    def show(self, result: Result) -> None:
        write = print_expanded if self._expanded and result.columns is not None else FORMATS[self._format]
        if sys.stdout.isatty() and len(result.rows) >= _screen_lines():
            with _pager() as out:
                write(result, out)
        else:
            write(result, sys.stdout)

    def _in_foreground(self, work: Callable[[], list[T]]) -> list[T]:
        found: list[list[T]] = []
        problems: list[BaseException] = []
        # Ctrl-C in Thread.join would leave the thread marked as ended.
        ended = threading.Event()

        def run() -> None:
            try:
                found.append(work())
            except BaseException as problem:  # noqa: BLE001 - raised again on the thread that waits
                problems.append(problem)
            finally:
                ended.set()

        threading.Thread(target=run, name="seachange-statement").start()
        self._wait(ended)
        if problems:
            raise problems[0]
        return found[0]

    def _wait(self, ended: threading.Event) -> None:
        shown = False
        looks = 0
        while not ended.wait(_LOOK_SECONDS):
            if self._was_interrupted:
                # Again if it is pressed again: a statement may consist of several.
                self._was_interrupted = False
                self._has_canceled = True
                self._session.interrupt()
            looks += 1
            if looks % _LOOKS_PER_PROGRESS == 0 and sys.stdout.isatty():
                shown = self._show_progress() or shown
        if shown:
            print("\r\x1b[K", end="", flush=True)

    def _show_progress(self) -> bool:
        """A line about the running job, which the next one replaces."""
        with suppress(Error):
            for job, stage, progress, waiting in self._observer.execute(NAMES["progress"]).rows:
                share = progress or 0.0
                bar = ("#" * round(share * _PROGRESS_WIDTH)).ljust(_PROGRESS_WIDTH, ".")
                more = f", waits for {waiting}" if waiting else ""
                print(f"\r\x1b[Kjob {job} [{bar}] {share:4.0%} {stage}{more}"[: _screen_columns()], end="", flush=True)
                return True
        return False

    # Commands.

    def _command(self, text: str) -> None:
        name, _, argument = text.partition(" ")
        argument = argument.strip().rstrip(";")
        command = find_command(name)
        if command is None:
            raise SyntaxProblem(detail=f"invalid command {name}: \\? shows the commands")
        if command.query is not None:
            values = (argument,) if command.takes_pattern else ()
            query = command.query
            for result in self._in_foreground(lambda: self._session.execute_all(query, values)):
                self.show(result)
            return
        self._act(command, argument)

    def _act(self, command: ShellCommand, argument: str) -> None:
        match command.name:
            case "\\q":
                raise Ended
            case "\\?":
                print(help_text())
            case "\\d" if argument:
                for title, result in self._in_foreground(lambda: list(describe_relation(self._session, argument))):
                    print(title)
                    self.show(result)
            case "\\d":
                self._command("\\dr")
            case "\\x":
                self._expanded = not self._expanded
                print(f"Expanded display is {'on' if self._expanded else 'off'}.")
            case "\\timing":
                self._timing = not self._timing
                print(f"Timing is {'on' if self._timing else 'off'}.")
            case "\\i":
                self._has_canceled = False
                for statement in split_script(Path(argument).expanduser().read_text(encoding="utf-8")):
                    if not (self._was_interrupted or self._has_canceled):
                        self.execute(statement.text)
            case "\\e":
                self._draft = _edit(self._last)
            case "\\watch":
                self._watch(argument)
            case _:
                raise AssertionError(command)

    def _watch(self, argument: str) -> None:
        """Until Ctrl-C."""
        seconds = _read_seconds(argument)
        self._has_canceled = False
        while not (self._was_interrupted or self._has_canceled):
            self.execute(self._last)
            self._pause(seconds)

    def _pause(self, seconds: float) -> None:
        due_us = SYSTEM_CLOCK.steady_us() + round(seconds * _US_PER_S)
        while not self._was_interrupted and (left_us := due_us - SYSTEM_CLOCK.steady_us()) > 0:
            threading.Event().wait(min(left_us / _US_PER_S, _LOOK_SECONDS))

    # Names.

    def _names(self) -> list[str]:
        try:
            return [name for (name,) in self._observer.execute(NAMES["completion"]).rows]
        except Error:
            return []


class NameCompleter(Completer):
    """Keywords, and the names of relations, columns and functions; commands after a backslash."""

    def __init__(self, names: Callable[[], list[str]]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        word = document.get_word_before_cursor(WORD=True)
        if word.startswith("\\"):
            candidates = [command.name for command in COMMANDS]
        else:
            word = document.get_word_before_cursor()
            candidates = [*self._names(), *_WORDS]
        found = [name for name in dict.fromkeys(candidates) if word and name.startswith(word.lower())]
        for name in found[:_COMPLETIONS_MAX]:
            yield Completion(name, start_position=-len(word))


def _read_seconds(text: str) -> float:
    try:
        seconds = float(text or _WATCH_SECONDS)
    except ValueError:
        seconds = -1.0
    # Not a number is in no range.
    if not 0 <= seconds <= _WATCH_SECONDS_MAX:
        raise SyntaxProblem(detail=f"\\watch takes a number of seconds up to {_WATCH_SECONDS_MAX:g}")
    return seconds


def _split_command(text: str) -> tuple[str, bool, str]:
    r"""A statement that ends with a command, such as `select 1 \watch 5`: both parts.

    >>> _split_command("select 1 \\watch 5")
    ('select 1', True, '\\watch 5')
    >>> _split_command("select '\\watch'")
    ("select '\\watch'", False, '')
    """
    before, found, after = text.rpartition("\\watch")
    if not found or before.count("'") % 2 or before.count('"') % 2:
        return text, False, ""
    return before.strip().rstrip(";"), True, f"{found}{after}".strip()


def _ends(text: str) -> bool:
    try:
        return is_complete(text)
    except SyntaxProblem:
        # An open quote or comment: wait for the rest, until a line ends it.
        return False


def _history() -> History:
    path = Path(os.environ.get("SEACHANGE_HISTORY", _HISTORY)).expanduser()
    try:
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _edit(text: str) -> str:
    """The text as the reader's editor leaves it."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.NamedTemporaryFile("w+", suffix=".sql", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        subprocess.run([*editor.split(), file.name], check=True)
        return Path(file.name).read_text(encoding="utf-8").strip()


@contextmanager
def _pager() -> Iterator[TextIO]:
    """The input of the reader's pager; without one, the output itself."""
    command = os.environ.get("PAGER", "less -FRSX").split()
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
    except OSError:
        yield sys.stdout
        return
    assert process.stdin is not None
    try:
        # The reader may leave before the end.
        with suppress(BrokenPipeError), TextIOWrapper(process.stdin, encoding="utf-8") as out:
            yield out
    finally:
        process.wait()


def _screen_lines() -> int:
    return get_terminal_size().lines


def _screen_columns() -> int:
    return get_terminal_size().columns
