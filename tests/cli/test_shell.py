"""The prompt of `seachange sql`, on a real terminal."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import seachange
from tests.support.patience import PATIENCE_S

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]|\r")
SETUP = (
    "create table parent (id int primary key)",
    "create table child (id int primary key, name text not null default 'x', p int references parent)",
    "create index child_name on child (name)",
    "create view names as select name from child",
)


class Gone(AssertionError):
    """The program has ended."""


class Terminal:
    """A program on a terminal of its own; `expect` waits for what it shows."""

    def __init__(self, folder: Path, *command: str, **variables: str) -> None:
        self.leader, follower = pty.openpty()
        settings = {
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "PAGER": "cat",
            "SEACHANGE_HISTORY": str(folder / "history"),
            "LINES": "1000",
            "COLUMNS": "200",
        }
        self.process = subprocess.Popen(
            command,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**os.environ, **settings, **variables},
            start_new_session=True,
        )
        os.close(follower)
        self.shown = ""

    def send(self, text: str) -> None:
        os.write(self.leader, text.encode())

    def line(self, text: str) -> None:
        self.send(text + "\r")

    def expect(self, pattern: str, nudge: Callable[[], None] = lambda: None) -> str:
        """What was shown up to there; it is not looked at again. `nudge` is called whenever nothing comes."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := re.search(pattern, self.shown)) is None:
            assert time.monotonic() < deadline, f"waited for {pattern!r}, got {self.shown!r}"
            ready, _, _ = select.select([self.leader], [], [], 0.1)
            if ready:
                self._read()
            else:
                nudge()
        before, self.shown = self.shown[: found.end()], self.shown[found.end() :]
        return before

    def _read(self) -> None:
        try:
            data = os.read(self.leader, 65_536)
        except OSError:
            raise Gone(f"the program has ended; it showed {self.shown!r}") from None
        self.shown += _ESCAPES.sub("", data.decode(errors="replace"))

    def drain(self) -> None:
        """Reads what is there."""
        while select.select([self.leader], [], [], 0.005)[0]:
            self._read()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def close(self) -> int:
        """Reads to the end first: a program that writes to a terminal which is full cannot end."""
        try:
            with suppress(Gone):
                self.expect("(?!)")
            return self.process.wait(PATIENCE_S)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            os.close(self.leader)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def shop(home: Path) -> Path:
    with seachange.connect(home / "shop", autocommit=True) as db:
        for statement in SETUP:
            db.execute(statement)
    return home / "shop"


@pytest.fixture(scope="module")
def shell(shop: Path, home: Path) -> Iterator[Terminal]:
    """One for all tests: each leaves it at its prompt."""
    terminal = Terminal(home, sys.executable, "-m", "seachange.cli.main", "sql", "--data", str(shop))
    terminal.expect("seachange=>")
    yield terminal
    terminal.send("\x03")
    terminal.line("\\q")
    assert terminal.close() == 0


def test_statements_span_lines_and_show_the_state_of_the_transaction(shell: Terminal):
    shell.line("select 1 +")
    shell.expect("seachange->")
    shell.line("41 as answer;")
    assert "42" in shell.expect(r"\(1 row\)")
    shell.line("begin;")
    shell.expect(r"seachange=\*>")
    shell.line("select nosuch;")
    shell.expect("42703")
    shell.expect("seachange=!>")
    shell.line("rollback;")
    shell.expect("seachange=>")


COMMANDS = (
    ("\\dt", r"child[\s\S]*parent[\s\S]*\(2 rows\)"),
    ("\\dt p*", r"parent[\s\S]*\(1 row\)"),
    ("\\di", r"child_name[\s\S]*\(3 rows\)"),
    ("\\dv", r"names[\s\S]*\(1 row\)"),
    ("\\d", r"child[\s\S]*names[\s\S]*parent"),
    ("\\d child", r"name[\s\S]*text[\s\S]*not null[\s\S]*Indexes:[\s\S]*child_name[\s\S]*FOREIGN KEY"),
    ("\\d parent", r"Referenced by:[\s\S]*child"),
    ("\\d nosuch", "42P01"),
    ("\\dn", r"public"),
    ("\\du", r"seachange[\s\S]*Superuser"),
    ("\\l", r"seachange"),
    ("\\?", r"\\timing[\s\S]*\\watch"),
    ("\\nosuch", r"42601: .*\\nosuch"),
)


def test_commands_answer_and_do_not_wait_for_a_semicolon(shell: Terminal):
    for command, expected in COMMANDS:
        shell.line(command)
        shell.expect(expected)
        shell.expect("seachange=>")


def test_expanded_rows_and_timing(shell: Terminal):
    shell.line("\\x")
    shell.expect("is on")
    shell.line("\\timing")
    shell.expect("is on")
    shell.line("select 7 as seven, 'a' as letter;")
    shell.expect(r"RECORD 1[\s\S]*seven +\| 7[\s\S]*letter \| a[\s\S]*Time: [0-9.]+ ms")
    shell.line("\\x")
    shell.expect("is off")
    shell.line("\\timing")
    shell.expect("is off")


def test_ctrl_c_cancels_the_statement_and_not_the_session(shell: Terminal):
    shell.line("select pg_sleep(600);")
    shell.expect("57014", shell.interrupt)
    shell.line("select 'alive' || '!' as still;")
    shell.expect("alive!")


def test_ctrl_c_at_the_prompt_abandons_the_line(shell: Terminal):
    shell.send("select wrong")
    shell.expect("wrong")
    shell.send("\x03")
    shell.expect("seachange=>")
    shell.line("select 'ri' || 'ght' as word;")
    shell.expect("right")


def test_names_are_completed(shell: Terminal):
    shell.send("select count(*) from chil\t")
    shell.expect("from child")
    shell.line(";")
    shell.expect(r"count[\s\S]*0[\s\S]*\(1 row\)")


def test_history_survives_the_shell(shop: Path, home: Path, shell: Terminal):
    shell.line("select 'remem' || 'bered' as word;")
    shell.expect("remembered")
    history = home / "history"
    assert history.stat().st_mode & 0o077 == 0
    other = Terminal(home, sys.executable, "-m", "seachange.cli.main", "sql", "--data", str(shop))
    other.expect("seachange=>")
    other.send("\x1b[A\r")
    other.expect("remembered")
    other.expect("seachange=>")
    other.send("\x04")
    assert other.close() == 0


def test_a_file_is_run_and_a_statement_watched(shell: Terminal, tmp_path: Path):
    script = tmp_path / "script.sql"
    script.write_text("create sequence s;\nselect 'from ' || 'file' as place;\n")
    shell.line(f"\\i {script}")
    shell.expect("from file")
    shell.line("select 'turn ' || nextval('s') as turn \\watch 0.5")
    shell.expect("turn 1")
    shell.expect("turn 3")
    shell.expect("seachange=>", shell.interrupt)


def test_what_commands_cannot_do_is_an_error_and_not_the_end(shell: Terminal, tmp_path: Path):
    (tmp_path / "binary").write_bytes(b"select '\xff';")
    for command, expected in (
        ("\\watch abc", "42601"),
        ("\\watch nan", "42601"),
        ("\\watch -1", "42601"),
        (f"\\i {tmp_path}/nosuch", "No such file"),
        (f"\\i {tmp_path}/binary", "codec"),
        ('\\d "', "42"),
    ):
        shell.line(command)
        shell.expect(expected)
        shell.expect("seachange=>")


def test_ctrl_c_at_any_moment_leaves_a_shell_that_answers(shell: Terminal, tmp_path: Path):
    script = tmp_path / "many.sql"
    script.write_text("insert into parent values (1) on conflict do nothing;\nselect count(*) from parent;\n" * 20)
    lines = ("select pg_sleep(0.01);", f"\\i {script}", "\\dt", "begin;", "insert into parent values (2);", "rollback;")
    for number in range(60):
        shell.line(lines[number % len(lines)])
        for _ in range(number % 5):
            shell.interrupt()
            shell.drain()
        # As a key of the terminal, too.
        if number % 7 == 0:
            shell.send("\x03")
    shell.line("")
    shell.line("rollback;")
    shell.line("select 'still ' || 'alive' as answer;")
    shell.expect("still alive", lambda: shell.line("select 'still ' || 'alive' as answer;"))
    shell.expect("seachange=>")


def test_a_statement_is_edited(shop: Path, tmp_path: Path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/before/after/' \"$1\"\n")
    editor.chmod(0o755)
    command = [sys.executable, "-m", "seachange.cli.main", "sql", "--data", str(shop)]
    terminal = Terminal(tmp_path, *command, EDITOR=str(editor))
    terminal.expect("seachange=>")
    terminal.line("select 'be' || 'fore', 'before' as word;")
    terminal.expect(r"\(1 row\)")
    terminal.line("\\e")
    terminal.expect("'after' as word;")
    terminal.line("")
    terminal.expect(r"\(1 row\)")
    terminal.line("\\q")
    assert terminal.close() == 0
