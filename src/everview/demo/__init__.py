"""The demo: an auction house at work, three views kept over it by Spark, live, and the proof that they are exact."""
