"""Migrations cut into pieces."""

import pytest

from seachange.replay.script import Piece, PieceKind, cut


def texts(script: str) -> list[str]:
    return [piece.text for piece in cut(script)]


def test_semicolons_in_quotes_comments_and_bodies_cut_nothing():
    script = """
    insert into t values ('a;b', "c;d", E'e\\';f');  -- no; more
    /* one; /* nested; */ still; */
    create function f() returns int as $body$ select 1; select ';'; $body$ language sql;
    select $$;$$
    """
    assert [text.split()[0] for text in texts(script)] == ["insert", "create", "select"]


def test_pieces_know_their_lines():
    pieces = cut("select 1;\n\n-- remark\nselect 2;\n\\echo done\nselect\n3;")
    assert [(piece.text, piece.line) for piece in pieces] == [
        ("select 1", 1),
        ("select 2", 4),
        ("\\echo done", 5),
        ("select\n3", 6),
    ]


def test_psql_meta_command_is_a_piece_outside_of_statements():
    pieces = cut("\\set ON_ERROR_STOP on\nselect '\n\\not one\n';\n\\connect shop\n")
    assert [piece.kind for piece in pieces] == [PieceKind.PSQL, PieceKind.STATEMENT, PieceKind.PSQL]
    assert pieces[1].text == "select '\n\\not one\n'"


@pytest.mark.parametrize(
    ("up", "down"),
    [("-- +goose Up", "-- +goose Down"), ("-- +migrate Up", "-- +migrate Down"), ("-- migrate:up", "--migrate:down")],
)
def test_down_migration_is_one_skipped_piece(up: str, down: str):
    pieces = cut(f"{up}\nselect 1;\n{down}\nselect 2;\nselect 3;\n{up}\nselect 4;\n{down}\n-- nothing\n")
    assert pieces == [
        Piece("select 1", 2),
        Piece("select 2;\nselect 3;", 4, PieceKind.WAY_BACK),
        Piece("select 4", 7),
    ]


def test_rows_follow_a_copy():
    pieces = cut("select 1;\ncopy t (a, b) from stdin;\n1\tx;y\n2\t\\N\n\\.\nselect 2;\n")
    assert pieces == [
        Piece("select 1", 1),
        Piece("copy t (a, b) from stdin", 2, rows="1\tx;y\n2\t\\N\n"),
        Piece("select 2", 6),
    ]


def test_a_copy_without_an_end_takes_the_rest():
    assert cut("copy t from stdin;\n1\n2")[0].rows == "1\n2\n"


def test_unreadable_text_is_reported():
    (piece,) = cut("select 'never ends;\nselect 2;")
    assert piece.kind is PieceKind.UNREADABLE
    assert "syntax error" in piece.problem


def test_comments_alone_are_nothing():
    assert cut("-- nothing\n/* here */\n;;\n") == []
