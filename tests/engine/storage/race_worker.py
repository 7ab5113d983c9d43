"""A rival in a race of processes: opens the given location, and tries whenever it is told to."""

import base64
import pickle
import sys
import time

from lakewarden.engine.storage.open import open_storage


def run(location_text: str, rival: int) -> None:
    storage = open_storage(pickle.loads(base64.b64decode(location_text)))
    storage.stat("warm")
    for line in sys.stdin:
        if not line.strip():
            print("ready", flush=True)
            continue
        turn, start_ns = (int(word) for word in line.split())
        content = f"{rival}.{turn}.".encode() * 2500
        while time.monotonic_ns() < start_ns:
            pass
        answer = storage.create_exclusive(f"race/{turn}", content)
        print(base64.b64encode(pickle.dumps(answer)).decode(), flush=True)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]))
