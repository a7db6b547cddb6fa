"""The console in a real browser: every page, by mouse and keyboard, in both colour schemes, on a phone and a desk."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.patience import PATIENCE_S
from tests.support.serving import HOST, Served, serving

CHROMIUM = shutil.which("chromium")
# Without them the browser asks for addresses of its maker.
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
QUIETER = ("--disable-component-update", "--disable-sync")
PASSWORDS = {"seachange": "root secret"}
SETUP = (
    "create table orders (id bigint primary key, customer text not null, total numeric(12,2))",
    "insert into orders select i, 'customer ' || i % 100, i % 1000 from generate_series(1, 20000) i",
    "alter table orders add column note text",
)
# A folder for pictures of the pages, as docs/images has them.
PICTURES = os.environ.get("SEACHANGE_PICTURES")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian's package chromium)")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served"), PASSWORDS) as served:
        with psycopg.connect(served.url, autocommit=True, password=PASSWORDS["seachange"]) as connection:
            for statement in SETUP:
                connection.execute(statement.encode())
            connection.execute("set seachange.publish = 'manual'")
            connection.execute("create index orders_customer on orders (customer)")
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *QUIETER])
        yield browser
        browser.close()


@pytest.fixture(params=[("light", 1440), ("dark", 390)], ids=["desk", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, served: Served) -> Iterator[Page]:
    scheme, width = request.param
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    problems: list[str] = []
    elsewhere: list[str] = []
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.on("request", lambda sent: elsewhere.append(sent.url) if HOST not in sent.url else None)
    page.goto(f"http://{HOST}:{served.http_port}/")
    page.get_by_label("Role").fill("seachange")
    page.get_by_label("Password").fill("root secret")
    page.get_by_label("Password").press("Enter")
    expect(page.get_by_role("heading", name="Schema changes", level=1)).to_be_visible(timeout=PATIENCE_S * 1000)
    yield page
    assert problems == []
    assert elsewhere == [], "the page uses this server alone"
    context.close()


def look(page: Page, name: str) -> None:
    """No page is wider than the screen."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"
    if PICTURES is not None:
        scheme = "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
        width = page.evaluate("innerWidth")
        page.screenshot(path=Path(PICTURES) / f"console-{name}-{width}-{scheme}.png")


def test_every_page_shows_what_it_is_for(page: Page):
    expect(page.get_by_text("create index orders_customer")).to_be_visible()
    expect(page.get_by_role("button", name="Publish job")).to_be_visible()
    expect(page.get_by_role("img", name="Statements per second")).to_be_visible()
    if PICTURES is not None:
        # Enough samples for a picture of the load.
        page.wait_for_timeout(20_000)
    look(page, "changes")
    page.get_by_role("link", name="Tables").click()
    page.get_by_role("link", name="orders").click()
    expect(page.get_by_role("cell", name="customer", exact=True).first).to_be_visible()
    look(page, "tables")
    page.get_by_role("link", name="Nodes and sessions").click()
    expect(page.get_by_role("heading", name="Leases")).to_be_visible()
    look(page, "nodes")
    page.get_by_role("link", name="Load").click()
    expect(page.get_by_role("img", name="Statements per second")).to_be_visible()
    expect(page.get_by_role("region", name="Statements that took most time")).to_be_visible()
    look(page, "load")


def test_who_blocks_whom_is_shown_as_a_tree(page: Page, served: Served):
    password = PASSWORDS["seachange"]
    with (
        psycopg.connect(served.url, password=password) as holder,
        psycopg.connect(served.url, password=password) as waiter,
    ):
        holder.execute("select * from orders where id = 1 for update")
        thread = threading.Thread(target=waiter.execute, args=("update orders set note = '<b>x' where id = 1",))
        thread.start()
        page.get_by_role("link", name="Nodes and sessions").click()
        tree = page.get_by_role("list", name="Who blocks whom")
        expect(tree.get_by_text(f"{holder.info.backend_pid} seachange")).to_be_visible()
        expect(tree.get_by_role("list").get_by_text(f"{waiter.info.backend_pid} seachange")).to_be_visible()
        look(page, "waits")
        holder.rollback()
        thread.join(PATIENCE_S)


def test_a_change_is_planned_confirmed_and_run_by_keyboard(page: Page, served: Served):
    width = page.evaluate("innerWidth")
    page.get_by_role("link", name="Plan a change").press("Enter")
    page.get_by_label("Schema change").fill(f"create table by_keyboard_{width} (id int)")
    page.get_by_role("button", name="Explain").press("Enter")
    expect(page.get_by_role("heading", name="Cost")).to_be_visible()
    look(page, "plan")
    page.get_by_role("button", name="Run this change").press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"by_keyboard_{width}")
    dialog.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("CREATE TABLE")
    page.get_by_role("link", name="Tables").click()
    expect(page.get_by_role("link", name=f"by_keyboard_{width}")).to_be_visible()


def test_nothing_runs_without_confirmation(page: Page):
    page.get_by_role("link", name="Plan a change").click()
    page.get_by_label("Schema change").fill("drop table orders")
    page.get_by_role("button", name="Explain").click()
    page.get_by_role("button", name="Run this change").click()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Tables").click()
    expect(page.get_by_role("link", name="orders", exact=True)).to_be_visible()


def test_an_error_is_shown_where_it_belongs(page: Page):
    page.get_by_role("link", name="Plan a change").click()
    page.get_by_label("Schema change").fill("alter table nosuch add column a int")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("alert")).to_contain_text('42P01: relation "nosuch" does not exist')


def test_what_a_name_contains_is_text(page: Page, served: Served):
    with psycopg.connect(served.url, autocommit=True, password=PASSWORDS["seachange"]) as connection:
        connection.execute("""create table if not exists "<img src=x onerror=alert(1)>" (id int)""")
    page.get_by_role("link", name="Tables").click()
    expect(page.get_by_role("link", name="<img src=x")).to_be_visible()
    assert page.locator("main img:not(svg)").count() == 0


def test_log_out_ends_the_session(page: Page):
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Role")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Role")).to_be_visible()
