"""Symbol JSON: every spelling and version, and files that are damaged or hostile."""
import copy
import json
from pathlib import Path

import pytest
from golden import symbol_cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mxc as mx
from mxc.compiler.error import ModelFileError, MXNetError, UnsupportedError
from mxc.compiler.graph import json_ir, legacy

GOLDEN = Path(__file__).parent / "golden"

REAL = json.loads((GOLDEN / "symbols.json").read_text())
MODELS = sorted((Path(__file__).parents[2] / "shared" / "models").glob("*-symbol.json"))


def document():
    """A small graph as today's files have it: variables 0-2 of the layer 3 (`f`), 4-7 of the BatchNorm 8 (`b`)."""
    symbol = mx.sym.BatchNorm(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="f"), name="b")
    return json.loads(symbol.tojson())


def without_versions(parsed):
    """The graph with entries of two numbers."""
    parsed = copy.deepcopy(parsed)
    for node in parsed["nodes"]:
        node["inputs"] = [entry[:2] for entry in node["inputs"]]
    parsed["heads"] = [entry[:2] for entry in parsed["heads"]]
    return parsed


@pytest.mark.parametrize("name", symbol_cases.OLD_FILES)
def test_old_files_mean_what_mxnet_understands(name):
    loaded = mx.sym.load_json(json.dumps(symbol_cases.OLD_FILES[name]))
    ours, real = json.loads(loaded.tojson()), REAL["old_files"][name]
    for parsed in (ours, real):
        parsed.pop("node_row_ptr", None)  # counts hidden outputs, and mxc has others in places
    assert without_versions(ours) == without_versions(real)


@pytest.mark.parametrize("spelling", ["attrs", "attr", "param"])
@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("pointers", [False, True])
def test_spellings(spelling, short, pointers):
    parsed = without_versions(document()) if short else document()
    for node in parsed["nodes"]:
        node[spelling] = node.pop("attrs", {})
        node["backward_source_id"] = -1
    if not pointers:
        del parsed["node_row_ptr"]
    assert json.loads(mx.sym.load_json(json.dumps(parsed)).tojson()) == document()


@pytest.mark.parametrize("op, axis, version, kept", [
    ("argmax", "-1", 800, False), ("argmin", "-1", 904, False), ("argmax", "-1", 905, True), ("argmax", "1", 800, True),
    ("topk", "-1", 800, True),
])
def test_axis_of_old_arg_max(op, axis, version, kept):
    record = legacy.Record(op, "a", {"axis": axis, "keepdims": "1"}, [(0, 0)])
    legacy.upgrade_attributes(record, version, None)
    assert record.attrs == {**({"axis": axis} if kept else {}), "keepdims": "1"}


def test_param_and_attr_are_merged():
    parsed = document()
    parsed["nodes"][3]["param"] = parsed["nodes"][3].pop("attrs")
    parsed["nodes"][3]["attr"] = {"__note__": "x"}
    assert mx.sym.load_json(json.dumps(parsed)).attr_dict()["f"] == {"num_hidden": "3", "__note__": "x"}


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name.removesuffix("-symbol.json"))
def test_real_models(path):
    try:
        symbol = mx.sym.load(path)
    except UnsupportedError as error:
        pytest.skip(f"operators that are not in the table: {error}")
    text = symbol.tojson()
    assert mx.sym.load_json(text).tojson() == text
    parsed = json.loads(path.read_text())
    if len(parsed["heads"][0]) == 3:  # written by a version whose files need no new nodes
        assert [(n["op"], n["name"], n["inputs"]) for n in json.loads(text)["nodes"]] == [
            (n["op"], n["name"], n["inputs"]) for n in parsed["nodes"]]


# -- what is refused

@pytest.mark.parametrize("data, reason, offset", [
    (b"", "empty", 0), (b" \n ", "empty", 0), (b"\xef\xbb\xbf{}", "byte order mark", 0),
    (b"\n<!DOCTYPE html><html>", "HTML", 1), (b"\x12\x01\x00\x00\xff\xff", "not UTF-8", 4),
    (b'{"nodes": [{"op": "nu', "cut off", 18), (b"not json", "not a JSON graph", 0),
    (b"[]", "expected an object", None),
    (b"{}", "'nodes' is missing", None), (b'{"nodes": [], "heads": []} tail', "Extra data", 27),
    (b'{"nodes": ' + b"1" * 5000 + b"}", "not a JSON graph", None), (b"[" * 100000, "nested too deeply", None),
])
def test_files_that_are_no_graphs(tmp_path, data, reason, offset):
    path = tmp_path / "broken-symbol.json"
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        mx.sym.load(path)
    assert str(path) in str(caught.value) and reason in str(caught.value)
    assert caught.value.offset == offset


def test_a_file_that_is_not_there(tmp_path):
    for path in (tmp_path / "none.json", tmp_path, "a\0b"):
        with pytest.raises(ModelFileError, match="cannot be read"):
            mx.sym.load(path)


def change(*keys, value):
    """A function that sets document[keys[0]][keys[1]]... to value."""
    def apply(parsed):
        for key in keys[:-1]:
            parsed = parsed[key]
        parsed[keys[-1]] = value
    return apply


@pytest.mark.parametrize("damage, reason", [
    (change("nodes", 3, "inputs", 0, value=[3, 0, 0]), "refers to node 3.*cycle"),
    (change("nodes", 3, "inputs", 0, value=[8, 0, 0]), "refers to node 8.*cycle"),
    (change("nodes", 3, "inputs", 0, value=[99, 0]), "refers to node 99"),
    (change("nodes", 3, "inputs", 0, value=[-1, 0]), "negative"),
    (change("nodes", 3, "inputs", 0, value=[0, 1, 0]), "output 1 of node 0 .'data'., which has 1"),
    (change("nodes", 3, "inputs", 0, value=[0]), "expected .node, output"),
    (change("nodes", 3, "inputs", 0, value=[True, 0]), "expected an integer"),
    (change("nodes", 3, "inputs", 0, value=[0.5, 0]), "expected an integer"),
    (change("nodes", 3, "inputs", value=[[0, 0, 0]]), "takes 3 inputs .data, weight, bias., but 1"),
    (change("nodes", 3, "inputs", value=[[0, 0, 0]] * 4), "takes 3 inputs .*but 4"),
    (change("nodes", 1, "inputs", value=[[0, 0]]), "variable takes no inputs"),
    (change("nodes", 8, "inputs", 3, value=[3, 0]), "auxiliary states must be variables"),
    (change("nodes", 3, "attrs", value={"num_hidden": 3}), "'num_hidden': expected a string"),
    (change("nodes", 3, "attrs", value={"num_hidden": "x"}), "num_hidden.*'x'"),
    (change("nodes", 3, "attrs", value={}), "num_hidden.*missing"),
    (change("nodes", 3, "name", value="\ud800"), "not valid Unicode"),
    (change("nodes", 3, "name", value=None), "name: expected a string"),
    (change("nodes", 3, value=7), "node 3: expected an object"),
    (change("heads", value=[]), "no outputs"), (change("heads", value=[[9, 0]]), "head 0: refers to node 9"),
    (change("heads", value=[[8, 3]]), "output 3 of node 8"),
    (change("arg_nodes", value=[99]), "arg_nodes names node 99"),
    (change("arg_nodes", value=[3]), "arg_nodes names node 3"),
    (change("attrs", value=[]), "attrs: expected an object"),
    (change("attrs", "mxnet_version", value=10901), "mxnet_version: expected a list"),
    (change("attrs", "mxnet_version", value=["str", "1"]), "mxnet_version"),
    (change("nodes", 3, "subgraphs", value=[{}]), "subgraph 0: .*'nodes' is missing"),
])
def test_damaged_graphs(damage, reason):
    parsed = document()
    damage(parsed)
    with pytest.raises(ModelFileError, match=reason):
        mx.sym.load_json(json.dumps(parsed))


@pytest.mark.parametrize("op, attrs, reason", [
    ("concat", {"num_args": "99999999999"}, "num_args=99999999999, but 1 inputs"),
    ("SliceChannel", {"num_outputs": "99999999999"}, "99999999999 outputs"),
    ("SliceChannel", {"num_outputs": "-1"}, "num_outputs"),
])
def test_hostile_sizes(op, attrs, reason):
    parsed = {"nodes": [{"op": "null", "name": "d", "inputs": []},
                        {"op": op, "name": "o", "attrs": attrs, "inputs": [[0, 0]]}], "heads": [[1, 0]]}
    for version in (None, 10901):
        if version:
            parsed["attrs"] = {"mxnet_version": ["int", version]}
        with pytest.raises(ModelFileError, match=reason):
            mx.sym.load_json(json.dumps(parsed))


def test_everything_unknown_is_listed_at_once():
    parsed = document()
    parsed["nodes"][8]["op"] = "BatchNorn"
    parsed["nodes"][3]["attrs"] = {"num_hidden": "3", "num_hiden": "4"}
    parsed["nodes"] += [{"op": "Nothing", "name": f"n{i}", "inputs": [[8, 0]]} for i in range(5)]
    with pytest.raises(UnsupportedError) as caught:
        mx.sym.load_json(json.dumps(parsed))
    text = str(caught.value)
    assert "'BatchNorn' (node 'b'" in text and "did you mean 'BatchNorm'?" in text
    assert "'Nothing' (node 'n0', 'n1', 'n2', ..., 5 of them)" in text
    assert "'f'" in text and "'num_hiden'; did you mean 'num_hidden'?" in text


def test_operators_that_only_passes_make_are_unknown():
    parsed = {"nodes": [{"op": "null", "name": "d", "inputs": []},
                        {"op": "_mxc_rand", "name": "r", "inputs": [[0, 0]]}], "heads": [[1, 0]]}
    with pytest.raises(UnsupportedError, match="operator '_mxc_rand'"):
        mx.sym.load_json(json.dumps(parsed))
    with pytest.raises(AttributeError):
        mx.sym._internal._mxc_rand  # noqa: B018


def test_user_attributes_on_operators_are_kept():
    parsed = document()
    parsed["nodes"][3]["attrs"]["__mood__"] = "angry"
    assert mx.sym.load_json(json.dumps(parsed)).attr_dict()["f"]["__mood__"] == "angry"


def test_operators_without_parameters_keep_any_attribute():
    parsed = {"nodes": [{"op": "null", "name": "d", "inputs": []},
                        {"op": "relu", "name": "r", "attrs": {"note": "1"}, "inputs": [[0, 0]]}], "heads": [[1, 0]]}
    assert mx.sym.load_json(json.dumps(parsed)).attr("note") == "1"


def test_subgraphs_survive():
    inner = without_versions(document())
    del inner["attrs"]
    parsed = {"nodes": [{"op": "null", "name": "d", "inputs": []},
                        {"op": "relu", "name": "r", "inputs": [[0, 0]], "subgraphs": [inner]}], "heads": [[1, 0]],
              "attrs": {"mxnet_version": ["int", 10901]}}
    text = mx.sym.load_json(json.dumps(parsed)).tojson()
    written = json.loads(text)["nodes"][1]["subgraphs"]
    assert without_versions(written[0])["nodes"] == inner["nodes"] and "attrs" not in written[0]
    assert mx.sym.load_json(text).tojson() == text


def test_amp_casts_are_left_out_unless_wanted():
    symbol = mx.sym.relu(mx.sym.amp_cast(mx.sym.Variable("d"), dtype="float16"), name="r")
    assert [n["op"] for n in json.loads(symbol.tojson())["nodes"]] == ["null", "relu"]
    assert [n["op"] for n in json.loads(symbol.tojson(remove_amp_cast=False))["nodes"]] == ["null", "amp_cast", "relu"]


# -- fuzz: whatever the file holds, a graph or an MXNetError

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
                    max_leaves=5)


def paths(value, here=()):
    """The way to every value inside a JSON document."""
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*here, key))


PATHS = [path for path in paths(document()) if path]
NUMBERS = st.sampled_from([0, 1, 2, 3, 8, 9, -1, 2**31, 2**63, 10**30])


def read_or_refuse(text):
    try:
        graph = json_ir.read(text)
    except MXNetError:
        return
    json_ir.read(json_ir.write(graph))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PATHS), JSON | NUMBERS | st.sampled_from(["concat", "BatchNorm", "null"]),
                          st.booleans()), min_size=1, max_size=3))
def test_fuzz_values(changes):
    parsed = document()
    for path, value, delete in changes:
        place = parsed
        try:
            for key in path[:-1]:
                place = place[key]
            if delete:
                del place[path[-1]]
            else:
                place[path[-1]] = value
        except (KeyError, IndexError, TypeError):  # an earlier change took the way there
            continue
    read_or_refuse(json.dumps(parsed))


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2000), st.integers(0, 40), st.binary(max_size=6))
def test_fuzz_bytes(start, length, inserted):
    data = json.dumps(document()).encode()
    data = data[:start] + inserted + data[start + length:]
    read_or_refuse(data.decode("utf-8", "surrogateescape"))
