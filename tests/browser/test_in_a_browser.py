"""The two sites in a real browser: a study is watched, decided, and downloaded."""

import threading
from datetime import UTC, datetime

import pytest

from common.release.verify import verify
from party import app as party_app
from party.client.dialer import Dialer
from party.ui.inbox import OwnerInbox
from party.ui.site import serving_ui
from tests.harness.issuer import CLIENT, serving_issuer

By = pytest.importorskip("selenium.webdriver.common.by").By
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
Stale = pytest.importorskip("selenium.common.exceptions").StaleElementReferenceException

NASTY = 'health <img src=x onerror="window.hacked=1">'


def wait(browser, condition, seconds=60):
    """Wait for a condition; the page may be drawn anew while it is looked at."""
    waiting = WebDriverWait(browser, seconds, poll_frequency=0.1, ignored_exceptions=[Stale])
    return waiting.until(condition)


def click(browser, selector):
    wait(browser, lambda b: b.find_element(By.CSS_SELECTOR, selector).click() or True)


def text_of(browser, selector):
    return browser.execute_script(
        "return document.querySelector(arguments[0])?.textContent ?? ''", selector
    )


def log_in(browser, address, token):
    browser.get(f"{address}login")
    browser.find_element(By.ID, "token").send_keys(token)
    browser.find_element(By.CSS_SELECTOR, "#login button").click()


def no_complaints(browser):
    """No script failed, and nothing was stopped by the security policy."""
    return [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]


def fits(browser, width):
    """Whether the page and its pictures need no sideways scrolling at that width."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        return browser.execute_script(
            "const width = document.documentElement.clientWidth;"
            "return document.documentElement.scrollWidth <= width && "
            "[...document.querySelectorAll('img')]"
            ".every((each) => each.getBoundingClientRect().right <= width)"
        )
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def badge(browser):
    return text_of(browser, "details.study summary .badge")


def decide_in_the_browser(browser, consortium, study):
    """North's owner reads the review and approves."""
    settings = consortium.party_settings("north")
    address = party_app.address_of(settings, environment={}, software="test")
    with consortium.context("north") as context:
        inbox = OwnerInbox(context, [], dial=Dialer(address, lambda: datetime.now(UTC)).dial)
        inbox.ask()
        with serving_ui(inbox, port=0) as printed:
            browser.get(printed)
            wait(browser, lambda b: NASTY in text_of(b, "td a"))
            assert "token" not in browser.current_url
            assert fits(browser, 360)
            browser.find_element(By.CSS_SELECTOR, "td a").click()
            wait(browser, lambda b: "What leaves the building" in text_of(b, "#leaves"))
            assert "epsilon 3.2" in text_of(browser, "main")
            assert fits(browser, 360)
            button = "form[action$='/approve'] button"
            browser.find_element(By.CSS_SELECTOR, button).click()
            assert context.approvals.decision(study.digest) is None  # the box was not ticked
            browser.find_element(By.ID, "sure").click()
            browser.find_element(By.CSS_SELECTOR, button).click()
            wait(browser, lambda b: "approved by the owner" in text_of(b, "main"))
            assert context.approvals.decision(study.digest).approved
            browser.get(printed.partition("/login")[0])
            wait(browser, lambda b: "chain verified" in text_of(b, "main"))
    assert no_complaints(browser) == []


def test_a_study_is_watched_decided_and_downloaded(browser, make_consortium):
    consortium = make_consortium()
    study = consortium.propose(consortium.study(NASTY))
    consortium.start_curator()
    consortium.join("east")
    consortium.join("south")
    log_in(browser, consortium.dashboard, "wrong")
    wait(browser, lambda b: "That is not the token" in text_of(b, "[role=alert]"))
    browser.get_log("browser")  # the browser notes the refusal
    log_in(browser, consortium.dashboard, consortium.token)
    wait(browser, lambda b: "2 of 3 parties" in text_of(b, "ol.phases"))
    assert browser.execute_script("return document.cookie") == ""
    browser.execute_script("window.notReloaded = true")
    watching = browser.current_window_handle
    browser.switch_to.new_window("tab")
    decide_in_the_browser(browser, consortium, study)
    browser.close()
    browser.switch_to.window(watching)
    consortium.join("north")
    wait(browser, lambda b: "3 of 3 parties" in text_of(b, "ol.phases"))
    wait(browser, lambda b: badge(b) == "done")
    check_the_finished_study(browser, consortium, study)


def picture_of(browser):
    return browser.find_element(By.CSS_SELECTOR, "img.picture")


def check_the_finished_study(browser, consortium, study):
    assert browser.execute_script("return window.notReloaded && !window.hacked")
    assert text_of(browser, "details.study summary").startswith(NASTY)
    phases = text_of(browser, "ol.phases")
    for phase in ("correlations", "initial structure", "structure update", "parameters"):
        assert phase in phases
    assert text_of(browser, "details.study table").count("= 3.2") == 3
    wait(browser, lambda b: picture_of(b).get_property("naturalWidth") > 100)
    assert fits(browser, 360)
    wait(browser, lambda b: b.find_element(By.LINK_TEXT, "Download the release").click() is None)
    wait(browser, lambda b: list(b.downloads.glob("*.zip")))
    (downloaded,) = browser.downloads.glob("*.zip")
    verify(downloaded, unsigned=True).require()
    browser.find_element(By.XPATH, "//button[text()='Log out']").click()
    wait(browser, lambda b: b.current_url.endswith("/login"))
    assert no_complaints(browser) == []


def test_a_study_is_given_up_with_a_confirmed_click(browser, make_consortium):
    consortium = make_consortium(dashboard_actions=True)
    consortium.propose(consortium.study("regional"))
    consortium.start_curator()
    log_in(browser, consortium.dashboard, consortium.token)
    wait(browser, lambda b: badge(b) == "waiting for parties")
    click(browser, "button.danger")
    browser.switch_to.alert.dismiss()
    assert badge(browser) == "waiting for parties"
    click(browser, "button.danger")
    browser.switch_to.alert.accept()
    wait(browser, lambda b: badge(b) == "failed")
    assert "offer a new study" in text_of(browser, ".trouble")
    assert browser.find_elements(By.CSS_SELECTOR, "button.danger") == []
    assert no_complaints(browser) == []


def names_of(browser):
    return [each.text.splitlines()[0] for each in browser.find_elements(By.CSS_SELECTOR, "summary")]


@pytest.mark.slow
def test_an_owner_is_declared_missing_and_the_study_renewed_by_confirmed_clicks(
    browser, make_consortium
):
    consortium = make_consortium(dashboard_actions=True, dashboard_offers=True)
    consortium.decide_by_policy("north")
    consortium.propose(consortium.study("health 2026", method="floor", may_miss=1, colluders=0))
    consortium.start_curator()
    log_in(browser, consortium.dashboard, consortium.token)
    gone = threading.Event()
    south = consortium.join("south", gone)
    wait(browser, lambda b: "1 of 3 parties" in text_of(b, ".phases"))
    gone.set()
    south.join(60)
    for name in ("north", "east"):
        consortium.join(name)
    wait(browser, lambda b: len(b.find_elements(By.CSS_SELECTOR, "button.missing")) == 1)
    click(browser, "button.missing")
    assert "without south, for good?" in browser.switch_to.alert.text
    browser.switch_to.alert.dismiss()
    click(browser, "button.missing")
    browser.switch_to.alert.accept()
    wait(browser, lambda b: badge(b) == "done", 120)
    assert browser.find_elements(By.CSS_SELECTOR, "button.missing") == []
    assert "left" in text_of(browser, "#studies")
    assert all(fits(browser, width) for width in (390, 1280))
    click(browser, "button.renew")
    assert "Offer “health 2027” to north, east, south?" in browser.switch_to.alert.text
    browser.switch_to.alert.accept()
    wait(browser, lambda b: len(names_of(b)) == 2)
    assert names_of(browser)[0].startswith("health 2027")
    assert no_complaints(browser) == []


def test_a_study_that_was_given_up_is_offered_again_without_an_owner(browser, make_consortium):
    consortium = make_consortium(dashboard_actions=True, dashboard_offers=True)
    consortium.propose(consortium.study("regional", method="floor"))
    consortium.start_curator()
    log_in(browser, consortium.dashboard, consortium.token)
    wait(browser, lambda b: badge(b) == "waiting for parties")
    assert browser.find_elements(By.CSS_SELECTOR, "button.reform, button.renew") == []
    click(browser, "button.danger")
    browser.switch_to.alert.accept()
    wait(browser, lambda b: badge(b) == "failed")
    wait(browser, lambda b: b.find_element(By.CSS_SELECTOR, "select").send_keys("south") or True)
    click(browser, "button.reform")
    assert "again without south?" in browser.switch_to.alert.text
    browser.switch_to.alert.accept()
    wait(browser, lambda b: badge(b) == "waiting for parties")
    assert names_of(browser)[0].startswith("regional, without south")
    assert all(fits(browser, width) for width in (390, 1280))
    assert no_complaints(browser) == []


@pytest.mark.slow
def test_the_page_finds_its_way_back_when_the_curator_is_started_again(browser, make_consortium):
    consortium = make_consortium()
    consortium.propose(consortium.study("regional"))
    consortium.start_curator()
    log_in(browser, consortium.dashboard, consortium.token)
    wait(browser, lambda b: badge(b) == "waiting for parties")
    consortium.stop()
    wait(browser, lambda b: "trying again" in text_of(b, "#link"))
    port = consortium.dashboard.rstrip("/").rpartition(":")[2]
    consortium.again(dashboard_listen=f"127.0.0.1:{port}")
    wait(browser, lambda b: b.current_url.endswith("/login"))  # sessions end with the process
    log_in(browser, consortium.dashboard, consortium.token)
    wait(browser, lambda b: badge(b) == "waiting for parties")


def test_an_operator_signs_on_at_an_issuer_of_another_site(browser, make_consortium):
    """A browser keeps SameSite=Strict cookies back from what another site set off."""
    with serving_issuer() as issuer:
        issuer.address = issuer.address.replace("127.0.0.1", "localhost")
        who = {"issuer": issuer.address, "client_id": CLIENT, "groups": "staff"}
        consortium = make_consortium(dashboard_oidc=who)
        consortium.start_curator()
        browser.get(consortium.dashboard)
        click(browser, "a[href='/login/sign-on']")
        wait(browser, lambda b: b.current_url == consortium.dashboard)
        wait(browser, lambda b: "Log out" in text_of(b, "body"))
        issuer.claims = {"groups": ["guests"]}
        browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
        browser.get(f"{consortium.dashboard}login/sign-on")
        wait(browser, lambda b: "not among who may log in" in text_of(b, "[role=alert]"))
