"""`mxc im2rec` as a file: `python im2rec.py PREFIX ROOT ...`, as programs run MXNet's."""
import sys

if __name__ == "__main__":
    from mxc.cli.main import main

    sys.exit(main(["im2rec", *sys.argv[1:]]))
