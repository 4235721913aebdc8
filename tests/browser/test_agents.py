"""The Agents page in a browser: an instruction, a command stopped in its first step, one run to its
end, and what stands beside them."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import objections
from tests.browser.chromium import PHONE, Complaints, go, load_again
from tests.browser.conftest import OpenPage
from tests.browser.narrow import sideways
from tests.browser.product import Product
from tests.stand_ins.openai_scripts import Script, end, say
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.agents import command_text, make_agent

NAME = "lighthouse_keeper"
CONFIG = '[codeinfo]\nprovider = "openai"\nmodel = "keeper"\ntools = ["VectorSearch"]\n'
STEPS = ("Which ships are there?", "Where is each of them?")


@pytest.fixture(scope="module")
def keeper(product: Product) -> str:
    """The name of an agent with a command of two steps."""
    home = product.data.parent / "agents"
    if not (home / NAME).exists():
        make_agent(
            home,
            NAME,
            CONFIG,
            prompt="Keep watch.",
            description="Watches *ships*.",
            commands={"watch_ships": command_text(*STEPS), "old_watch": "{}"},
        )
    return NAME


@pytest.fixture
def model(stand_in: OpenAIStandIn) -> Iterator[OpenAIStandIn]:
    stand_in.scripts["keeper"] = Script([[*say("All is calm at sea tonight."), *end()]])
    yield stand_in
    stand_in.release()
    stand_in.scripts.clear()


def execute(page: Page) -> None:
    page.locator("#command").select_option(label="watch ships")
    page.get_by_role("button", name="Execute command").click()


def chip(page: Page, number: int) -> Locator:
    return page.locator("#turns > .turn").nth(number).locator("[data-chip]")


def test_an_instruction_is_made_of_a_prompt(open_page: OpenPage, keeper: str) -> None:
    page = open_page(f"/agents?a={keeper}")
    instruction = page.get_by_label("Instruction")
    options = page.get_by_role("listbox", name="Prompts").get_by_role("option")
    instruction.press_sequentially("/tests")
    expect(options.first).to_contain_text("Find the tests")
    assert objections(page) == []
    instruction.press("Enter")
    expect(instruction).to_have_value(re.compile("^Which tests cover this"))
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.get_by_role("button", name="Prompts", exact=True).click()
    options.filter(has_text="Edit prompts").click()
    expect(page.get_by_role("dialog", name="Prompts")).to_contain_text("Start with one of these")
    expect(page.locator("#turns > .turn")).to_have_count(0)
    assert sideways(page) == 0


def test_an_agent_is_read_before_it_is_run(open_page: OpenPage, keeper: str) -> None:
    page = open_page(f"/agents?a={keeper}")
    expect(page.locator(".agent-intro em")).to_have_text("ships")
    expect(page.locator(".rights")).to_contain_text("every ingested repository")
    expect(page.locator(".rights")).to_contain_text("cannot write, run programs")
    run = page.get_by_role("button", name="Execute command")
    expect(run).to_be_disabled()
    page.locator("#command").select_option(label="watch ships")
    expect(page.locator("#command-about")).to_have_text("Looks twice.")
    expect(run).to_be_enabled()
    expect(page.locator("#command option", has_text="Invalid command file")).to_be_disabled()
    page.locator("#agent").select_option("code_tour")
    expect(page).to_have_url(re.compile(r"/agents\?a=code_tour$"))
    expect(page.locator("#agent-name")).to_have_text("code_tour")


def test_a_command_is_stopped_in_its_first_step_and_another_runs_to_its_end(
    open_page: OpenPage, keeper: str, model: OpenAIStandIn
) -> None:
    page = open_page(f"/agents?a={keeper}")
    page.locator("#message").fill("a draft")
    model.hold()
    execute(page)
    expect(chip(page, 0)).to_have_text("Processing")
    expect(page.get_by_role("button", name="Execute command")).to_be_disabled()
    page.get_by_role("button", name="Stop").click()
    expect(chip(page, 0)).to_have_text("Stopped")
    model.release()
    expect(page.locator("#turns > .turn")).to_have_count(1)
    expect(page.locator("#turns > .turn")).to_contain_text("Step 1 of 2")
    expect(page.locator("#message")).to_have_value("a draft")
    expect(page.get_by_role("button", name="Execute command")).to_be_enabled()
    execute(page)
    expect(chip(page, 2)).to_have_text("Complete")
    turns = page.locator("#turns > .turn")
    for number, step in ((1, 1), (2, 2)):
        expect(turns.nth(number)).to_contain_text(f"Step {step} of 2")
        expect(turns.nth(number)).to_contain_text("All is calm at sea tonight.")
    load_again(page)
    expect(turns.locator("[data-question]")).to_have_text([STEPS[0], *STEPS])


def test_another_provider_is_chosen_and_stays(open_page: OpenPage, keeper: str) -> None:
    page = open_page(f"/agents?a={keeper}")
    provider, model = page.get_by_label("Provider"), page.get_by_label("Model")
    expect(provider).to_have_value("openai")
    expect(model).to_have_value("keeper")
    provider.select_option("builtin")
    expect(model).to_have_value("search")
    page.locator("#message").fill("Which ships are there?")
    page.locator("#message").press("Enter")
    expect(chip(page, 0)).to_have_text("Complete")
    expect(provider).to_be_disabled()
    load_again(page)
    expect(provider).to_have_value("builtin")
    expect(provider).to_be_disabled()


def test_an_instruction_is_answered_and_not_listed_in_the_chat(
    open_page: OpenPage, keeper: str, model: OpenAIStandIn
) -> None:
    page = open_page(f"/agents?a={keeper}")
    page.locator("#message").fill("Is there fog tonight?")
    page.locator("#message").press("Enter")
    expect(chip(page, 0)).to_have_text("Complete")
    expect(page).to_have_url(re.compile(rf"/agents\?a={keeper}&c=[\w-]{{36}}$"))
    expect(page.locator("#convos")).to_contain_text("Is there fog tonight?")
    page.get_by_role("link", name="New conversation").first.click()
    expect(page.locator("#turns > .turn")).to_have_count(0)
    expect(page.locator("#agent-name")).to_have_text(keeper)
    go(page, "/chat")
    expect(page.locator("#convos")).not_to_contain_text("Is there fog tonight?")


# A socket that never opens: the tab does not hear of what others do.
DEAF = "window.WebSocket = function () { return { addEventListener() {}, close() {} }; };"


def test_a_second_tab_shows_the_run_of_the_first(
    open_page: OpenPage, keeper: str, model: OpenAIStandIn, complaints: Complaints
) -> None:
    complaints.expected.append("status of 409")
    first = open_page(f"/agents?a={keeper}")
    conversation = first.locator("#composer [name=c]").input_value()
    second = open_page(f"/agents?a={keeper}&c={conversation}", size=PHONE, script=DEAF, waits=False)
    model.hold()
    execute(first)
    expect(chip(first, 0)).to_have_text("Processing")
    second.locator("#message").fill("Mine?")
    second.get_by_role("button", name="Send").click()
    expect(second.locator("#problem")).to_contain_text("in progress in another tab/window")
    expect(second.locator("#message")).to_have_value("Mine?")
    model.release()
    expect(chip(first, 1)).to_have_text("Complete")
