"""Write what MXNet 1.9.1 makes of symbol_cases.py to symbols.json, and of symbol_calls.py to symbol_calls.json; or
check that MXNet reads what mxc writes.

With MXNet's Python:  make_symbols.py golden
                      make_symbols.py calls
With mxc's Python:    make_symbols.py ours OURS.json
With MXNet's Python:  make_symbols.py check OURS.json
"""
import importlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from golden import symbol_calls, symbol_cases  # noqa: E402


def facts(mx, make):
    """The JSON text and what the symbol says about itself, with a fresh count of names."""
    with mx.name.NameManager():
        symbol = make(mx)
    return {"json": symbol.tojson(), "name": symbol.name, "repr": repr(symbol), "arguments": symbol.list_arguments(),
            "outputs": symbol.list_outputs(), "auxiliary": symbol.list_auxiliary_states(),
            "inputs": symbol.list_inputs(), "attributes": symbol.attr_dict(),
            "internals": symbol.get_internals().list_outputs(), "debug": symbol.debug_str()}


def golden(mx):
    """What the library makes of every case, as JSON values."""
    cases = {name: facts(mx, make) for name, make in symbol_cases.CASES.items()}
    old = {name: json.loads(mx.sym.load_json(json.dumps(document)).tojson())
           for name, document in symbol_cases.OLD_FILES.items()}
    return {"cases": cases, "old_files": old}


def calls(mx):
    """What the library makes and answers for every call, as JSON values."""
    return {"make": {name: facts(mx, make) for name, make in symbol_calls.MAKE.items()},
            "answer": {name: symbol_calls.answer(mx, call) for name, call in symbol_calls.ANSWER.items()}}


def without_row_pointers(text):
    """The parsed JSON without node_row_ptr: it counts hidden outputs, and mxc has others in places."""
    parsed = json.loads(text)
    parsed.pop("node_row_ptr", None)
    return parsed


def check(mx, ours):
    """Load every JSON text that mxc wrote; print those that MXNet understands otherwise. Returns how many."""
    wrong = 0
    for name, text in ours.items():
        symbol = mx.sym.load_json(text)
        if without_row_pointers(symbol.tojson()) != without_row_pointers(text):
            print(f"{name}: MXNet writes something else after reading it")
            wrong += 1
    print(f"{len(ours)} texts, {wrong} understood otherwise")
    return wrong


def main(command, path=HERE / "symbols.json"):
    if command == "calls":
        text = json.dumps(calls(importlib.import_module("mxnet")), indent=0, sort_keys=True)
        (HERE / "symbol_calls.json").write_text(text + "\n")
    elif command == "ours":
        mxc = importlib.import_module("mxc")
        made = golden(mxc)
        texts = {name: case["json"] for name, case in made["cases"].items()}
        texts.update({name: json.dumps(document) for name, document in made["old_files"].items()})
        Path(path).write_text(json.dumps(texts))
    elif command == "golden":
        text = json.dumps(golden(importlib.import_module("mxnet")), indent=0, sort_keys=True)
        Path(path).write_text(text + "\n")
    else:
        sys.exit(bool(check(importlib.import_module("mxnet"), json.loads(Path(path).read_text()))))


if __name__ == "__main__":
    main(*sys.argv[1:])
