"""The conformance and fault suite: any driver under crashes, stalls, replays, zombies, splits and joins."""
