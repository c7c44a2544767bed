"""Random numbers: distributions, samples, shuffles."""
