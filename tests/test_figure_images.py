"""Panels of pictures: what can be drawn, where each pixel stands and in which grey, and what is refused."""

import re
import xml.etree.ElementTree as ElementTree

import msgspec
import numpy as np
import pytest
from builders import FIGURE, changed
from test_figures import SVG, drawn, texts

from reproduce import figures
from reproduce.figure_data import LARGEST_SIDE, MOST_PIXELS, FigureData, Heatmap, Images, Number

# One row of two pictures, two pixels high and three wide.
FIRST: list[list[Number]] = [[0, 10, 0], [0, 0, 5]]
SECOND: list[list[Number]] = [[10, 10, 10], [0, 5, 0]]
IMAGES = Images([[FIRST, SECOND]], ["bar"], ["picture", "view"], 0, 10, "grey level", "seen as", "kind", "Pictures")


def of_one_size(count: int, height: int, width: int) -> Images:
    """`count` black pictures in a row."""
    pictures: list[list[list[Number]]] = [[[0] * width for _ in range(height)] for _ in range(count)]
    return Images([pictures], ["r"], [str(n) for n in range(count)], 0, 1, "", "", "")


def rectangles(svg: str) -> list[tuple[float, float, float, float, str]]:
    """Left, top, right, bottom and colour of all that is painted of pictures, in the order of painting."""
    found = []
    for node in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        style = node.get("style", "")
        if "stroke-width: 0.25" not in style:
            continue
        colour = re.findall(r"stroke: (#\w+)", style)[0]
        for outline in re.findall(r"M([^Mz]+)z", node.get("d", "")):
            numbers = [float(number) for number in re.findall(r"[\d.]+", outline)]
            x, y = numbers[::2], numbers[1::2]
            found.append((min(x), min(y), max(x), max(y), colour))
    return found


def greys_of(svg: str, panel: Images) -> dict[tuple[int, int, int, int], str | None]:
    """The colour one sees in the middle of each pixel, by row, column, line and place; None for paper."""
    painted = rectangles(svg)
    left, top = min(x for x, *_ in painted), min(y for _, y, *_ in painted)
    lines, pixels = len(panel.values[0][0]), len(panel.values[0][0][0])
    # The side of a pixel, from the width of all pictures and the gaps of one pixel between them.
    side = (max(each[2] for each in painted) - left) / (len(panel.columns) * (pixels + 1) - 1)
    seen = {}
    for row, column, line, place in np.ndindex(len(panel.rows), len(panel.columns), lines + 1, pixels + 1):
        x = left + (column * (pixels + 1) + place + 0.5) * side
        y = top + (row * (lines + 1) + line + 0.5) * side
        here = [colour for x0, y0, x1, y1, colour in painted if x0 < x < x1 and y0 < y < y1]
        seen[row, column, line, place] = here[-1] if here else None
    return seen


def test_twice_drawn_is_byte_equal_and_no_bitmap():
    svg = drawn(IMAGES)
    assert svg == drawn(IMAGES)
    assert "<image" not in svg and "base64" not in svg


def test_captions_unit_and_title_are_drawn():
    found = texts(drawn(IMAGES))
    expected = ("bar", "picture", "view", "grey level", "seen as", "kind", "Pictures")
    assert [text for text in expected if text not in found] == []


def test_every_pixel_stands_where_it_belongs_in_its_grey():
    panel = Images([[FIRST, SECOND], [SECOND, FIRST]], ["a", "b"], ["c", "d"], 0, 10, "", "", "")
    for (row, column, line, place), colour in greys_of(drawn(panel), panel).items():
        if line == 2 or place == 3:
            assert colour is None  # a pixel of paper between pictures
            continue
        value = int((FIRST, SECOND)[(row + column) % 2][line][place])
        assert colour is not None
        red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
        assert red == green == blue
        low, high = {0: (0, 0), 5: (120, 135), 10: (255, 255)}[value]
        assert low <= red <= high


def test_pixels_are_square():
    for panel in (IMAGES, of_one_size(1, 2, 5), of_one_size(3, 7, 2)):
        left, top, right, bottom, _ = rectangles(drawn(panel))[0]
        height, width = len(panel.values[0][0]), len(panel.values[0][0][0])
        assert (right - left) / width == pytest.approx((bottom - top) / height, rel=1e-4)


def test_the_grey_scale_is_common_and_is_the_one_that_is_given():
    # The same number has the same grey in every picture, whatever else there is.
    alone = Images([[[[5]]]], ["r"], ["c"], 0, 10, "", "", "")
    seen = greys_of(drawn(IMAGES), IMAGES)
    middle = seen[0, 0, 1, 2]
    assert middle == seen[0, 1, 1, 1] and middle not in ("#000000", "#ffffff")
    assert [colour for *_, colour in rectangles(drawn(alone))] == [middle]
    assert [colour for *_, colour in rectangles(drawn(changed(alone, white=5)))] == ["#ffffff"]
    assert [colour for *_, colour in rectangles(drawn(changed(alone, black=5)))] == ["#000000"]


@pytest.mark.parametrize(
    "panel",
    [
        Images([[[[0.25]]]], ["r"], ["c"], -0.5, 1.5, "", "", ""),
        Images([[FIRST], [SECOND]], ["r", "s"], ["c"], -1e300, 1e300, "", "", ""),
        Images(
            [[FIRST, SECOND]],
            [
                "$x_1$",
            ][:1],
            ["a < b", "$5"],
            0,
            10,
            "τ & $",
            '"',
            "-1",
            "<b>",
        ),
        of_one_size(2, LARGEST_SIDE, LARGEST_SIDE),
        of_one_size(40, 1, LARGEST_SIDE),
    ],
)
def test_every_panel_of_pictures_draws(panel):
    # Warnings are errors here.
    svg = drawn(panel)
    assert [text for text in panel.rows + panel.columns if text not in texts(svg)] == []
    assert len(rectangles(svg)) >= len(panel.rows) * len(panel.columns)


def test_no_picture_leaves_its_panel():
    for panel in (IMAGES, of_one_size(40, 1, LARGEST_SIDE), of_one_size(2, LARGEST_SIDE, 1), of_one_size(1, 1, 1)):
        painted = rectangles(drawn(panel))
        assert min(each[0] for each in painted) >= 72 * figures.LEFT - 0.01
        assert min(each[1] for each in painted) >= 72 * figures.TOP - 0.01
        assert max(each[2] for each in painted) <= 72 * (figures.PANEL_WIDTH - figures.COLOUR_BAR) + 0.01
        assert max(each[3] for each in painted) <= 72 * (figures.PANEL_HEIGHT - figures.BOTTOM) + 0.01


def test_beside_other_panels():
    svg = drawn(IMAGES, *FIGURE.panels)
    assert rectangles(svg) == rectangles(drawn(IMAGES, *FIGURE.panels[1:])) and "training loss" in texts(svg)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": []}, "at least one row"),
        ({"columns": []}, "at least one row and one column"),
        ({"values": []}, "not 1 rows of 2 columns"),
        ({"values": [[FIRST]]}, "not 1 rows of 2 columns"),
        ({"rows": ["a", "b"]}, "not 2 rows of 2 columns"),
        ({"values": [[FIRST, FIRST[:1]]]}, "2 lines of 3 pixels"),
        ({"values": [[FIRST, [[0, 0, 0], [0, 0]]]]}, "2 lines of 3 pixels"),
        ({"values": [[FIRST, []]]}, "2 lines of 3 pixels"),
        ({"values": [[[], []]]}, "0 by 0 pixels"),
        ({"values": [[[[]], [[]]]]}, "1 by 0 pixels"),
        ({"values": [[FIRST, [[0, 0, 11], [0, 0, 0]]]]}, "grey of 11.0 is outside the scale from 0 to 10"),
        ({"values": [[FIRST, [[0, 0, -0.5], [0, 0, 0]]]]}, "grey of -0.5 is outside"),
        ({"values": [[FIRST, [[0, 0, "NaN"], [0, 0, 0]]]]}, "not finite"),
        ({"values": [[FIRST, [[0, 0, "Infinity"], [0, 0, 0]]]]}, "not finite"),
        ({"values": [[FIRST, [[0, 0, float("nan")], [0, 0, 0]]]]}, "not finite"),
        ({"white": "Infinity"}, "not finite"),
        ({"black": "NaN"}, "not finite"),
        ({"white": 0}, "black 0 must lie below white 0"),
    ],
)
def test_what_cannot_be_drawn_cannot_be_made(changes, said):
    with pytest.raises(ValueError, match=said):
        changed(IMAGES, **changes)


def test_too_many_pixels_are_refused():
    assert of_one_size(MOST_PIXELS // LARGEST_SIDE**2, LARGEST_SIDE, LARGEST_SIDE)
    with pytest.raises(ValueError, match=f"at most {MOST_PIXELS}"):
        of_one_size(MOST_PIXELS // LARGEST_SIDE**2 + 1, LARGEST_SIDE, LARGEST_SIDE)
    with pytest.raises(ValueError, match=f"expected 1 to {LARGEST_SIDE} a side"):
        of_one_size(1, 1, LARGEST_SIDE + 1)


def test_data_go_to_json_and_back():
    data = FigureData([IMAGES], "Two pictures.")
    content = msgspec.json.encode(data)
    assert b'"kind":"images"' in content
    assert msgspec.json.decode(content, type=FigureData) == data
    for old, new in ((b',"view"]', b"]"), (b'"white":10', b'"white":1'), (b'"unit"', b'"units"')):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(content.replace(old, new), type=FigureData)


# The numbers in the cells of a heat map


def contrast(background: str, text: str) -> float:
    """Contrast ratio of two colours (WCAG 2), from its definition."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(background), luminance(text)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("diverging", [True, False])
def test_every_number_stands_out_from_its_cell(diverging):
    values: list[list[Number]] = [[n / 8 - 1 for n in range(17)]]
    svg = drawn(Heatmap(values, ["r"], [str(n) for n in range(17)], "", "", "", diverging=diverging))
    nodes = list(ElementTree.fromstring(svg).iter(f"{SVG}g"))
    (mesh,) = (node for node in nodes if node.get("id") == "QuadMesh_1")
    cells = re.findall(r"fill: (#\w+)", ElementTree.tostring(mesh, encoding="unicode"))
    # In the order of the cells. Those of the colour bar have 8 pixels.
    written = [
        "#ffffff" if "fill: #ffffff" in node.get("style", "") else "#000000"
        for node in ElementTree.fromstring(svg).iter(f"{SVG}text")
        if re.fullmatch(r"\N{MINUS SIGN}?\d\.\d\d", "".join(node.itertext())) and "9px" in node.get("style", "")
    ]
    assert len(cells) == 17
    for cell, text in zip(cells, written, strict=True):
        other = "#000000" if text == "#ffffff" else "#ffffff"
        assert contrast(cell, text) >= max(4.5, contrast(cell, other))
    assert set(written) == {"#000000", "#ffffff"}


def test_numbers_are_smaller_in_a_large_table():
    sizes = {}
    for side in (6, 7):
        values: list[list[Number]] = [[0.111] * side for _ in range(side)]
        names = [str(n) for n in range(side)]
        nodes = ElementTree.fromstring(drawn(Heatmap(values, names, names, "", "", ""))).iter(f"{SVG}text")
        styles = [node.get("style", "") for node in nodes if "".join(node.itertext()) == "0.11"]
        assert len(styles) >= side**2
        sizes[side] = re.findall(r"(\d+)px", styles[0])
    assert sizes == {6: ["9"], 7: ["7"]}
