"""JPEGs that mxc decodes itself: the pixels are OpenCV's, of the whole and of any part; what it does not take, and
damage, is left to OpenCV."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from instruction_sets import InstructionSet

from mxc.compiler.kernel.ir import RoutineKernel
from mxc.compiler.kernel.routines import spec
from mxc.compiler.system import opencv
from mxc.runtime import jpeg

cv2 = pytest.importorskip("cv2")
SAMPLINGS = {"4:4:4": 0x111111, "4:2:2": 0x211111, "4:4:0": 0x121111, "4:2:0": 0x221111}


def picture(random: np.random.RandomState, width: int, height: int, detail: int) -> np.ndarray:
    """Colours at random, as smooth as that every `detail`-th pixel is drawn."""
    coarse = random.randint(0, 256, (-(-height // detail), -(-width // detail), 3)).astype(np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def encoded(image: np.ndarray, quality: int = 90, sampling: int = 0x221111, **more: int) -> bytes:
    options = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling]
    options += [each for name, value in more.items() for each in (getattr(cv2, f"IMWRITE_JPEG_{name}"), value)]
    return cv2.imencode(".jpg", image, options)[1].tobytes()


def expected(content: bytes, x: int, y: int, width: int, height: int, mirrored: bool) -> np.ndarray:
    part = opencv.decoded(content, 1, to_rgb=True)[y:y + height, x:x + width]
    return (part[:, ::-1] if mirrored else part).transpose(2, 0, 1)


def part(content: bytes, x: int, y: int, width: int, height: int, mirrored: bool) -> np.ndarray | None:
    """The same by mxc; None where it leaves the picture to OpenCV."""
    head, out = jpeg.head(content), np.empty((3, height, width), np.uint8)
    assert head is not None
    return out if jpeg.decoder().part(content, head, x, y, mirrored, out) else None


def place(random: np.random.RandomState, width: int, height: int) -> tuple[int, int, int, int, bool]:
    """A part by chance."""
    w, h = random.randint(1, width + 1), random.randint(1, height + 1)
    return random.randint(0, width - w + 1), random.randint(0, height - h + 1), w, h, bool(random.randint(2))


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_any_part_has_the_pixels_that_opencv_gives(sampling: str) -> None:
    random = np.random.RandomState(7)
    for quality in (3, 30, 75, 90, 95, 100):
        for optimised in (0, 1):
            width, height = random.randint(16, 150, 2)
            content = encoded(picture(random, width, height, random.randint(1, 9)), quality, SAMPLINGS[sampling],
                              OPTIMIZE=optimised)
            wanted = [(0, 0, width, height, False), *(place(random, width, height) for _ in range(6))]
            for each in wanted:
                found = part(content, *each)
                assert found is not None and (found == expected(content, *each)).all(), (quality, width, height, each)


def test_large_flat_and_pure_pictures() -> None:
    random = np.random.RandomState(8)
    extremes = (np.indices((64, 64)).sum(0) % 2 * 255).astype(np.uint8)
    for image in (picture(random, 700, 500, 3), np.full((48, 40, 3), 255, np.uint8), np.zeros((17, 16, 3), np.uint8),
                  cv2.merge([extremes, 255 - extremes, extremes.T]), np.repeat(np.eye(3, dtype=np.uint8) * 255, 20, 0)[
                      :, None].repeat(40, 1).reshape(60, 40, 3)):
        content = encoded(image, 98)
        each = (0, 0, image.shape[1], image.shape[0], True)
        found = part(content, *each)
        assert found is not None and (found == expected(content, *each)).all()


def exif(content: bytes) -> bytes:
    """A picture with a note in its head that says it is turned."""
    note = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    return content[:2] + b"\xff\xe1" + (len(note) + 2).to_bytes(2, "big") + note + content[2:]


def test_what_is_left_to_opencv() -> None:
    image = picture(np.random.RandomState(9), 40, 30, 4)
    content = encoded(image)
    assert jpeg.head(content) is not None
    for other in (encoded(image, PROGRESSIVE=1), encoded(image, RST_INTERVAL=1), encoded(image, sampling=0x411111),
                  encoded(image[..., 0]), encoded(image[:15]), encoded(image[:, :15]), exif(content),
                  opencv.encoded(image, 9, ".png"), content[:-2], content[:100], content[:3], b"", b"\xff\xd8\xff\xd9",
                  content[:2] + content[20:],  # without JFIF's mark colours may be others
                  content.replace(b"\xff\xc0", b"\xff\xc9"),  # arithmetic codes
                  content.replace(b"\x08\0\x1e\0\x28", b"\x08\xff\xff\xff\xff")):  # 65,535 pixels to each side
        assert jpeg.head(other) is None


def test_damage_is_seen_or_gives_what_opencv_gives() -> None:
    random = np.random.RandomState(10)
    content = encoded(picture(random, 90, 70, 2), 85)
    each, seen, same = (0, 0, 90, 70, False), 0, 0
    for _ in range(600):
        damaged = bytearray(content)
        for at in random.randint(2, len(content) - 2, random.randint(1, 4)):
            damaged[at] = random.choice([random.randint(256), damaged[at] ^ 1 << random.randint(8)])
        head = jpeg.head(bytes(damaged))
        if head is None or (head.width, head.height) != (90, 70):
            continue
        found = part(bytes(damaged), *each)
        if found is None:
            seen += 1
        else:
            assert (found == expected(bytes(damaged), *each)).all()
            same += 1
    assert seen > 50 and same > 50
    for end in range(len(content) - 60, len(content) - 2, 7):  # cut off, with its end behind
        cut = content[:end] + content[-2:]
        assert part(cut, *each) is None
    found = part(content, *each)  # and nothing is left of all that
    assert found is not None and (found == expected(content, *each)).all()


Run = Callable[[RoutineKernel, Sequence[np.ndarray]], None]


@pytest.fixture
def run_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Has a function run the routines from now on, with the arrays that the decoder gives them."""
    def by(run: Run) -> None:
        def call(self: jpeg.Call, scratch: int = 0, *integers: int) -> None:
            run(jpeg.kernel(self.name, [int(each) for each in integers]), [each.reshape(-1) for each in self.arrays])

        monkeypatch.setattr(jpeg.Call, "__call__", call)
        monkeypatch.setattr(jpeg._decoders, "mine", jpeg.Decoder(), raising=False)

    return by


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_every_instruction_set(sampling: str, instructions: InstructionSet, run_by: Callable[[Run], None]) -> None:
    run_by(instructions.run)
    random = np.random.RandomState(11)
    content = encoded(picture(random, 75, 53, 3), 92, SAMPLINGS[sampling])
    for each in [(0, 0, 75, 53, False), (0, 0, 75, 53, True), (19, 18, 40, 31, True)]:
        found = part(content, *each)
        assert found is not None and (found == expected(content, *each)).all()


def test_the_definition(run_by: Callable[[Run], None]) -> None:
    """The routines as they stand, in Python."""
    run_by(spec.run)
    content = encoded(picture(np.random.RandomState(12), 33, 21, 4), 80)
    for each in ((0, 0, 33, 21, False), (5, 3, 20, 11, True)):
        found = part(content, *each)
        assert found is not None and (found == expected(content, *each)).all()
