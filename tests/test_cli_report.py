"""`mxc report`: one page, whole in itself, with what other commands report."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from commands import command
from pages import CHROMIUM, Page, browse, chromium

import mxc as mx
from mxc.cli.main import BAD_FILE, FAILED, OK, UNSUPPORTED, USAGE, main
from mxc.visualization import page as html
from mxc.visualization.histogram import histogram_svg

SECTIONS = ["summary", "layers", "graph", "memory", "profile", "verification", "benchmark"]
REPORT = ["report", "net-symbol.json", "--shape", "data=2,1,8,8", "--seconds", "0.01", "-o", "net.html"]
TESTS = Path(__file__).parent


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with a model of awkward names."""
    monkeypatch.chdir(tmp_path)
    data = mx.sym.Variable("data")
    net = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, name="<b>conv</b>")
    net = mx.sym.Activation(net, act_type="relu", name='relu"1"&2')
    net = mx.sym.FullyConnected(net, num_hidden=5, name="fc")
    mx.sym.SoftmaxOutput(net, name="softmax").save("net-symbol.json")
    return tmp_path


def made(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = OK) -> tuple[dict[str, Any], Page]:
    """The data of a report, and its page."""
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out), Page(Path("net.html").read_text())


def assert_whole(page: Page) -> None:
    """It is well formed, needs nothing from elsewhere, and what it points to is in it."""
    assert page.faults == [] and page.elsewhere() == []
    identifiers = page.values("id")
    assert len({*identifiers}) == len(identifiers)
    assert {value[1:] for value in page.values("href")} <= {*identifiers}
    assert {each for value in page.values("marker-end") for each in re.findall(r"#(\w+)", value)} <= {*identifiers}
    assert list(page.sections) == SECTIONS == [value[1:] for tag, name, value in page.attributes
                                               if tag == "a" and name == "href"]


def test_a_page_is_whole(capsys: pytest.CaptureFixture[str]):
    data, page = made(REPORT, capsys)
    assert_whole(page)
    assert page.tags["b"] == 0, "names are words"
    sections = {name: re.sub(r"\s+", " ", text) for name, text in page.sections.items()}
    for name in ("<b>conv</b>", 'relu"1"&2', "fc", "softmax"):
        assert name in sections["layers"], name
    times = data["benchmark"]["milliseconds"]
    assert f"{times['p50']:,.3f} ms" in sections["summary"] and "net-symbol.json" in sections["summary"]
    assert "The parameters are made up" in sections["summary"] and mx.VERSION in sections["summary"]
    for digest in ("model", "kernels"):
        assert data["benchmark"]["digests"][digest] in sections["summary"]
    assert all(f"{times[name]:.3f} ms" in sections["benchmark"] for name in ("min", "p90", "mean"))
    assert f"{data['layers']['totals']['flops']:,}" in sections["layers"]
    assert all(f"{row['us']:,.1f}" in sections["profile"] for row in data["profile"]["kernels"])
    (output,) = data["verification"]["outputs"]
    assert f"{output['max_abs']:.2e}" in sections["verification"] and "ok" in sections["verification"]
    assert "Convolution 3x3, 4" in sections["graph"] and "2x4x6x6" in sections["graph"]
    assert f"{data['memory']['buffers']} buffers" in sections["memory"]
    assert len(page.values("viewbox")) >= 6, "three pictures, and each again for paper"


def test_what_other_commands_report(capsys: pytest.CaptureFixture[str]):
    data, _ = made(REPORT, capsys)
    common = ["net-symbol.json", "--shape", "data=2,1,8,8", "--json"]
    for name, arguments in {"layers": ["inspect"], "verification": ["verify"]}.items():
        assert main([*arguments, *common]) == OK
        assert data[name] == json.loads(capsys.readouterr().out), name
    assert main(["inspect", "net-symbol.json", "--json"]) == OK
    assert data["overview"] == json.loads(capsys.readouterr().out)
    for name in ("profile", "benchmark"):
        assert main([{"benchmark": "bench"}.get(name, name), *common, "--iterations", "5"]) == OK
        other = json.loads(capsys.readouterr().out)
        assert data[name].keys() == other.keys() and data[name]["parameters"] == other["parameters"]
    assert data["benchmark"]["digests"] == other["digests"]


def test_an_artifact(capsys: pytest.CaptureFixture[str]):
    networks.perceptron().save("net-symbol.json")
    shapes = ["--shape", "data=2,64", "--shape", "data=5,64"]
    assert main(["compile", "net-symbol.json", *shapes, "-o", "net.mxc"]) == OK
    capsys.readouterr()
    arguments = ["report", "net.mxc", "--shape", "data=5,64", "--seconds", "0.01", "-o", "net.html"]
    data, page = made(arguments, capsys)
    assert_whole(page)
    assert data["benchmark"]["inputs"]["data"]["shape"] == [5, 64] and data["benchmark"]["parameters"] == "made up"
    assert len(data["overview"]["plans"]) == 2 and "data=2x64" in page.sections["summary"]
    assert "runs here" in page.sections["summary"]


def test_parameters_and_inputs_that_are_given(capsys: pytest.CaptureFixture[str]):
    rng = np.random.default_rng(0)
    shapes = {"<b>conv</b>_weight": (4, 1, 3, 3), "<b>conv</b>_bias": (4,), "fc_weight": (5, 144), "fc_bias": (5,)}
    mx.nd.save("net-0003.params", {f"arg:{name}": mx.nd.array(rng.normal(size=shape))
                                   for name, shape in shapes.items()})
    np.save("x.npy", rng.normal(size=(2, 1, 8, 8)).astype(np.float32))
    data, page = made([*REPORT, "--input", "data=@x.npy"], capsys)
    assert data["benchmark"]["parameters"] == "net-0003.params" and "made up" not in page.sections["summary"]
    assert data["benchmark"]["digests"]["parameters"] in page.sections["summary"]


def test_a_wrong_output_is_told():
    fault = f"sys.path.insert(0, {str(TESTS)!r})\nimport planted\nplanted.plant('relu\"1\"&2', {{0.0: 0.05}})"
    done = command(*REPORT, program=fault, MXC_CACHE_DIR="")
    assert (done.returncode, done.stderr) == (FAILED, "") and "outputs WRONG" in done.stdout
    page = Page(Path("net.html").read_text())
    assert_whole(page)
    assert "WRONG" in page.sections["verification"] and "mxc verify --nodes" in page.sections["verification"]
    assert "note bad" in page.values("class")


REFUSED = {
    "another ending": (USAGE, ["net-symbol.json", "-o", "net.txt"], "--output net.txt: expected a name that ends"),
    "no folder": (BAD_FILE, ["net-symbol.json", "-o", "none/net.html"], "none/net.html: cannot be written"),
    "two things to standard output": (USAGE, ["net-symbol.json", "-o", "-", "--json"], "cannot both go to standard"),
    "what can be read once": (USAGE, ["/dev/null", "-o", "net.html"], "/dev/null: expected a file, which is read"),
    "no shape": (USAGE, ["net-symbol.json", "-o", "net.html"], "the shape of data is not known"),
    "unknown operators": (UNSUPPORTED, ["odd-symbol.json", "--shape", "data=1", "-o", "net.html"], "Oddity"),
}


@pytest.mark.parametrize(("code", "arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(code: int, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    Path("odd-symbol.json").write_text(Path("net-symbol.json").read_text().replace('"Convolution"', '"Oddity"'))
    assert main(["report", *arguments]) == code
    printed = capsys.readouterr()
    assert printed.out == "" and text in printed.err and not Path("net.html").exists()


def test_standard_output(capsys: pytest.CaptureFixture[str]):
    assert main([*REPORT[:-1], "-"]) == OK
    assert_whole(Page(capsys.readouterr().out))


@pytest.mark.parametrize(("size", "scale", "count"), [
    ((300, 200), 1.0, 1), ((600, 4000), 1.0, 5), ((800, 700), 0.8625, 1), ((1600, 700), 0.5625, 1),
    ((5000, 3000), None, None), ((1500, 1400), None, None)])
def test_pictures_on_paper(size: tuple[int, int], scale: float | None, count: int | None):
    """The pieces together are the whole picture; where that is too wide to be read, it comes as a whole first."""
    width, height = size
    svg = (f'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
           f'<rect width="100%" height="100%"/><rect x="0" y="0" width="{width}" height="{height}"/></svg>\n')
    text = html.figure("picture", svg, "a picture")
    found = [tuple(map(float, each)) for each in re.findall(
        r'viewBox="([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+)" width="([\d.]+)"', text)]
    if count is None:
        assert found.pop(0)[:4] == (0, 0, width, height)
    else:
        assert len(found) == count
    for _, _, across, _, printed in found:
        assert printed / across == pytest.approx(scale) if scale else printed / across > html.LEAST
    covered = np.zeros((height // 10, width // 10))
    for x, y, across, down, _ in found:
        covered[round(y / 10):round((y + down) / 10), round(x / 10):round((x + across) / 10)] += 1
    assert covered.min() >= 1 and "<?xml" not in text


def test_a_histogram_counts_every_run():
    times = [1.0, 1.1, 1.1, 2.0, 50.0]
    svg = histogram_svg(times, {"p50": 1.1, "p90": 2.0}, "ms")
    assert sum(int(count) for count in re.findall(r"<title>(\d+) of", svg)) == 4 and "1 took longer, up to 50" in svg
    assert histogram_svg([3.0], {"p50": 3.0}, "ms").count("<title>") == 1


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_in_a_browser(width: int, folder: Path):
    """Nothing sticks out of the page, no letters are tiny, and the bar of links stays in sight."""
    networks.cifar_resnet20().save("net-symbol.json")
    assert main([*REPORT[:3], "data=1,3,32,32", *REPORT[4:]]) == OK
    found = browse(folder / "net.html", width, """{
        width: innerWidth, page: document.documentElement.scrollWidth,
        small: [...document.querySelectorAll('p, dd, td, th, h1, h2, a, figcaption')].map(
            each => parseFloat(getComputedStyle(each).fontSize)).reduce((a, b) => Math.min(a, b)),
        pictures: [...document.querySelectorAll('figure .scroll > svg')].map(each => each.clientWidth),
        pieces: [...document.querySelectorAll('.pieces')].map(each => getComputedStyle(each).display),
        wide: [...document.querySelectorAll('main > section > *')].filter(
            each => each.getBoundingClientRect().right > innerWidth + 1).length,
        links: getComputedStyle(document.querySelector('nav')).position}""", folder)
    assert found["width"] == width and found["page"] == width and found["wide"] == 0
    assert found["small"] >= 11 and found["links"] == "sticky"
    assert len(found["pictures"]) == 3 and min(found["pictures"]) > 250 and {*found["pieces"]} == {"none"}


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_on_paper(folder: Path):
    assert main(REPORT) == OK
    chromium(folder, "--no-pdf-header-footer", f"--print-to-pdf={folder / 'net.pdf'}", (folder / "net.html").as_uri())
    content = (folder / "net.pdf").read_bytes()
    assert content.startswith(b"%PDF") and 3 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 12
